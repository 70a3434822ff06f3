//! `ebbtide-lab bench service`: placements a second through the whole service.

use super::program;
use clap::Args;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;

const EXAMPLES: &str = "\
Starts a private RabbitMQ and a scheduler with its own database, registers hosts, and lets callers ask one
request after another over connections of their own. Every placement is durable before it is answered. With
--preempting the hosts are full of preemptible instances, so that every placement ends one, and its notice
goes out over RabbitMQ. \"bound_by\" says what would have to become faster for the rate to grow.

Needs RabbitMQ's package, and ebbtide-bench-service and ebbtide-scheduler beside this program:
cargo build --release -p ebbtide-lab -p ebbtide-bench-service -p ebbtide-scheduler

Examples:
  ebbtide-lab bench service --hosts 10000
  ebbtide-lab bench service --hosts 10000 --preempting --clients 64 --seconds 10 --output json
  ebbtide-lab bench service --hosts 1000 --preempting --database mariadb --schedulers 4";

/// Options of `bench service`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServiceArgs {
    /// How many hosts
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub hosts: u32,
    /// Fill the cloud with preemptible instances first: every placement ends one
    #[arg(long)]
    pub preempting: bool,
    /// Callers that ask one request after another
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub clients: u32,
    /// How long is measured
    #[arg(long, default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// What is asked: places only, as nova-conductor asks, or servers that are started as well
    #[arg(long, default_value = "select-destinations", value_parser = ["select-destinations", "create-servers"])]
    pub call: String,
    /// Schedulers that are active at once; callers are spread over them. Not with sqlite
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub schedulers: u32,
    /// Where the state is kept
    #[arg(long, default_value = "sqlite", value_parser = ["sqlite", "mariadb", "postgres"])]
    pub database: String,
}

/// Runs the program and shows what it says.
///
/// # Errors
/// See [`program::run`].
pub(super) fn run(context: &mut Context, args: &ServiceArgs) -> Result<(), CliError> {
    let words = [
        "--hosts",
        &args.hosts.to_string(),
        "--clients",
        &args.clients.to_string(),
        "--seconds",
        &args.seconds.to_string(),
        "--call",
        &args.call,
        "--schedulers",
        &args.schedulers.to_string(),
        "--database",
        &args.database,
    ];
    let mut words = words.map(str::to_owned).to_vec();
    words.extend(args.preempting.then(|| "--preempting".to_owned()));
    let shown = [
        "hosts",
        "preempting",
        "call",
        "database",
        "schedulers",
        "clients",
        "placements",
        "placements_per_s",
        "victims",
        "p50_us",
        "p99_us",
        "decision_mean_us",
        "commit_mean_us",
        "placements_per_commit",
        "early_kept_per_s",
        "conflicts_per_s",
        "confirmed_per_s",
        "drain_seconds",
        "bound_by",
    ];
    program::run(context, &words, &shown)
}
