//! `ebbtide-lab simulate elastic`: preemptible servers for the short jobs of a cluster, on a
//! recorded trace.

mod charts;
mod demand;
mod json;
mod play;
mod recovery;
mod reference;
mod sweep;
mod tables;

use clap::Args;
use ebbtide_elastic::{
    Cluster, Elastic, ElasticError, ElasticPolicy, LONGEST_US, Recovery, Trace, long_load_ratio,
};
use ebbtide_shell::Context;
use ebbtide_shell::charts::write;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;
use ebbtide_shell::model::{ModelArgs, SourcedModel};
use std::path::{Path, PathBuf};
use sweep::Sweep;

pub(super) const HELP: &str = "\
A cluster keeps --short-only of its servers (N) for short jobs, so that these do not wait for long ones. Here a
part of them (--share, p) is given up, and its price buys up to K = r·N·p preemptible servers, where r (--ratio) is
the on-demand over the preemptible price. They are asked for when the share of servers with long tasks passes
--threshold, all that are missing at once, and drained and released one by one when it falls. Each waiting short task
has a copy on an on-demand server.

The cluster is scheduled as Eagle does it: long jobs by a central scheduler, short jobs by probes that avoid servers
with long tasks. The trace has a job a line: arrival, number of tasks, mean duration, and each duration, in seconds;
plain, gzip or zstd. Each partition is played with several seeds, and improvement is the static partition's mean delay
of short tasks over the elastic one's. docs/tenants/elastic.md has more.

Examples:
  ebbtide-lab simulate elastic --trace YH1_sub.tr.zst --ratio 3
  ebbtide-lab simulate elastic --trace YH1_sub.tr.zst --ratio 1,2,3 --svg delays.svg
  ebbtide-lab simulate elastic --trace YH1_sub.tr.zst --ratio 3 --lifetime bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.45
  ebbtide-lab simulate elastic --trace YH1_sub.tr.zst --ratio 3 --sweep all --svg sweep.svg
  ebbtide-lab simulate elastic --trace jobs.tr --servers 400 --short-only 20 --ratio 4 --sweep share=0.25,0.5,0.75
  ebbtide-lab simulate elastic --trace YH1_sub.tr.zst --demand 100s
  ebbtide-lab simulate elastic --trace YH1_sub.tr.zst --recovery all --sweep outages=24
  ebbtide-lab simulate elastic --trace YH1_sub.tr.zst --ratio 3 -o json | jq .improvement";

/// The cluster.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// On-demand servers, those for short jobs only among them; each runs one task at a time
    #[arg(long, value_name = "N", default_value_t = 4_000)]
    pub servers: u32,
    /// N: servers of these that are for short jobs only
    #[arg(long, value_name = "N", default_value_t = 80)]
    pub short_only: u32,
    /// Jobs whose tasks take longer than this in the mean are long
    #[arg(long, value_name = "TIME", default_value = "90.5811s")]
    pub cutoff: Hours,
    /// Probes for each task of a short job
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub probe_ratio: u32,
    /// The fewest probes for a short job
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub min_probes: u32,
    /// Time that a message takes, one way
    #[arg(long, value_name = "TIME", default_value = "0.0005s")]
    pub message: Hours,
    /// How often a probe may be overtaken by jobs with less left to do
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub srpt_cap: u32,
    /// Cut durations to whole seconds, as Eagle's simulator does
    #[arg(long)]
    pub whole_seconds: bool,
}

/// The preemptible servers.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Preemptible servers")]
pub struct PartitionArgs {
    /// r: the price of an on-demand server over that of a preemptible one; several with commas
    /// between
    #[arg(long, value_name = "R", value_delimiter = ',', default_value = "3", value_parser = number)]
    pub ratio: Vec<f64>,
    /// p: the part of the servers for short jobs that is given up
    #[arg(long, value_name = "P", default_value = "0.5", value_parser = number)]
    pub share: f64,
    /// The long-load ratio above which servers are added
    #[arg(long, value_name = "L", default_value = "0.95", value_parser = number)]
    pub threshold: f64,
    /// From the request until a server takes tasks
    #[arg(long, value_name = "TIME", default_value = "120s")]
    pub provisioning: Hours,
    /// At most one server is released in this time; 0: one at each change of the load
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub release_interval: Hours,
    /// How long preemptible servers live: NAME:key=value,… in hours, or a file of
    /// `ebbtide-lab model fit` [default: until they are released]
    #[arg(long, value_name = "MODEL")]
    pub lifetime: Option<String>,
    /// How long before its end a server is told of it and drained; 0: never
    #[arg(long, value_name = "TIME", default_value = "0", requires = "lifetime")]
    pub notice: Hours,
}

/// Options of `simulate elastic`.
#[derive(Debug, Clone, Args)]
pub struct ElasticArgs {
    /// The trace: plain, gzip or zstd
    #[arg(long, value_name = "FILE")]
    pub trace: PathBuf,
    /// Print how many tasks would run at one time on a cluster without end, in windows of this
    /// length, instead of playing the trace
    #[arg(long, value_name = "TIME", conflicts_with = "sweep")]
    pub demand: Option<Hours>,
    #[command(flatten)]
    pub partition: PartitionArgs,
    /// Vary one setting, the others as given (r: the last one): NAME, or NAME=VALUE,…; NAME is
    /// threshold, share, ratio, provisioning (seconds), release (seconds), interruptions (times
    /// those of --lifetime) or outages (times a day that all preemptible servers are taken at
    /// once); all for every one; may be repeated
    #[arg(long, value_name = "SWEEP")]
    pub sweep: Vec<Sweep>,
    /// Compare what happens to short tasks whose server is taken: copies (of each task on an
    /// on-demand server, as in the paper), resend (the same probes without copies), requeue (one
    /// queue for all servers, as in Slurm: a lost task returns to its place), requeue-last (it goes
    /// to the end); all; several with commas between
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = recovery::parse,
        conflicts_with_all = ["demand", "svg"]
    )]
    pub recovery: Vec<recovery::Choice>,
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// With how many seeds everything is played; the means are over all
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Simulation")]
    pub seeds: u32,
    /// The first seed
    #[arg(
        long,
        value_name = "SEED",
        default_value_t = 1,
        help_heading = "Simulation"
    )]
    pub seed: u64,
    /// Draw the distributions of the delays, and the sweeps, or the demand, into this file
    #[arg(long, value_name = "FILE", help_heading = "Simulation")]
    pub svg: Option<PathBuf>,
    /// Threads; all cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Simulation")]
    pub threads: Option<u32>,
}

/// A number, and not the NaN that Rust's parser takes for one.
fn number(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(format!("{text:?} is no number")),
    }
}

/// Microseconds of a time; what is too long stays too long and is refused where it is used.
pub(super) fn micros(hours: Hours) -> u64 {
    (hours.0 * 3.6e9).round().min(LONGEST_US as f64 + 1.0) as u64
}

/// What everything is played with.
struct Terms {
    cluster: Cluster,
    /// The elastic partition for each r.
    partitions: Vec<Elastic>,
    /// What is compared; the paper's, unless others are asked for.
    recoveries: Vec<Recovery>,
    lifetime: Option<SourcedModel>,
}

impl ElasticArgs {
    fn terms(&self) -> Result<Terms, CliError> {
        let cluster = Cluster {
            servers: self.cluster.servers,
            short_only: self.cluster.short_only,
            cutoff_us: micros(self.cluster.cutoff),
            probe_ratio: self.cluster.probe_ratio,
            min_probes: self.cluster.min_probes,
            network_us: micros(self.cluster.message),
            srpt_cap: self.cluster.srpt_cap,
            whole_seconds: self.cluster.whole_seconds,
            recovery: Recovery::Copies,
        };
        cluster.checked()?;
        let lifetime = match &self.partition.lifetime {
            Some(model) => Some(SourcedModel::read(&ModelArgs {
                model: model.clone(),
                group: None,
            })?),
            None => None,
        };
        let mut terms = Terms {
            cluster,
            partitions: Vec::new(),
            recoveries: recovery::list(&self.recovery),
            lifetime,
        };
        for ratio in &self.partition.ratio {
            let policy = self.policy(*ratio, self.partition.share, self.partition.threshold)?;
            let provisioning_us = micros(self.partition.provisioning);
            let elastic = Elastic {
                provisioning_us,
                lifetime: terms.lifetime.as_ref().map(SourcedModel::shared),
                notice_us: micros(self.partition.notice),
                ..Elastic::new(policy)
            };
            terms.partitions.push(elastic);
        }
        Ok(terms)
    }

    fn policy(
        &self,
        ratio: f64,
        share: f64,
        threshold: f64,
    ) -> Result<ElasticPolicy, ElasticError> {
        ElasticPolicy::new(self.cluster.short_only, ratio, share)?
            .threshold(threshold)?
            .release_interval(micros(self.partition.release_interval))
    }
}

fn read(path: &Path) -> Result<Trace, CliError> {
    let text = ebbtide_files::read(path)?;
    Trace::read(&text).map_err(|error| CliError::Elastic {
        place: format!("{}: ", path.display()),
        error,
    })
}

/// Simulates and shows.
pub(super) fn run(context: &mut Context, args: &ElasticArgs) -> Result<(), CliError> {
    let terms = args.terms()?;
    let trace = read(&args.trace)?;
    if let Some(window) = args.demand {
        return demand::show(context, args, &trace, micros(window));
    }
    warn(context, args, &trace, &terms);
    let plan = sweep::plan(args, &terms)?;
    let played = play::all(context, args, &trace, &terms, plan)?;
    if let Some(path) = &args.svg {
        write(context, path, &charts::figure(args, &terms, &played))?;
    }
    if args.recovery.is_empty() {
        tables::all(context, args, &trace, &terms, &played)
    } else {
        recovery::show(context, args, &trace, &terms, &played)
    }
}

/// What is probably not meant.
fn warn(context: &mut Context, args: &ElasticArgs, trace: &Trace, terms: &Terms) {
    if trace.ends_without_newline() {
        let path = args.trace.display();
        context.output.say(&format!(
            "{path}: the last line has no end; if the file was cut off there, the last duration is wrong"
        ));
    }
    let cutoff = terms.cluster.cutoff_us;
    let long = trace.jobs().iter().filter(|job| job.estimate_us > cutoff);
    let long = long.count();
    if long == 0 || long == trace.jobs().len() {
        let which = if long == 0 {
            "no job is"
        } else {
            "all jobs are"
        };
        context.output.say(&format!(
            "{which} long with --cutoff {}; without short and long jobs there is nothing to compare",
            args.cluster.cutoff
        ));
    }
    let general = terms.cluster.servers - terms.cluster.short_only;
    for policy in terms.partitions.iter().map(|elastic| &elastic.policy) {
        // All servers that long jobs can have, against all that are not preemptible.
        let on_demand = general + policy.on_demand();
        let most = policy.target(general, on_demand);
        if most < policy.budget() {
            context.output.say(&format!(
                "r = {}: at most {most} of K = {} preemptible servers are ever asked for, since long jobs can fill {general} of {on_demand} \
                 servers, a ratio of {:.3}; a lower --threshold than {} uses more",
                policy.ratio(),
                policy.budget(),
                long_load_ratio(general, on_demand),
                policy.threshold_ratio(),
            ));
        }
    }
}
