//! What may be typed besides the [commands](crate::commands).

pub use crate::commands::{Command, GROUPS};
use clap::{Parser, Subcommand};
use ebbtide_shell::globals::Globals;
use ebbtide_shell::program::{after_help, help_template};

const EXAMPLES: &str = "\
Examples:
  ebbtide-lab model fit lifetimes.csv
  ebbtide-lab plan bag bag.toml
  ebbtide-lab simulate evacuation --seeds 100
  ebbtide-lab bench preempt";

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
