//! What may be typed: the tree of commands. The options of a command stand in its own file.

use crate::commands::{bench, conform, model, plan, plugin, replay, simulate};
use clap::{Parser, Subcommand};
use ebbtide_shell::completion::{self, CompletionArgs};
use ebbtide_shell::globals::Globals;
use ebbtide_shell::program::{Groups, after_help, help_template};

const EXAMPLES: &str = "\
Examples:
  ebbtide-lab model fit lifetimes.csv
  ebbtide-lab plan bag bag.toml
  ebbtide-lab simulate evacuation --seeds 100
  ebbtide-lab bench preempt";

/// The commands by what they are for, in the order of the help. A test holds it against the tree.
pub const GROUPS: Groups = &[
    ("Planning", &["model", "plan"]),
    ("Trying", &["simulate", "replay", "plugin"]),
    ("Measuring and proving", &["bench", "conform"]),
    ("This program", &["completion"]),
];

fn template() -> String {
    help_template(
        &Command::augment_subcommands(clap::Command::new("ebbtide-lab")),
        GROUPS,
    )
}

/// Measures, simulates and proves; fits models and makes plans. Most of it needs no region.
#[derive(Debug, Parser)]
#[command(
    name = "ebbtide-lab",
    version,
    after_help = after_help(EXAMPLES),
    max_term_width = 100,
    help_template = template()
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

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
