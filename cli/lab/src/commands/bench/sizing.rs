//! `ebbtide-lab bench sizing`: what a region of so many hosts needs.

use super::program;
use clap::Args;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;

const EXAMPLES: &str = "\
Starts a private RabbitMQ, a scheduler with its own database, and agents with simulated hypervisors of 8
places each, all of them full of preemptible servers. Measures at rest, when agents only send heartbeats, and
then while callers displace one server after another. docs/operate/sizing.md says what to do with the figures.

Needs RabbitMQ's package, and ebbtide-bench-service and ebbtide-scheduler beside this program:
cargo build --release -p ebbtide-lab -p ebbtide-bench-service -p ebbtide-scheduler

Examples:
  ebbtide-lab bench sizing --hosts 1000 --seconds 60
  ebbtide-lab bench sizing --hosts 200 --database postgres --output json";

/// Options of `bench sizing`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SizingArgs {
    /// How many hosts, of 8 places each
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub hosts: u32,
    /// Callers, each with one evacuation after another; no more than hosts
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub clients: u32,
    /// How long is measured at rest, and again while servers are displaced
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// The grace period of the victims
    #[arg(long, default_value_t = 0, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(0..=900))]
    pub grace: u32,
    /// How long each call of a simulated hypervisor takes
    #[arg(long, default_value_t = 50, value_name = "MILLISECONDS", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub driver_ms: u32,
    /// Where the state is kept
    #[arg(long, default_value = "sqlite", value_parser = ["sqlite", "mariadb", "postgres"])]
    pub database: String,
}

/// Runs the program and shows what it says.
///
/// # Errors
/// See [`program::run`].
pub(super) fn run(context: &mut Context, args: &SizingArgs) -> Result<(), CliError> {
    let words = [
        "--sizing",
        "--hosts",
        &args.hosts.to_string(),
        "--clients",
        &args.clients.to_string(),
        "--seconds",
        &args.seconds.to_string(),
        "--grace",
        &args.grace.to_string(),
        "--driver-ms",
        &args.driver_ms.to_string(),
        "--database",
        &args.database,
    ];
    let words = words.map(str::to_owned).to_vec();
    let shown = [
        "hosts",
        "servers",
        "database",
        "seconds",
        "scheduler_cpu_percent_at_rest",
        "broker_cpu_percent_at_rest",
        "scheduler_mib",
        "broker_mib",
        "database_mib",
        "database_bytes_per_hour_at_rest",
        "evacuations",
        "database_bytes_per_evacuation",
        "scheduler_cpu_ms_per_evacuation",
        "scheduler_mib_after",
    ];
    program::run(context, &words, &shown)
}
