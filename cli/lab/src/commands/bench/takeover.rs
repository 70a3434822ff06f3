//! `ebbtide-lab bench takeover`: how long no scheduler is on duty after one dies.

use super::program;
use clap::Args;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;

const EXAMPLES: &str = "\
Starts a private RabbitMQ and database, two schedulers on them, and an agent with a simulated hypervisor that is full of
preemptible servers. The scheduler on duty is killed, and at the same moment the other one is asked for a normal
server. Measured is how long it takes until that is answered, until the other one is on duty, and until the server
runs on the room of its victim. Then the first one is replaced, and it begins anew. In the end the region is audited,
and a finding is an error.

Needs RabbitMQ's and the database's packages, and ebbtide-bench-service and ebbtide-scheduler beside this program:
cargo build --release -p ebbtide-lab -p ebbtide-bench-service -p ebbtide-scheduler

Examples:
  ebbtide-lab bench takeover
  ebbtide-lab bench takeover --by stop --rounds 20 --lease 3
  ebbtide-lab bench takeover --by term --database postgres --output json";

/// Options of `bench takeover`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TakeoverArgs {
    /// How many schedulers end, one after another
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// How they end: killed, stopped (their connections stay open), or asked to end
    #[arg(long, default_value = "kill", value_parser = ["kill", "stop", "term"])]
    pub by: String,
    /// How long a scheduler that has fallen silent keeps its duty from others
    #[arg(long, default_value_t = 6, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(2..=60))]
    pub lease: u32,
    /// The grace period of the victims
    #[arg(long, default_value_t = 0, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(0..=900))]
    pub grace: u32,
    /// How long each call of a simulated hypervisor takes
    #[arg(long, default_value_t = 50, value_name = "MILLISECONDS", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub driver_ms: u32,
    /// Where the state is kept
    #[arg(long, default_value = "mariadb", value_parser = ["mariadb", "postgres"])]
    pub database: String,
}

/// Runs the program and shows what it says.
///
/// # Errors
/// See [`program::run`].
pub(super) fn run(context: &mut Context, args: &TakeoverArgs) -> Result<(), CliError> {
    let words = [
        "--takeovers",
        &args.rounds.to_string(),
        "--by",
        &args.by,
        "--lease",
        &args.lease.to_string(),
        "--grace",
        &args.grace.to_string(),
        "--driver-ms",
        &args.driver_ms.to_string(),
        "--database",
        &args.database,
    ];
    let shown = [
        "database",
        "by",
        "lease_seconds",
        "rounds",
        "answered_p50_ms",
        "answered_max_ms",
        "on_duty_p50_ms",
        "on_duty_max_ms",
        "running_p50_ms",
        "running_max_ms",
    ];
    program::run(context, &words.map(str::to_owned), &shown)
}
