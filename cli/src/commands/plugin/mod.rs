//! `ebbtide plugin`: the author's kit, and what a region says of its plugins.

#[cfg(feature = "wasm")]
mod kit;
mod list;
#[cfg(not(feature = "wasm"))]
mod without;

#[cfg(not(feature = "wasm"))]
use without as kit;

use crate::Context;
use crate::errors::CliError;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

const LIST: &str = "\
What the scheduler at the endpoint has loaded, and how it behaves there since then.

Examples:
  ebbtide plugin list
  ebbtide plugin list -o json | jq '.[] | select(.failures > 0)'";
const NEW: &str = "\
Makes a directory with a project that builds and passes its tests at once; its README says how to go on.

Examples:
  ebbtide plugin new spread_racks
  ebbtide plugin new --kind cost remaining_life
  ebbtide plugin new --lang python spread_racks";
const CHECK: &str = "\
Tries everything that a plugin must do: numbers for any hosts, the same ones every time and in any
order, within the limits. Exit code 1 if it must not be used. Needs no region.

Examples:
  ebbtide plugin check spread_racks.wasm
  ebbtide plugin check spread_racks.wasm --set key=rack -o json
  ebbtide plugin check in_python.wasm --memory-mb 128 --work-million 100
  ebbtide plugin check by_season.wasm --grant clock";
const BENCH: &str = "\
Measures calls over made-up hosts (or candidates of a cost module), from the columns in the
scheduler's memory to the numbers there. Needs no region; build ebbtide with --release.

Examples:
  ebbtide plugin bench spread_racks.wasm
  ebbtide plugin bench spread_racks.wasm --hosts 10000 -o json | jq .ns_per_host";

/// What can be done with plugins.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// The plugins of a region's scheduler
    #[command(after_help = LIST)]
    List,
    /// A new project for a weigher or a cost module
    #[command(after_help = NEW)]
    New(NewArgs),
    /// Whether a plugin does what it must, in plain words
    #[command(after_help = CHECK)]
    Check(FileArgs),
    /// How fast a plugin is
    #[command(after_help = BENCH)]
    Bench(BenchArgs),
}

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Says how good hosts are.
    Weigher,
    /// Says what victims cost.
    Cost,
}

/// In which language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Lang {
    /// Rust: the quickest plugins
    Rust,
    /// Go 1.24 or later: its runtime begins anew with each call
    Go,
    /// Python, with its interpreter inside: a hundred times slower
    Python,
    /// C: the smallest plugins
    C,
}

/// What an operator can grant a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Grant {
    /// The time
    Clock,
    /// Real random numbers
    Randomness,
}

/// Options of `new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Its name: small letters, digits and _
    pub name: String,
    /// What it is
    #[arg(long, value_enum, default_value = "weigher")]
    pub kind: Kind,
    /// In which language
    #[arg(long, value_enum, default_value = "rust")]
    pub lang: Lang,
    /// Where to [default: a directory with its name, here]
    #[arg(long, value_name = "DIRECTORY")]
    pub into: Option<PathBuf>,
}

/// A plugin's file.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// The component
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// A setting, as the operator would write it; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Memory of a call, in MiB, as `memory_mb` in the configuration [default: 64]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub memory_mb: Option<u32>,
    /// Work of a call, in million units, as `work_million` in the configuration [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub work_million: Option<u32>,
    /// Units of work for each host or candidate besides, as `work_per_row` in the configuration [default: 20000]
    #[arg(long, value_name = "N")]
    pub work_per_row: Option<u32>,
    /// What the operator grants it, as `grants` in the configuration; may be repeated
    #[arg(long, value_enum, value_name = "WHAT")]
    pub grant: Vec<Grant>,
}

/// Options of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Which plugin
    #[command(flatten)]
    pub file: FileArgs,
    /// Hosts, or candidates of a cost module, in each call
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub hosts: u32,
    /// Calls that are measured
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub calls: u32,
}

/// Does it.
///
/// # Errors
/// What the region says; [`CliError::Disagrees`] for a plugin that must not be used; [`CliError::Refused`] for files.
pub async fn run(context: &mut Context, command: PluginCommand) -> Result<(), CliError> {
    match command {
        PluginCommand::List => list::run(context).await,
        PluginCommand::New(args) => kit::new(context, args),
        PluginCommand::Check(args) => kit::check(context, &args),
        PluginCommand::Bench(args) => kit::bench(context, &args),
    }
}
