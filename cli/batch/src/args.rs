//! The command line of `ebbtide-batch`.

use crate::program::PoolTask;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

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
pub struct Cli {
    /// Configuration file
    #[arg(
        long,
        env = "EBBTIDE_BATCH_CONFIG",
        global = true,
        default_value = "/etc/ebbtide/batch.toml",
        value_name = "FILE"
    )]
    pub config: PathBuf,
    /// What to do
    #[command(subcommand)]
    pub task: Task,
}

/// What `ebbtide-batch` does.
#[derive(Debug, Subcommand)]
pub enum Task {
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
        /// Not read
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _rest: Vec<String>,
    },
    /// Look once, and say what is seen and what is wrong with slurm.conf and the cloud
    Check,
    /// A task about the nodes
    #[command(flatten)]
    Pool(PoolTask),
}
