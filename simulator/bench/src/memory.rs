//! What a host and an instance take in memory.
//!
//! The table is filled in two steps, first hosts only, then instances, and each time the kernel is
//! asked how much memory of the process is resident (`/proc/self/smaps_rollup`, which is exact).
//! That counts everything: columns, names, indexes, the allocator's own needs and its waste. What a
//! growing vector has reserved but never touched is not resident and not counted.

use crate::BenchError;
use crate::cloud::{Builder, CloudPlan, Fill};
use crate::progress::Progress;
use crate::stats::rounded;
use ebbtide_engine::HostTable;
use serde::Serialize;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct MemoryOptions {
    pub hosts: u32,
    /// How many instances on them together, every second one preemptible.
    pub instances: u32,
    /// Another seed, other instances.
    pub seed: u64,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryReport {
    pub hosts: u32,
    pub instances: u32,
    /// Resident bytes for each host, without instances.
    pub bytes_per_host: f64,
    /// Resident bytes for each instance.
    pub bytes_per_instance: f64,
    /// Resident memory of the whole table, in MiB.
    pub table_mib: f64,
    /// How it was measured.
    pub measured_by: &'static str,
    pub seed: u64,
}

/// Builds the table in two steps and measures.
///
/// # Errors
/// An option out of its range; a system that does not tell.
pub fn run(
    options: &MemoryOptions,
    progress: &mut dyn Progress,
) -> Result<MemoryReport, BenchError> {
    for (name, value) in [("hosts", options.hosts), ("instances", options.instances)] {
        if value == 0 {
            return Err(BenchError::Option(format!("--{name} 0: use 1 or more")));
        }
    }
    let plan = CloudPlan {
        hosts: options.hosts,
        fill: Fill::Holding {
            instances: options.instances,
        },
        seed: options.seed,
    };
    // A small table first: code and the allocator's first pages are then there already.
    CloudPlan {
        hosts: 64,
        ..plan_of(1000)
    }
    .table(&mut crate::NoProgress)?;
    let builder = Builder::new()?;
    let mut table = HostTable::new();
    let before = resident_bytes()?;
    progress.begin("putting hosts", u64::from(options.hosts));
    for number in 0..options.hosts {
        builder.put_host(&mut table, number, &plan);
        note(progress, number);
    }
    let with_hosts = resident_bytes()?;
    progress.begin("putting instances", u64::from(options.hosts));
    for number in 0..options.hosts {
        builder.put_guests(&mut table, number, &plan.host(number))?;
        note(progress, number);
    }
    let with_all = resident_bytes()?;
    let there = table.instance_count() as u64;
    if there != u64::from(options.instances) {
        return Err(BenchError::System(format!(
            "the table holds {there} instances instead of {}",
            options.instances
        )));
    }
    let each = |bytes: u64, count: u32| rounded(bytes as f64 / f64::from(count));
    Ok(MemoryReport {
        hosts: options.hosts,
        instances: options.instances,
        bytes_per_host: each(with_hosts.saturating_sub(before), options.hosts),
        bytes_per_instance: each(with_all.saturating_sub(with_hosts), options.instances),
        table_mib: rounded(with_all.saturating_sub(before) as f64 / 1_048_576.0),
        measured_by: "resident memory of the process (Rss of /proc/self/smaps_rollup)",
        seed: options.seed,
    })
}

fn plan_of(instances: u32) -> CloudPlan {
    CloudPlan {
        hosts: 1,
        fill: Fill::Holding { instances },
        seed: 0,
    }
}

fn note(progress: &mut dyn Progress, number: u32) {
    if number.is_multiple_of(1024) {
        progress.set(u64::from(number));
    }
}

/// Resident memory of this process.
fn resident_bytes() -> Result<u64, BenchError> {
    const FILE: &str = "/proc/self/smaps_rollup";
    let text = std::fs::read_to_string(FILE)
        .map_err(|error| BenchError::System(format!("{FILE}: {error}")))?;
    let kib = text.lines().find_map(|line| {
        line.strip_prefix("Rss:")?
            .split_whitespace()
            .next()?
            .parse::<u64>()
            .ok()
    });
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| BenchError::System(format!("{FILE} has no line Rss")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoProgress;

    #[test]
    fn hosts_and_instances_take_memory() {
        let options = MemoryOptions {
            hosts: 2000,
            instances: 40_000,
            seed: 1,
        };
        let report = run(&options, &mut NoProgress).unwrap();
        assert!(
            report.bytes_per_host > 50.0 && report.bytes_per_instance > 20.0,
            "{report:?}"
        );
        assert!(report.table_mib > 1.0, "{report:?}");
    }
}
