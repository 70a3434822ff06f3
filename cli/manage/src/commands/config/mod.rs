//! `ebbtide-manage config`: every configuration key explained, files of them judged, files to
//! begin with. Needs no region.

mod check;
mod explain;

use clap::{Args, Subcommand, ValueEnum};
use ebbtide_config_check as keys;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use std::path::PathBuf;

const EXPLAIN: &str = "\
Without a key: all of them. With a table, a section or a beginning: what is in it. Options of
nova.conf are written filter_scheduler.ram_weight_multiplier or \"[filter_scheduler] ram_weight_multiplier\".

Examples:
  ebbtide-manage config explain
  ebbtide-manage config explain engine.weighers
  ebbtide-manage config explain --kind nova ram_weight_multiplier
  ebbtide-manage config explain --output markdown > configuration.md";
const CHECK: &str = "\
Reads a file as its program would, and tells everything at once: what the program would refuse
(errors), what is legal and probably not meant (warnings), what has no effect (notes); each with its
code (docs/reference/errors.md), why it matters and what to do. Files that it names (certificates,
plugins) are looked for on this machine. Exit code 1 if there is an error.

Examples:
  ebbtide-manage config check /etc/ebbtide/scheduler.toml
  ebbtide-manage config check /etc/nova/nova.conf --effective
  ebbtide-manage config check agent.toml --kind agent --strict
  ebbtide-manage config check scheduler.toml -o json | jq '.findings[] | select(.level != \"note\")'";

const SAMPLE: &str = "\
Examples:
  ebbtide-manage config sample scheduler > /etc/ebbtide/scheduler.toml
  ebbtide-manage config sample agent > /etc/ebbtide/agent.toml
  ebbtide-manage config sample nova | less";

/// What can be done with configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// What a key means: its type, unit, default, range, when it takes effect
    #[command(after_help = EXPLAIN)]
    Explain(ExplainArgs),
    /// Judge a configuration file before a program does
    #[command(after_help = CHECK)]
    Check(CheckArgs),
    /// Print a file with every key, each in a comment with its default
    #[command(after_help = SAMPLE)]
    Sample(SampleArgs),
}

/// Options of `sample`.
#[derive(Debug, Args)]
pub struct SampleArgs {
    /// Whose file
    #[arg(value_name = "KIND", value_enum)]
    pub kind: ConfigKind,
}

/// Whose file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConfigKind {
    /// The scheduler's TOML.
    Scheduler,
    /// The agent's TOML.
    Agent,
    /// nova.conf.
    Nova,
}

impl From<ConfigKind> for keys::ConfigKind {
    fn from(kind: ConfigKind) -> Self {
        match kind {
            ConfigKind::Scheduler => Self::Scheduler,
            ConfigKind::Agent => Self::Agent,
            ConfigKind::Nova => Self::Nova,
        }
    }
}

/// Options of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A key, a table or section, or the last part of a key [default: all]
    #[arg(value_name = "KEY")]
    pub wanted: Option<String>,
    /// Of this kind of file only
    #[arg(long, value_enum)]
    pub kind: Option<ConfigKind>,
}

/// Options of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Whose file it is [default: guessed from its content]
    #[arg(long, value_enum)]
    pub kind: Option<ConfigKind>,
    /// Warnings are errors
    #[arg(long)]
    pub strict: bool,
    /// Show how hosts are ordered: the weighers with their weights, in words
    #[arg(long)]
    pub effective: bool,
}

/// Does it.
///
/// # Errors
/// [`CliError::NotFound`] for a key that does not exist,
/// [`crate::error::ManageError::Configuration`] for a file with errors, [`CliError::Refused`] for
/// one that cannot be read.
pub fn run(context: &mut Context, command: &ConfigCommand) -> Result<(), CliError> {
    match command {
        ConfigCommand::Explain(args) => explain::run(context, args),
        ConfigCommand::Check(args) => check::run(context, args),
        ConfigCommand::Sample(args) => {
            let text = keys::sample(args.kind.into());
            context.output.raw(text.trim_end())
        }
    }
}
