//! `ebbtide-burst`: the controller beside slurmctld, and the programs that slurmctld calls.

mod check;
mod controller;

use clap::{Parser, Subcommand};
use ebbtide_batch_service::pool::PoolOptions;
use ebbtide_batch_service::program::{PoolTask, finish};
use ebbtide_batch_service::storage;
use ebbtide_burst::{BurstError, BurstSettings};
use ebbtide_shell::errors::CliError;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER_HELP: &str = "\
docs/tenants/burst.md has the configuration file, the lines for slurm.conf, and the traps.

Examples:
  ebbtide-burst setup --config /etc/ebbtide/burst.toml --programs /usr/local/lib/ebbtide
  ebbtide-burst check --config /etc/ebbtide/burst.toml
  ebbtide-burst run --config /etc/ebbtide/burst.toml";

/// Preemptible instances of a region as nodes of a Slurm cluster.
#[derive(Debug, Parser)]
#[command(name = "ebbtide-burst", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Cli {
    /// Configuration file
    #[arg(
        long,
        env = "EBBTIDE_BURST_CONFIG",
        global = true,
        default_value = "/etc/ebbtide/burst.toml",
        value_name = "FILE"
    )]
    config: PathBuf,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Look after the cluster until SIGTERM; what is there stays then
    Run {
        /// Write down what happens, and change nothing: to measure a cluster as it is
        #[arg(long)]
        observe: bool,
    },
    /// Look once, and say what is seen and what is wrong with slurm.conf
    Check,
    #[command(flatten)]
    Pool(PoolTask),
}

fn main() -> ExitCode {
    finish(run(Cli::parse()))
}

async fn run(cli: Cli) -> Result<(), CliError> {
    let settings = read(&cli.config)?;
    let pool = PoolOptions::burst(&settings)?;
    match cli.task {
        Task::Run { observe } => Box::pin(controller::run(&settings, pool, observe)).await,
        Task::Check => Box::pin(check::run(&settings, &pool)).await,
        Task::Pool(task) => Box::pin(task.carry_out(&pool, &cli.config)).await,
    }
}

fn read(path: &Path) -> Result<BurstSettings, BurstError> {
    let text = std::fs::read_to_string(path).map_err(storage("read", path))?;
    BurstSettings::parse(&text).map_err(|error| match error {
        BurstError::Setting { key, problem } => BurstError::Setting {
            key: format!("{}: {key}", path.display()),
            problem,
        },
        other => other,
    })
}
