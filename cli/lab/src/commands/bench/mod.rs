//! `ebbtide-lab bench`: how fast the engine is, measured on this machine, with answers that are
//! checked. No region is needed.
//!
//! One benchmark a file. The workloads and measurements are those of `ebbtide-bench`; here are
//! options, tables and JSON.

mod chart;
mod evacuate;
mod figure2;
mod memory;
mod nova;
mod preempt;
mod program;
mod report;
mod request;
mod service;
mod sizing;
mod takeover;

pub(crate) use report::warn_if_debug;

use clap::Subcommand;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;

const HELP: &str = "\
Workloads come from a seed: the same options give the same clouds and requests everywhere. Times are
wall-clock times of one thread; keep the machine quiet. Build with --release: figures of a debug build
mean nothing, and a warning says so. docs/reference/benchmarks.md has method, figures
and commands.";

/// What can be measured.
#[derive(Debug, Subcommand)]
#[command(after_help = HELP)]
pub enum BenchCommand {
    /// Requests that must preempt, on saturated hosts: the globally cheapest victims
    Preempt(preempt::PreemptArgs),
    /// Ordinary requests that need no victims
    Request(request::RequestArgs),
    /// What a host and an instance take in memory
    Memory(memory::MemoryArgs),
    /// The paper's figure 2: plain, preemptible-aware and retry scheduler compared
    Figure2(figure2::Figure2Args),
    /// As Nova decides, on Nova's own benchmark input, against Nova's answers and time
    Nova(nova::NovaArgs),
    /// Placements a second through the service: gRPC, durable claims, notices on RabbitMQ
    Service(service::ServiceArgs),
    /// Evacuations a second from end to end: agents, simulated hypervisors, and what grows
    /// meanwhile
    Evacuate(evacuate::EvacuateArgs),
    /// What a region of so many hosts needs: processor time, memory, and how its database grows
    Sizing(sizing::SizingArgs),
    /// How long no scheduler is on duty when one dies, hangs or ends
    Takeover(takeover::TakeoverArgs),
}

/// Measures and shows.
///
/// # Errors
/// [`crate::error::LabError::Bench`] for options and files, [`CliError::Disagrees`] if an answer
/// was wrong.
pub fn run(context: &mut Context, command: BenchCommand) -> Result<(), CliError> {
    warn_if_debug(context);
    match command {
        BenchCommand::Preempt(args) => preempt::run(context, args),
        BenchCommand::Request(args) => request::run(context, args),
        BenchCommand::Memory(args) => memory::run(context, args),
        BenchCommand::Figure2(args) => figure2::run(context, args),
        BenchCommand::Nova(args) => nova::run(context, args),
        BenchCommand::Service(args) => service::run(context, &args),
        BenchCommand::Evacuate(args) => evacuate::run(context, &args),
        BenchCommand::Sizing(args) => sizing::run(context, &args),
        BenchCommand::Takeover(args) => takeover::run(context, &args),
    }
}
