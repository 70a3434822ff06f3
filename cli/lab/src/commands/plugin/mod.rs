//! `ebbtide-lab plugin`: the kit of plugin authors, and a trial on a recorded region.

#[cfg(feature = "wasm")]
mod kit;
mod trial;
#[cfg(not(feature = "wasm"))]
mod unsupported;

#[cfg(not(feature = "wasm"))]
use unsupported as kit;

use clap::{Args, Subcommand, ValueEnum};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::resolve::settings;
use std::path::PathBuf;

const NEW: &str = "\
Makes a directory with a project that builds and passes its tests at once; its README says how to go on.

Examples:
  ebbtide-lab plugin new spread_racks
  ebbtide-lab plugin new --kind cost remaining_life
  ebbtide-lab plugin new --lang python spread_racks";

const CHECK: &str = "\
Tries everything that a plugin must do: numbers for any hosts, the same ones every time and in any
order, within the limits. Exit code 1 if it must not be used. Needs no region.

Examples:
  ebbtide-lab plugin check spread_racks.wasm
  ebbtide-lab plugin check --address unix:/run/ebbtide/forecast.sock --plugin forecast
  ebbtide-lab plugin check spread_racks.wasm --set key=rack -o json
  ebbtide-lab plugin check in_python.wasm --memory-mb 128 --work-million 100
  ebbtide-lab plugin check by_season.wasm --grant clock";

const BENCH: &str = "\
Measures calls over made-up hosts (or candidates of a cost module), from the columns in the
scheduler's memory to the numbers there. Needs no region; build ebbtide with --release.

Examples:
  ebbtide-lab plugin bench spread_racks.wasm
  ebbtide-lab plugin bench --address http://127.0.0.1:7480 --plugin forecast --hosts 1000
  ebbtide-lab plugin bench spread_racks.wasm --hosts 10000 -o json | jq .ns_per_host";

const TRY: &str = "\
The ranking that a plugin gives on a recorded region, beside the one without it. Needs no region.

Examples:
  ebbtide plugin record region.json
  ebbtide-lab plugin try spread_racks.wasm --snapshot region.json --flavor m1.large
  ebbtide-lab plugin try --address http://127.0.0.1:7480 --plugin forecast --snapshot region.json";

/// What can be done with a plugin before a region has it.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// The ranking that a plugin gives on a recorded region
    #[command(after_help = TRY)]
    Try(TryArgs),
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
pub enum TemplateKind {
    /// Says how good hosts are.
    Weigher,
    /// Says what victims cost.
    Cost,
    /// Says which hosts pass; in Rust and Python.
    Filter,
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

/// Options of `try`.
#[derive(Debug, Args)]
pub struct TryArgs {
    /// The component
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// A service instead: http://HOST:PORT, https://HOST:PORT or unix:/PATH
    #[arg(long, value_name = "URL", conflicts_with = "file")]
    pub address: Option<String>,
    /// What the service calls it
    #[arg(long, value_name = "NAME", requires = "address")]
    pub plugin: Option<String>,
    /// A record of a region
    #[arg(long, value_name = "FILE")]
    pub snapshot: PathBuf,
    /// What is to be placed: a flavor of the record
    #[arg(long, value_name = "NAME")]
    pub flavor: Option<String>,
    /// For whom [default: --project of ebbtide]
    #[arg(long, value_name = "PROJECT")]
    pub project: Option<String>,
    /// Only in this zone
    #[arg(long, value_name = "ZONE")]
    pub availability_zone: Option<String>,
    /// How many
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub count: u32,
    /// How much it counts [default: what it says itself]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub multiplier: Option<f64>,
    /// A setting; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Options of `new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Its name: small letters, digits and _
    pub name: String,
    /// What it is
    #[arg(long, value_enum, default_value = "weigher")]
    pub kind: TemplateKind,
    /// In which language
    #[arg(long, value_enum, default_value = "rust")]
    pub lang: Lang,
    /// Where to [default: a directory with its name, here]
    #[arg(long, value_name = "DIRECTORY")]
    pub into: Option<PathBuf>,
}

/// A plugin, and what it may take.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["file", "address"]))]
pub struct FileArgs {
    /// The component
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// A service instead: http://HOST:PORT, https://HOST:PORT or unix:/PATH
    #[arg(long, value_name = "URL", requires = "plugin")]
    pub address: Option<String>,
    /// What the service calls it
    #[arg(long, value_name = "NAME", requires = "address")]
    pub plugin: Option<String>,
    /// How long a call of a service may take, in ms [default: 100]
    #[arg(long, value_name = "N", requires = "address", value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub deadline_ms: Option<u32>,
    /// A setting, as the operator would write it; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Memory of a call, in MiB, as `memory_mb` in the configuration [default: 64]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub memory_mb: Option<u32>,
    /// Work of a call, in million units, as `work_million` in the configuration [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub work_million: Option<u32>,
    /// Units of work for each host or candidate besides, as `work_per_row` in the configuration
    /// [default: 20000]
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

/// What an operator can grant a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Grant {
    /// The time
    Clock,
    /// Real random numbers
    Randomness,
}

/// Runs a command about plugins.
///
/// # Errors
/// [`CliError::Disagrees`] for a plugin that must not be used; [`CliError::Refused`] for files.
pub fn run(context: &mut Context, command: PluginCommand) -> Result<(), CliError> {
    match command {
        PluginCommand::Try(args) => trial::run(context, &args),
        PluginCommand::New(args) => kit::new(context, args),
        PluginCommand::Check(args) => kit::check(context, &args),
        PluginCommand::Bench(args) => kit::bench(context, &args),
    }
}
