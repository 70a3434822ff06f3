//! `ebbtide bench service`: runs the program beside this one that starts a broker and a scheduler and asks.
//!
//! It is a program of its own because it needs the test harness, the bus and the whole service, and this command only the
//! contract.

use crate::Context;
use crate::errors::CliError;
use crate::json::Json;
use crate::output::{Cell, Details};
use clap::Args;
use ebbtide_bench::BenchError;
use std::process::{Command, Stdio};

const EXAMPLES: &str = "\
Starts a private RabbitMQ and a scheduler with its own database, registers hosts, and lets callers ask one
request after another over connections of their own. Every placement is durable before it is answered. With
--preempting the hosts are full of preemptible instances, so that every placement ends one, and its notice
goes out over RabbitMQ. \"bound_by\" says what would have to become faster for the rate to grow.

Needs RabbitMQ's package, and ebbtide-bench-service and ebbtide-scheduler beside this program:
cargo build --release -p ebbtide-cli -p ebbtide-bench-service -p ebbtide-scheduler

Examples:
  ebbtide bench service --hosts 10000
  ebbtide bench service --hosts 10000 --preempting --clients 64 --seconds 10 --output json
  ebbtide bench service --hosts 1000 --preempting --database mariadb --schedulers 4";

/// The program that measures.
const PROGRAM: &str = "ebbtide-bench-service";

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
/// [`BenchError::Service`].
pub(super) fn run(context: &mut Context, args: &ServiceArgs) -> Result<(), CliError> {
    let failed = |problem: String| CliError::from(BenchError::Service(problem));
    let here = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let program = here.with_file_name(PROGRAM);
    if !program.exists() {
        return Err(failed(format!("{} is not there", program.display())));
    }
    let mut command = Command::new(&program);
    command
        .args(["--hosts", &args.hosts.to_string()])
        .args(["--clients", &args.clients.to_string()])
        .args(["--seconds", &args.seconds.to_string()])
        .args(["--call", &args.call])
        .args(["--schedulers", &args.schedulers.to_string()])
        .args(["--database", &args.database, "--json"])
        .args(args.preempting.then_some("--preempting"))
        .stdout(Stdio::piped());
    if context.output.is_quiet() {
        command.stderr(Stdio::null());
    }
    let done = command
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .map_err(|error| failed(format!("{}: {error}", program.display())))?;
    if !done.status.success() {
        return Err(failed(format!("{PROGRAM} ended with {}", done.status)));
    }
    let json: Json = serde_json::from_slice(&done.stdout)
        .map_err(|error| failed(format!("{PROGRAM} did not print JSON: {error}")))?;
    let value = |key: &str| match json.clone().only(&[key]) {
        Json::Object(pairs) => pairs
            .into_iter()
            .next()
            .map_or(Json::Null, |(_, value)| value),
        other => other,
    };
    let cell = |key: &str| match value(key) {
        Json::Text(text) => Cell::new(text),
        Json::Number(number) => Cell::new(number),
        Json::Bool(yes) => Cell::new(yes),
        _ => Cell::new("-"),
    };
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
    context.output.details(Details {
        fields: shown.map(|key| (key, cell(key))).to_vec(),
        json,
    })
}
