//! What may be typed besides the [commands](crate::commands).

pub use crate::commands::{Command, GROUPS};
use clap::{Parser, Subcommand};
use ebbtide_shell::globals::Globals;
use ebbtide_shell::program::{after_help, help_template};

const EXAMPLES: &str = "\
Examples:
  ebbtide-manage init /etc/ebbtide --host compute-1 --host compute-2
  ebbtide-manage token create --role operator --name ops --file /etc/ebbtide/tokens.toml
  ebbtide-manage config check /etc/nova/nova.conf --effective
  ebbtide-manage upgrade check --config-file /etc/nova/nova.conf
  ebbtide-manage shadow report --config-file /etc/nova/nova.conf
  ebbtide-manage audit --config-file /etc/nova/nova.conf";

fn template() -> String {
    help_template(
        &Command::augment_subcommands(clap::Command::new("ebbtide-manage")),
        GROUPS,
    )
}

/// What operators do on the machines of the scheduler: set up, tokens, configuration, audits.
#[derive(Debug, Parser)]
#[command(
    name = "ebbtide-manage",
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
