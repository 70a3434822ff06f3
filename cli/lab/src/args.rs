//! What may be typed: the tree of commands. The options of a command stand in its own file.

use crate::commands::{bench, conform, model, plan, plugin, replay, simulate};
use clap::{Parser, Subcommand};
use ebbtide_shell::completion::CompletionArgs;
use ebbtide_shell::globals::Globals;
use ebbtide_shell::program::{Groups, help_template};

const AFTER_HELP: &str = "\
Exit codes:
  0  all went well
  1  refused or failed
  2  the command line or the configuration file is wrong
  3  the region cannot be reached
  4  what was asked for does not exist

Data goes to standard output, everything else to standard error.

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
#[command(name = "ebbtide-lab", version, after_help = AFTER_HELP, max_term_width = 100, help_template = template())]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const COMPLETION: &str = "\
Examples:
  source <(ebbtide-lab completion bash)
  ebbtide-lab completion zsh > ~/.zfunc/_ebbtide-lab
  ebbtide-lab completion fish > ~/.config/fish/completions/ebbtide-lab.fish";

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
    #[command(after_help = COMPLETION)]
    Completion(CompletionArgs),
}
