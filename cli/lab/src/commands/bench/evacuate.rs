//! `ebbtide-lab bench evacuate`: evacuations a second from end to end, and what grows meanwhile.

use super::program;
use clap::Args;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;

const EXAMPLES: &str = "\
Starts a private RabbitMQ, a scheduler with its own database, and agents with simulated hypervisors of 8
places each, all of them full of preemptible servers. Each caller asks for a normal server on a host of its own, waits
until it runs on the room that was taken, deletes it, and fills its place with a preemptible one again. Memory of
scheduler and agents and the messages that are not sent yet are sampled every ten seconds (--output json
has all samples); in the end the region is audited, and a finding is an error.

Needs RabbitMQ's package, and ebbtide-bench-service and ebbtide-scheduler beside this program:
cargo build --release -p ebbtide-lab -p ebbtide-bench-service -p ebbtide-scheduler

Examples:
  ebbtide-lab bench evacuate --hosts 200 --clients 200 --driver-ms 10
  ebbtide-lab bench evacuate --hosts 8 --clients 4 --grace 30 --seconds 120 --output json";

/// Options of `bench evacuate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EvacuateArgs {
    /// How many hosts, of 8 places each
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub hosts: u32,
    /// Callers, each with one evacuation after another; no more than hosts
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub clients: u32,
    /// How long is measured
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// The grace period of the victims
    #[arg(long, default_value_t = 0, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(0..=900))]
    pub grace: u32,
    /// How long each call of a simulated hypervisor takes
    #[arg(long, default_value_t = 50, value_name = "MILLISECONDS", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub driver_ms: u32,
    /// A process for each agent, as in a region, instead of one for all
    #[arg(long)]
    pub agent_processes: bool,
    /// Where the state is kept
    #[arg(long, default_value = "sqlite", value_parser = ["sqlite", "mariadb", "postgres"])]
    pub database: String,
}

/// Runs the program and shows what it says.
///
/// # Errors
/// See [`program::run`].
pub(super) fn run(context: &mut Context, args: &EvacuateArgs) -> Result<(), CliError> {
    let words = [
        "--evacuate",
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
    let mut words = words.map(str::to_owned).to_vec();
    words.extend(args.agent_processes.then(|| "--agent-processes".to_owned()));
    let shown = [
        "hosts",
        "clients",
        "grace_seconds",
        "driver_ms",
        "database",
        "evacuations",
        "evacuations_per_s",
        "p50_us",
        "p99_us",
        "scheduler_cpu_ms",
        "broker_cpu_ms",
        "load_cpu_ms",
    ];
    program::run(context, &words, &shown)
}
