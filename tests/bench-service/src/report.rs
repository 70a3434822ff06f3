//! What came out, and what bounds it.

use crate::BenchOptions;
use crate::load::LoadResult;
use crate::meters::Meters;
use anyhow::Result;
use ebbtide_bench::stats::rounded;
use ebbtide_bench::{Latency, Machine};
use serde::Serialize;
use std::time::Duration;

/// From this share of the processors on the machine is the limit: the rest is noise of measuring.
const MACHINE_IS_FULL: f64 = 0.9;
/// From this share of the time on the one task that owns the region is the limit.
const REGION_ACTOR_IS_FULL: f64 = 0.85;

/// The measured span.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) before: Meters,
    pub(crate) after: Meters,
    /// How long the broker took to confirm what was left at the end.
    pub(crate) drained: Duration,
    pub(crate) done: LoadResult,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct LoadReport {
    hosts: u32,
    preempting: bool,
    /// What was asked.
    call: &'static str,
    clients: u32,
    database: String,
    /// How many schedulers were active.
    schedulers: u32,
    /// How long was measured.
    seconds: f64,
    placements: u64,
    placements_per_s: f64,
    victims: u64,
    /// As the callers saw it.
    #[serde(flatten)]
    latency: Latency,
    /// Mean time of a decision within the region, in microseconds.
    decision_mean_us: f64,
    /// Mean time of a transaction, in microseconds.
    commit_mean_us: f64,
    /// Placements in one transaction, on average.
    placements_per_commit: f64,
    /// Share of the time in which the owner of the region decided.
    deciding: f64,
    /// Share of the time in which a transaction was written.
    committing: f64,
    /// Decisions made before a scheduler's turn that were kept, in a second.
    early_kept_per_s: f64,
    /// Those that had to be made again because of a conflict, in a second.
    conflicts_per_s: f64,
    /// Messages that the broker confirmed in a second.
    confirmed_per_s: f64,
    /// How long the broker took to confirm what was left at the end, in seconds.
    drain_seconds: f64,
    /// Processors that the scheduler kept busy.
    scheduler_cores: f64,
    /// Processors that the load itself kept busy.
    load_cores: f64,
    /// Processors that everybody else kept busy, the broker first of all.
    other_cores: f64,
    /// What bounds it, in words.
    bound_by: String,
    machine: Machine,
}

fn over(one: f64, other: f64) -> f64 {
    if other > 0.0 {
        rounded(one / other)
    } else {
        0.0
    }
}

impl LoadReport {
    pub(crate) fn of(options: &BenchOptions, window: &Window, machine: Machine) -> Self {
        let seconds = window.done.elapsed.as_secs_f64();
        let moved = |meter: fn(&Meters) -> f64| meter(&window.after) - meter(&window.before);
        let placements = window.done.times.len() as u64;
        let (scheduler, load) = (moved(|m| m.scheduler_cpu), moved(|m| m.load_cpu));
        let others = (moved(|m| m.machine_cpu) - scheduler - load).max(0.0);
        let mut report = Self {
            hosts: options.hosts,
            preempting: options.preempting,
            call: options.call.name(),
            clients: options.clients,
            database: format!("{:?}", options.database).to_lowercase(),
            schedulers: options.schedulers,
            seconds: rounded(seconds),
            placements,
            placements_per_s: over(placements as f64, seconds),
            victims: window.done.victims.len() as u64,
            latency: Latency::of(&window.done.times),
            decision_mean_us: over(moved(|m| m.decision_seconds) * 1e6, moved(|m| m.decisions)),
            commit_mean_us: over(moved(|m| m.commit_seconds) * 1e6, moved(|m| m.commits)),
            placements_per_commit: over(placements as f64, moved(|m| m.commits)),
            deciding: over(moved(|m| m.decision_seconds), seconds),
            committing: over(moved(|m| m.commit_seconds), seconds),
            early_kept_per_s: over(moved(|m| m.kept), seconds),
            conflicts_per_s: over(moved(|m| m.conflicts), seconds),
            confirmed_per_s: over(moved(|m| m.published), seconds),
            drain_seconds: rounded(window.drained.as_secs_f64()),
            scheduler_cores: over(scheduler, seconds),
            load_cores: over(load, seconds),
            other_cores: over(others, seconds),
            bound_by: String::new(),
            machine,
        };
        report.bound_by = report.bound();
        report
    }

    /// What would have to become faster for the rate to grow.
    fn bound(&self) -> String {
        let busy = self.scheduler_cores + self.load_cores + self.other_cores;
        let cores = self.machine.cores as f64;
        let region_actor = self.deciding + self.committing;
        let larger = if self.deciding > self.committing {
            "deciding"
        } else {
            "writing transactions"
        };
        if busy >= MACHINE_IS_FULL * cores {
            format!(
                "the machine: {busy:.1} of {cores} processors are busy (scheduler {:.1}, load {:.1}, broker and others {:.1})",
                self.scheduler_cores, self.load_cores, self.other_cores
            )
        } else if region_actor >= REGION_ACTOR_IS_FULL {
            format!(
                "the owner of the region: {:.0} % of the time deciding, {:.0} % writing transactions; first of all {larger}",
                self.deciding * 100.0,
                self.committing * 100.0
            )
        } else {
            format!(
                "the callers: the owner of the region has nothing to do for {:.0} % of the time; use more --clients",
                (1.0 - region_actor).max(0.0) * 100.0
            )
        }
    }

    /// On standard output.
    pub(crate) fn print(&self, json: bool) -> Result<()> {
        if json {
            say!("{}", serde_json::to_string_pretty(self)?);
            return Ok(());
        }
        let ms = |us: f64| format!("{:.2} ms", us / 1000.0);
        let what = if self.preempting {
            "preempting placements"
        } else {
            "placements"
        };
        say!(
            "{:.0} {what}/s ({} in {:.1} s)",
            self.placements_per_s,
            self.placements,
            self.seconds
        );
        say!(
            "latency: p50 {}, p99 {}",
            ms(self.latency.p50_us),
            ms(self.latency.p99_us)
        );
        say!(
            "decision: {}, transaction: {} for {:.1} placements",
            ms(self.decision_mean_us),
            ms(self.commit_mean_us),
            self.placements_per_commit
        );
        if self.schedulers > 1 {
            say!(
                "{} schedulers: {:.0} early decisions/s kept, {:.0} conflicts/s",
                self.schedulers,
                self.early_kept_per_s,
                self.conflicts_per_s
            );
        }
        say!(
            "broker: {:.0} messages/s confirmed, all {:.2} s after the end",
            self.confirmed_per_s,
            self.drain_seconds
        );
        say!("bounded by {}", self.bound_by);
        Ok(())
    }
}
