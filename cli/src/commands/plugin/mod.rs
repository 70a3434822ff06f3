//! `ebbtide plugin`: what a region says of its plugins, and changes of them.

mod change;
mod list;
mod record;
mod shadow;

use clap::{Args, Subcommand, ValueEnum};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::resolve::settings;
use std::path::PathBuf;

const LIST: &str = "\
What the scheduler at the endpoint has loaded, and how it behaves there since then.

Examples:
  ebbtide plugin list
  ebbtide plugin list -o json | jq '.[] | select(.failures > 0)'";

const ADD: &str = "\
Loads and checks a plugin, and takes it into use in all schedulers of the region; decisions under way
end as they began. A component is kept in the database; one that is larger than 12 MB has to be on
the schedulers' own disks (--at).

Examples:
  ebbtide plugin add spread_racks --file spread_racks.wasm --multiplier 2
  ebbtide plugin add spread_racks --file spread_racks.wasm --shadow     # decides nothing
  ebbtide plugin add forecast --address http://127.0.0.1:7480 --deadline-ms 50";

const REMOVE: &str = "\
From all schedulers of the region, if it was added while they ran. One of a configuration file goes
where it came from.

Examples:
  ebbtide plugin remove spread_racks";

const CHANGE: &str = "\
For all schedulers of the region, also plugins of their configuration files. Kept until it is changed
again.

Examples:
  ebbtide plugin disable spread_racks
  ebbtide plugin enable spread_racks
  ebbtide plugin shadow spread_racks      # asked, and not followed";

const MULTIPLIER: &str = "\
How much a weigher counts, also one that is built in, in all schedulers of the region. Metadata of
aggregates counts more. `default`: as the configuration says.

Examples:
  ebbtide plugin set-multiplier spread_racks 2.5
  ebbtide plugin set-multiplier ram -- -1
  ebbtide plugin set-multiplier ram default";

const USE: &str = "\
What victims cost, in all schedulers of the region from now on: a cost module that was added, one of
the configuration files, or a built-in one. Kept until it is changed again.

Examples:
  ebbtide plugin add remaining_life --file remaining_life.wasm
  ebbtide plugin use remaining_life
  ebbtide plugin use partial_hour
  ebbtide plugin use --configured       # as engine.cost_module says";

const SHADOW: &str = "\
What plugins in shadow, and the ranking of [shadow], would have decided otherwise, as the scheduler at
the endpoint has seen it: how often, where to, and what the victims would have cost.

Examples:
  ebbtide plugin shadow-report
  ebbtide plugin shadow-report -o json | jq '.different / .decisions'";

const RECORD: &str = "\
Hosts, servers and all else that decisions depend on, as one JSON file, for `ebbtide-lab plugin try`.

Examples:
  ebbtide plugin record region.json";

/// What can be done with the plugins of a region.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// The plugins of a region's scheduler
    #[command(after_help = LIST)]
    List,
    /// Adds one to all schedulers of the region
    #[command(after_help = ADD)]
    Add(AddArgs),
    /// Removes one that was added
    #[command(after_help = REMOVE)]
    Remove(NameArgs),
    /// Uses one that was disabled or in shadow
    #[command(after_help = CHANGE)]
    Enable(NameArgs),
    /// Does not use one any more
    #[command(after_help = CHANGE)]
    Disable(NameArgs),
    /// Asks one without following it
    #[command(after_help = CHANGE)]
    Shadow(NameArgs),
    /// Chooses the cost module
    #[command(after_help = USE)]
    Use(UseArgs),
    /// How much a weigher counts
    #[command(after_help = MULTIPLIER)]
    SetMultiplier(MultiplierArgs),
    /// What would have been decided otherwise in shadow
    #[command(after_help = SHADOW)]
    ShadowReport,
    /// The region as a file, to try plugins on
    #[command(after_help = RECORD)]
    Record(RecordArgs),
}

/// What is done when a plugin fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnFailure {
    /// The request is decided without it.
    Ignore,
    /// The request is refused.
    Refuse,
}

/// Options of `add`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("from").required(true).args(["file", "at", "address"]))]
pub struct AddArgs {
    /// Its name: small letters, digits and _
    pub name: String,
    /// A component on this machine
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// A component on the schedulers' own disks
    #[arg(long, value_name = "PATH")]
    pub at: Option<String>,
    /// A service: http://HOST:PORT, https://HOST:PORT or unix:/PATH
    #[arg(long, value_name = "URL")]
    pub address: Option<String>,
    /// What the service calls it [default: its name]
    #[arg(long, value_name = "NAME", requires = "address")]
    pub plugin: Option<String>,
    /// A setting; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// How much it counts [default: what it says itself]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub multiplier: Option<f64>,
    /// What is done when it fails [default: engine.plugin_failure]
    #[arg(long, value_enum)]
    pub on_failure: Option<OnFailure>,
    /// Ask it without following it
    #[arg(long)]
    pub shadow: bool,
    /// Memory of one call, MiB [default: 64]
    #[arg(long, value_name = "N")]
    pub memory_mb: Option<u32>,
    /// Work of one call, million units [default: 20]
    #[arg(long, value_name = "N")]
    pub work_million: Option<u32>,
    /// Work for each host or candidate besides, units [default: 20000]
    #[arg(long, value_name = "N")]
    pub work_per_row: Option<u32>,
    /// How long a call of a service may take, ms [default: 100]
    #[arg(long, value_name = "N")]
    pub deadline_ms: Option<u32>,
    /// Calls of a service at a time [default: 8]
    #[arg(long, value_name = "N")]
    pub in_flight: Option<u32>,
    /// clock or randomness; may be repeated
    #[arg(long, value_name = "WHAT")]
    pub grant: Vec<String>,
    /// Take the place of one that was added before under this name
    #[arg(long)]
    pub replace: bool,
}

/// Which one.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// Its name
    pub name: String,
}

/// Options of `use`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["name", "configured"]))]
pub struct UseArgs {
    /// The cost module's name
    pub name: Option<String>,
    /// The one of the configuration files
    #[arg(long)]
    pub configured: bool,
}

/// Options of `set-multiplier`.
#[derive(Debug, Args)]
pub struct MultiplierArgs {
    /// The weigher's name
    pub name: String,
    /// The multiplier, or `default`
    #[arg(allow_hyphen_values = true)]
    pub multiplier: String,
}

/// Options of `record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Where to
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Runs a command about plugins.
///
/// # Errors
/// What the region says; [`CliError::Refused`] for files.
pub async fn run(context: &mut Context, command: PluginCommand) -> Result<(), CliError> {
    match command {
        PluginCommand::List => list::run(context).await,
        PluginCommand::Add(args) => change::add(context, args).await,
        PluginCommand::Remove(args) => change::remove(context, args).await,
        PluginCommand::Enable(args) => change::enable(context, args, false).await,
        PluginCommand::Shadow(args) => change::enable(context, args, true).await,
        PluginCommand::Disable(args) => change::disable(context, args).await,
        PluginCommand::Use(args) => change::use_cost_module(context, args).await,
        PluginCommand::SetMultiplier(args) => change::set_multiplier(context, args).await,
        PluginCommand::ShadowReport => shadow::run(context).await,
        PluginCommand::Record(args) => record::run(context, &args).await,
    }
}
