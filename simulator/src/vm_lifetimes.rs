//! What became of the preemptible VMs of a replay: how long each ran, who ended it, and what it
//! would still have run.
//!
//! The trace says when its user would have deleted a VM. So what an interruption has cost is known
//! afterwards, and cost modules and weighers, which cannot know it, can be measured by it.

use serde::Serialize;
use std::fmt::Write as _;

/// Who ended a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VmEnd {
    /// The provider, for a normal VM.
    Preempted,
    /// Its user.
    Stopped,
}

/// One preemptible VM that is not there any more.
#[derive(Debug, Clone, PartialEq)]
pub struct VmLifetime {
    pub flavor: String,
    /// Its virtual CPUs.
    pub vcpus: u32,
    /// How long it ran, in seconds.
    pub seconds: f64,
    /// Who ended it.
    pub ended: VmEnd,
    /// How much longer its user would have let it run, in seconds; up to the end of the trace if
    /// that says no end. 0 for the stopped.
    pub lost_seconds: f64,
}

/// All of them, added up.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LifeTotals {
    /// VMs that count as short work: those that their users would have run for so many seconds at
    /// most.
    pub short_seconds: f64,
    /// Short ones that ended.
    pub short: u64,
    /// Those of them that were interrupted.
    pub short_interrupted: u64,
    /// Longer ones that ended.
    pub long: u64,
    /// Those of them that were interrupted.
    pub long_interrupted: u64,
    /// What the interrupted had run, in VM-hours.
    pub interrupted_lived_hours: f64,
    /// What they would still have run, in VM-hours.
    pub lost_hours: f64,
    /// The same in CPU-hours.
    pub lost_cpu_hours: f64,
    /// Each of them, in the order of their ends.
    #[serde(skip)]
    pub each: Vec<VmLifetime>,
}

const HOUR: f64 = 3600.0;

impl LifeTotals {
    /// None yet; short work takes so many seconds at most.
    #[must_use]
    pub fn new(short_seconds: f64) -> Self {
        Self {
            short_seconds,
            ..Self::default()
        }
    }

    /// One more.
    pub fn add(&mut self, lived: VmLifetime) {
        let interrupted = u64::from(lived.ended == VmEnd::Preempted);
        match lived.seconds + lived.lost_seconds <= self.short_seconds {
            true => {
                self.short += 1;
                self.short_interrupted += interrupted;
            }
            false => {
                self.long += 1;
                self.long_interrupted += interrupted;
            }
        }
        if lived.ended == VmEnd::Preempted {
            self.interrupted_lived_hours += lived.seconds / HOUR;
            self.lost_hours += lived.lost_seconds / HOUR;
            self.lost_cpu_hours += lived.lost_seconds / HOUR * f64::from(lived.vcpus);
        }
        self.each.push(lived);
    }

    /// The share of short work that was interrupted; 0 if there was none.
    #[must_use]
    pub fn short_share(&self) -> f64 {
        self.short_interrupted as f64 / self.short.max(1) as f64
    }

    /// A table for `ebbtide-lab model fit`.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = "lifetime_hours,ended,flavor\n".to_owned();
        for lived in &self.each {
            let ended = match lived.ended {
                VmEnd::Preempted => "preempted",
                VmEnd::Stopped => "stopped",
            };
            let flavor = ebbtide_model::names::shown_cell(&lived.flavor);
            // Writing to a text cannot fail. No flavor of a replay has a comma in its name.
            let _ = writeln!(text, "{},{ended},{flavor}", lived.seconds / HOUR);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_what_the_interrupted_would_still_have_run() {
        let mut lives = LifeTotals::new(HOUR);
        let lived = |seconds, ended, lost_seconds| VmLifetime {
            flavor: "f".to_owned(),
            vcpus: 4,
            seconds,
            ended,
            lost_seconds,
        };
        lives.add(lived(HOUR, VmEnd::Stopped, 0.0));
        lives.add(lived(HOUR / 2.0, VmEnd::Preempted, HOUR / 4.0));
        lives.add(lived(HOUR / 2.0, VmEnd::Preempted, HOUR));
        lives.add(lived(HOUR * 9.0, VmEnd::Stopped, 0.0));
        assert_eq!((lives.short, lives.short_interrupted), (2, 1));
        assert_eq!((lives.long, lives.long_interrupted), (2, 1));
        assert_eq!((lives.lost_hours, lives.lost_cpu_hours), (1.25, 5.0));
        assert_eq!(lives.short_share(), 0.5);
        let csv = "lifetime_hours,ended,flavor\n1,stopped,f\n0.5,preempted,f\n0.5,preempted,f\n9,stopped,f\n";
        assert_eq!(lives.csv(), csv);
    }
}
