//! The commands, one file a noun: their tree, their groups in the help, their start. The options of
//! a command stand in its own file.

pub mod bench;
pub mod conform;
pub mod model;
pub mod plan;
pub mod plugin;
pub mod replay;
pub mod simulate;

use crate::args::Cli;
use clap::Subcommand;
use ebbtide_shell::Context;
use ebbtide_shell::completion::{self, CompletionArgs};
use ebbtide_shell::errors::CliError;
use ebbtide_shell::program::Groups;

/// The commands by what they are for, in the order of the help. A test holds it against the tree.
pub const GROUPS: Groups = &[
    ("Planning", &["model", "plan"]),
    ("Trying", &["simulate", "replay", "plugin"]),
    ("Measuring and proving", &["bench", "conform"]),
    ("This program", &["completion"]),
];

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Drive the region (or, offline, the engine alone) with a VM request trace
    Replay(Box<replay::ReplayArgs>),
    /// Prove that the engine decides as the papers say
    #[command(subcommand)]
    Conform(conform::ConformCommand),
    /// Measure how fast the engine is, and check what it answers; needs no region
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Whole regions in virtual worlds where everything goes wrong; jobs in recorded spot markets;
    /// needs no region
    #[command(subcommand)]
    Simulate(simulate::SimulateCommand),
    /// Models of how long preemptible instances live: fit, check; needs no region
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Plan work on preemptible instances: checkpoints, reuse, bids, bags of tasks; needs no region
    #[command(subcommand)]
    Plan(plan::PlanCommand),
    /// Weighers and cost modules as plugins: write, check, measure, try
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Print a completion script for a shell
    #[command(after_help = completion::examples("ebbtide-lab"))]
    Completion(CompletionArgs),
}

impl Command {
    /// True if it talks to a region.
    #[must_use]
    pub fn uses_region(&self) -> bool {
        match self {
            Self::Replay(args) => !args.offline,
            Self::Model(command) => command.uses_region(),
            _ => false,
        }
    }
}

/// Runs a command.
///
/// # Errors
/// Whatever the command meets.
pub async fn run(context: &mut Context, command: Command) -> Result<(), CliError> {
    match command {
        Command::Replay(args) => Box::pin(replay::run(context, *args)).await,
        Command::Conform(command) => conform::run(context, command),
        Command::Bench(command) => bench::run(context, command),
        Command::Simulate(command) => simulate::run(context, command),
        Command::Model(command) => model::run(context, command).await,
        Command::Plan(command) => plan::run(context, command),
        Command::Plugin(command) => plugin::run(context, command),
        Command::Completion(args) => completion::run::<Cli>(context, &args),
    }
}
