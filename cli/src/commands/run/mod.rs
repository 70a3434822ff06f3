//! `ebbtide run`: runs a command on preemptible instances, saves it by schedule and on notice, and
//! continues on another instance.

mod bid;
mod engine;
mod fault;
mod fleet;
mod guest;
mod method;
mod order;
mod place;
mod state;
mod view;

pub use fault::RunFault;

use crate::http::Address;
use crate::process;
use bid::{Bid, BidWatch};
use clap::Args;
use ebbtide_model::Money;
use ebbtide_run::metadata::Form;
use ebbtide_run::{CheckpointSchedule, Rules, RunJob, RunRecord, Span};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;
use ebbtide_shell::model::{ModelArgs, SourcedModel};
use engine::Engine;
use fleet::{Fleet, ServerSource};
use guest::OwnMetadata;
use method::SaveMethod;
use order::OrderArgs;
use place::JobHost;
use state::{StateContents, StateDir};
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const HELP: &str = "\
Where it runs:
  inside a virtual machine   by default: notices are read from its metadata (Ebbtide's own, EC2's, GCE's, Azure's)
  beside one                 --flavor makes a preemptible server, and another one when that is gone; --server uses
                             servers that are there; both on a region, or with --os-cloud on an OpenStack. The command
                             runs here while the server is active, and finds EBBTIDE_SERVER_ID, _NAME, and _HOST or
                             _ADDRESS in its environment
How it is saved:
  --checkpoint-command       run with EBBTIDE_PID (the command's process), EBBTIDE_CHECKPOINT_DIR (empty, to be filled)
                             and EBBTIDE_CHECKPOINT_REASON; good if it ends with 0
  --restore-command          run in place of the command, with EBBTIDE_RESTORE_DIR; without it the command itself is
                             started with that. Exit code 125 says that this checkpoint is no good: the one before
                             is taken
  --criu                     by CRIU, from outside, without the command's help; output is wound back with it
The state directory has to outlive the machine (NFS, a volume). The same command line on another machine goes on.
Ctrl-C and SIGTERM save and stop, a second one stops at once; SIGUSR1 saves and goes on.
The exit code is the command's; 130 if it was stopped.

Examples:
  ebbtide run --job 5h --model model.json --state-dir /mnt/work --checkpoint-command ./save -- ./simulation
  ebbtide run --every 30m --criu --state-dir /mnt/work -- ./simulation --seed 7
  ebbtide run --flavor p.small --job 2h --state-dir work --checkpoint-command ./save --restore-command ./resume -- ./job
  ebbtide run --flavor p.small --max-price 0.02 --every 30m --state-dir work --checkpoint-command ./save -- ./job
  ebbtide run --flavor p.small --bid 0.02 --every 30m --state-dir work --checkpoint-command ./save -- ./job
  ebbtide run --os-cloud work --flavor p.small --image debian-12 --state-dir work --checkpoint-command ./save -- ./job
  ebbtide run --server worker-1 --server worker-2 --state-dir work --checkpoint-command ./save -- ./job
  ebbtide run --metadata unix:/run/guest.metadata --form ebbtide --state-dir work --checkpoint-command ./save -- ./job";

/// The form of the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FormChoice {
    /// The first that answers.
    Auto,
    /// Ebbtide's own.
    Ebbtide,
    /// Amazon's.
    Ec2,
    /// Google's.
    Gce,
    /// Microsoft's.
    Azure,
}

impl FormChoice {
    fn form(self) -> Option<Form> {
        match self {
            Self::Auto => None,
            Self::Ebbtide => Some(Form::Ebbtide),
            Self::Ec2 => Some(Form::Ec2),
            Self::Gce => Some(Form::Gce),
            Self::Azure => Some(Form::Azure),
        }
    }
}

/// Options of `run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// How much work the job is, as far as you know: 5h, 90m
    #[arg(long, value_name = "TIME")]
    job: Option<Hours>,
    /// Checkpoints by the schedule for instances that live like this: NAME:key=value,… or the file
    /// of `ebbtide-lab model fit -o json`
    #[arg(long, value_name = "MODEL", conflicts_with = "every")]
    model: Option<String>,
    /// Which model of that file
    #[arg(long, value_name = "GROUP", requires = "model")]
    group: Option<String>,
    /// A checkpoint after so much work [default without --model: 1h]
    #[arg(long, value_name = "TIME")]
    every: Option<Hours>,
    /// Saves the command's process
    #[arg(long, value_name = "COMMAND", conflicts_with = "criu")]
    checkpoint_command: Option<String>,
    /// Goes on from what was saved
    #[arg(long, value_name = "COMMAND", requires = "checkpoint_command")]
    restore_command: Option<String>,
    /// Save the process with CRIU
    #[arg(long)]
    criu: bool,
    /// Where CRIU is
    #[arg(
        long,
        env = "EBBTIDE_CRIU",
        default_value = "criu",
        value_name = "PROGRAM"
    )]
    criu_program: String,
    /// How long a checkpoint takes, until one was measured
    #[arg(long, default_value = "10s", value_name = "TIME")]
    cost: Hours,
    /// How long it takes to get an instance and to go on there, until it was measured
    #[arg(long, default_value = "1m", value_name = "TIME")]
    restart: Hours,
    /// A checkpoint that takes longer has failed
    #[arg(long, default_value = "10m", value_name = "TIME")]
    checkpoint_timeout: Hours,
    /// How many complete checkpoints are kept
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    keep: u16,
    /// Where the state is kept [default: the command's name and .run, here]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Where the machine's metadata are: http://HOST, unix:PATH, or none [default:
    /// http://169.254.169.254]
    #[arg(long, value_name = "URL", conflicts_with_all = ["server", "flavor"])]
    metadata: Option<String>,
    /// How old the machine is, where no metadata say so [default: since its boot]
    #[arg(long, value_name = "TIME")]
    age: Option<Hours>,
    /// How the metadata speak
    #[arg(long, value_enum, default_value_t = FormChoice::Auto, hide_possible_values = true, value_name = "auto|ebbtide|ec2|gce|azure")]
    form: FormChoice,
    /// Run while this server is active, the next one when it is gone; may be given several times
    #[arg(long, value_name = "SERVER", conflicts_with = "flavor")]
    server: Vec<String>,
    /// Make a server of this flavor, and another one when that is gone
    #[arg(long, value_name = "FLAVOR")]
    flavor: Option<String>,
    /// The most that you pay for an hour of such a server; above it it leaves with notice [default:
    /// whatever the market takes]
    #[arg(long, value_name = "PRICE", requires = "flavor")]
    max_price: Option<Money>,
    /// What an hour of such a server is worth to you: near the end of each paid hour the job is
    /// saved while the price is above, and the server let go if it still is; the next one is made
    /// when the price is within the bid again
    #[arg(
        long,
        value_name = "PRICE",
        requires = "flavor",
        conflicts_with = "ignore_notices"
    )]
    bid: Option<Money>,
    /// What is paid at once
    #[arg(long, default_value = "1h", value_name = "TIME", requires = "bid")]
    hour: Hours,
    /// What these servers are called, with a number behind
    #[arg(long, default_value = "run", value_name = "NAME", requires = "flavor")]
    name: String,
    #[command(flatten)]
    order: OrderArgs,
    /// How often metadata or region are asked
    #[arg(long, default_value = "1s", value_name = "TIME")]
    poll: Hours,
    /// Do not act on notices: to see what they are worth
    #[arg(long)]
    ignore_notices: bool,
    /// What to compare with at the end: a checkpoint after so much work, and none
    #[arg(long, default_value = "1h", value_name = "TIME")]
    compare: Hours,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command to its end.
///
/// # Errors
/// [`CliError::Run`], and [`CliError::Ended`] with the command's exit code if that is not 0.
pub async fn run(context: &mut Context, args: RunArgs) -> Result<(), CliError> {
    let rhythm = args.rhythm()?;
    let dir = args.state_dir.clone();
    let dir = dir.unwrap_or_else(|| method::default_dir(&args.command));
    let dir = StateDir::take(&dir)?;
    process::adopt()?;
    let method = if args.criu {
        let limit = Duration::from_secs_f64((args.checkpoint_timeout.0 * 3600.0).min(1e9));
        SaveMethod::criu(&args.criu_program, limit).await?
    } else {
        SaveMethod::Commands {
            save: args.checkpoint_command.clone(),
            restore: args.restore_command.clone(),
        }
    };
    if !method.saves() {
        let problem = "say how the command is saved: --checkpoint-command or --criu";
        return Err(CliError::Usage(problem.to_owned()));
    }
    let stored = args.stored(context, &dir, &method)?;
    let compare = Span::from_hours(args.compare.0);
    if let Some(code) = stored.record.exit {
        context
            .output
            .say("this job has ended already; an empty --state-dir begins it anew");
        view::show(context, &stored, None, compare)?;
        return passed_on(code);
    }
    let place = args.place(context, &stored).await?;
    let rules = Rules {
        rhythm,
        length: args.job.map(|job| Span::from_hours(job.0)),
        cost: Span::from_hours(args.cost.0),
        restart: Span::from_hours(args.restart.0),
        timeout: Span::from_hours(args.checkpoint_timeout.0),
        keep: usize::from(args.keep),
        releases: place.releases(),
        heeds: !args.ignore_notices,
    };
    let job = RunJob::new(rules, stored.record.clone()).map_err(RunFault::from)?;
    context.output.say(&format!(
        "output of the command: {} and stderr beside it",
        dir.file("stdout").display()
    ));
    let checkpoints = dir.file("checkpoints");
    let engine = Engine::new(context, job, dir, stored, method, place);
    let done = engine.run().await?;
    view::show(context, &done.stored, Some(done.took), compare)?;
    match done.ending {
        ebbtide_run::RunEnd::Exited { code } => passed_on(code),
        ebbtide_run::RunEnd::Killed { code } => {
            context.output.say(&format!(
                "the command was ended by signal {}: the same command line goes on from the last checkpoint",
                code.saturating_sub(128)
            ));
            passed_on(code)
        }
        ebbtide_run::RunEnd::Stopped { saved } => {
            context.output.say(if saved {
                "stopped, and all work is saved: the same command line goes on"
            } else {
                "stopped; the same command line goes on from the last checkpoint"
            });
            // The exit code of shells for a program that Ctrl-C has ended.
            passed_on(130)
        }
        ebbtide_run::RunEnd::CannotRestore => Err(RunFault::CannotRestore {
            count: done.stored.record.checkpoints.len(),
            dir: checkpoints,
        }
        .into()),
    }
}

fn passed_on(code: u8) -> Result<(), CliError> {
    match code {
        0 => Ok(()),
        code => Err(CliError::Ended { code }),
    }
}

impl RunArgs {
    fn rhythm(&self) -> Result<CheckpointSchedule, CliError> {
        match &self.model {
            Some(model) => {
                let given = SourcedModel::read(&ModelArgs {
                    model: model.clone(),
                    group: self.group.clone(),
                })?;
                Ok(CheckpointSchedule::Model(given.model))
            }
            None => Ok(CheckpointSchedule::Every(Span::from_hours(
                self.every.map_or(1.0, |every| every.0),
            ))),
        }
    }

    /// The state that an earlier run of this job has stored, cleaned up; or a new state.
    fn stored(
        &self,
        context: &mut Context,
        dir: &StateDir,
        method: &SaveMethod,
    ) -> Result<StateContents, CliError> {
        let Some(mut stored) = dir.read()? else {
            let stored = StateContents {
                command: self.command.clone(),
                method: method.name().to_owned(),
                record: RunRecord::default(),
                ..StateContents::default()
            };
            dir.write(&stored)?;
            return Ok(stored);
        };
        if stored.command != self.command || stored.method != method.name() {
            return Err(RunFault::OtherJob {
                dir: dir.path().to_owned(),
                theirs: format!("{:?}, saved by {}", stored.command.join(" "), stored.method),
            }
            .into());
        }
        if let Some(left) = stored.running.take()
            && process::end_left_over(&left)
        {
            context.output.say(&format!(
                "process {} of a run that was killed was still there, and is ended",
                left.pid
            ));
        }
        let swept = dir.sweep(&stored.record)?;
        if swept > 0 {
            context.output.say(&format!(
                "{swept} checkpoints that were cut off are removed"
            ));
        }
        Ok(stored)
    }

    fn bid_watch(&self) -> Result<Option<BidWatch>, CliError> {
        let (Some(price), Some(flavor)) = (self.bid, &self.flavor) else {
            return Ok(None);
        };
        let bid = Bid::new(price, self.hour, self.cost)?;
        Ok(Some(BidWatch::new(bid, flavor.clone())))
    }

    async fn place(
        &self,
        context: &mut Context,
        stored: &StateContents,
    ) -> Result<JobHost, CliError> {
        if let Some(server) = stored.server.as_ref().filter(|_| self.flavor.is_none()) {
            context.output.say(&format!(
                "an earlier run of this job made server {server}, which may still be there: ebbtide server delete {server}"
            ));
        }
        let poll = Duration::from_millis(Span::from_hours(self.poll.0).0.max(10));
        let source = if let Some(flavor) = &self.flavor {
            ServerSource::Created {
                flavor: flavor.clone(),
                name: self.name.clone(),
                max_price: self.max_price,
            }
        } else if !self.server.is_empty() {
            ServerSource::Named(self.server.clone())
        } else {
            let age = self.age.map(|age| Span::from_hours(age.0));
            let url = self.metadata.as_deref();
            let url = url.unwrap_or("http://169.254.169.254");
            if url == "none" {
                return Ok(JobHost::Here { age });
            }
            let address: Address = url.parse().map_err(CliError::Usage)?;
            let guest = OwnMetadata::find(address, self.form.form(), age, poll).await?;
            return Ok(JobHost::Guest(Box::new(guest)));
        };
        let bid = self.bid_watch()?;
        let pool = self.order.pool(context, self.flavor.is_some()).await?;
        let earlier = stored.server.clone();
        let fleet = Fleet::new(pool, source, bid, earlier, poll);
        Ok(JobHost::Fleet(Box::new(fleet)))
    }
}
