//! `ebbtide-lab bench memory`.

use super::report::{ProgressDisplay, json, where_measured};
use crate::error::LabError;
use clap::Args;
use ebbtide_bench::Machine;
use ebbtide_bench::memory::{MemoryOptions, run as measure};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::output::{Details, TableCell};

const EXAMPLES: &str = "\
The table is filled in two steps, hosts and then instances, and each time the kernel is asked how much of
the process is resident in memory. That counts everything: columns, names, indexes, and the allocator's waste.

Examples:
  ebbtide-lab bench memory
  ebbtide-lab bench memory --hosts 100000 --instances 1600000 --output json";

/// Options of `bench memory`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MemoryArgs {
    /// How many hosts
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    pub hosts: u32,
    /// How many instances on all of them together
    #[arg(long, default_value_t = 1_600_000, value_name = "N")]
    pub instances: u32,
    /// Another seed, other instances
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
}

/// Measures and shows.
///
/// # Errors
/// Options; a system that does not tell.
pub(super) fn run(context: &mut Context, args: MemoryArgs) -> Result<(), CliError> {
    let options = MemoryOptions {
        hosts: args.hosts,
        instances: args.instances,
        seed: args.seed,
    };
    let report = measure(&options, &mut ProgressDisplay::new(context)).map_err(LabError::Bench)?;
    let machine = Machine::here();
    let json = json(&report)?.with("machine", json(&machine)?);
    let bytes = |bytes: f64| TableCell::new(format!("{bytes:.0}")).value(bytes);
    context.output.details(Details {
        fields: vec![
            ("hosts", TableCell::new(report.hosts)),
            ("instances", TableCell::new(report.instances)),
            ("bytes_per_host", bytes(report.bytes_per_host)),
            ("bytes_per_instance", bytes(report.bytes_per_instance)),
            ("table_mib", bytes(report.table_mib)),
            ("measured_by", TableCell::new(report.measured_by)),
        ],
        json,
    })?;
    if context.output.is_table() {
        context.output.say(&where_measured(&machine));
    }
    Ok(())
}
