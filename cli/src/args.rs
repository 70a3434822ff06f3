//! What may be typed besides the [commands](crate::commands).

pub use crate::commands::{Command, GROUPS};
use clap::{Parser, Subcommand};
use ebbtide_shell::globals::Globals;
use ebbtide_shell::program::{after_help, help_template};

const EXAMPLES: &str = "\
Examples:
  ebbtide status
  ebbtide flavor create spot.small --vcpus 1 --ram 2000 --disk 20 --preemptible
  ebbtide server create --flavor spot.small --wait worker-1
  ebbtide what-if --flavor m1.large --count 3
  ebbtide explain worker-1
  ebbtide server list -o json | jq -r '.[].host'

On the machines of the scheduler: `ebbtide-manage`. To measure, simulate and plan: `ebbtide-lab`.";

fn template() -> String {
    help_template(
        &Command::augment_subcommands(clap::Command::new("ebbtide")),
        GROUPS,
    )
}

/// Places virtual machines, and gives idle capacity to preemptible ones until it is needed.
#[derive(Debug, Parser)]
#[command(
    name = "ebbtide",
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
