//! `ebbtide-batch`: the batch service beside slurmctld, and the programs that slurmctld calls.

mod service;

use clap::{Parser, Subcommand};
use ebbtide_batch::BatchSettings;
use ebbtide_batch_service::pool::PoolOptions;
use ebbtide_batch_service::program::{PoolTask, finish};
use ebbtide_batch_service::{check, say, storage};
use ebbtide_burst::World;
use ebbtide_runtime::clock::unix_millis;
use ebbtide_shell::errors::CliError;
use service::elastic::ElasticPartition;
use service::fault::ServiceError;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER_HELP: &str = "\
docs/tenants/batch.md has the configuration file, the lines for slurm.conf, and what a work looks like;
docs/tenants/burst.md has the elastic partition.
`ebbtide batch` hands work in and shows it.

Examples:
  ebbtide-batch setup --config /etc/ebbtide/batch.toml --programs /usr/local/lib/ebbtide
  ebbtide-batch check --config /etc/ebbtide/batch.toml
  ebbtide-batch run --config /etc/ebbtide/batch.toml";

/// Jobs, bags and workflows, and short jobs of users, on preemptible servers that are nodes of a
/// Slurm cluster.
#[derive(Debug, Parser)]
#[command(name = "ebbtide-batch", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Cli {
    /// Configuration file
    #[arg(
        long,
        env = "EBBTIDE_BATCH_CONFIG",
        global = true,
        default_value = "/etc/ebbtide/batch.toml",
        value_name = "FILE"
    )]
    config: PathBuf,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Serve until SIGTERM; what runs goes on then, and is found again
    Run {
        /// Write down what happens in the cluster and change nothing: to measure it without the
        /// elastic partition. Works wait
        #[arg(long)]
        observe: bool,
    },
    /// Says where bags by maps are handed in now
    #[command(hide = true)]
    Bag {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _rest: Vec<String>,
    },
    /// Look once, and say what is seen and what is wrong with slurm.conf and the cloud
    Check,
    #[command(flatten)]
    Pool(PoolTask),
}

fn main() -> ExitCode {
    finish(run(Cli::parse()))
}

async fn run(cli: Cli) -> Result<(), CliError> {
    if let Task::Bag { .. } = cli.task {
        let words = "the service runs bags by maps: `ebbtide batch submit FILE`, after `maps = true` in [[types]] of its file; see docs/tenants/bags.md#run-it";
        return Err(CliError::Usage(words.to_owned()));
    }
    let settings = read(&cli.config)?;
    let pool = PoolOptions::new(&settings).map_err(ServiceError::from)?;
    match cli.task {
        Task::Run { observe } => Box::pin(service::run(&settings, pool, observe)).await,
        Task::Bag { .. } => Ok(()),
        Task::Check => Box::pin(look(&settings, &pool)).await,
        Task::Pool(task) => Box::pin(task.carry_out(&pool, &cli.config)).await,
    }
}

fn read(path: &Path) -> Result<BatchSettings, CliError> {
    let text = std::fs::read_to_string(path).map_err(storage("read", path))?;
    Ok(BatchSettings::parse(&text).map_err(|error| ServiceError::in_file(path, error))?)
}

async fn look(settings: &BatchSettings, pool: &PoolOptions<'_>) -> Result<(), CliError> {
    let (nodes, jobs) = check::cluster(pool).await?;
    let servers = check::servers(pool).await?;
    for ty in settings.server_types().map_err(ServiceError::from)? {
        let market = if ty.preemptible {
            "preemptible"
        } else {
            "on demand"
        };
        say!(
            "type {}: {} nodes, flavor {}, {market}{}",
            ty.name,
            ty.nodes.len(),
            ty.flavor,
            if ty.maps { ", for bags by maps" } else { "" }
        );
    }
    say!(
        "nodes:   {} of the cloud of {} in all",
        pool.nodes().len(),
        nodes.len()
    );
    say!(
        "jobs:    {} run, {} in all",
        jobs.iter().filter(|job| job.runs()).count(),
        jobs.len()
    );
    say!("servers: {}", servers.len());
    let budget = pool.budget_on_disk();
    if let Some(mut elastic) = ElasticPartition::new(settings).map_err(ServiceError::from)? {
        let world = World {
            nodes: &nodes,
            jobs: &jobs,
            instances: &servers,
            budget_used_up: budget.is_err(),
            kept: &[],
        };
        elastic.look(unix_millis(), &world)?;
        elastic.view.iter().for_each(|view| say!("{view}"));
    }
    Ok(budget?)
}
