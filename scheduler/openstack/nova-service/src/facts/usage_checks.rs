//! When the usage of a host's providers is read again because its compute reports less.

use super::placement::Providers;
use super::versioned::{self, SharedCloud};
use crate::Tasks;
use ebbtide_runtime::clock::Stopwatch;
use ebbtide_runtime::task::pause;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Interval between two comparisons.
const COMPARE: Duration = Duration::from_secs(5);
/// How long a difference has to last before the usage is read. After a claim it lasts until the
/// compute has begun to build the server.
const FIRST: Duration = Duration::from_secs(15);
/// The longest time between two reads: some flavors differ always.
const MOST: Duration = Duration::from_secs(15 * 60);

/// Compares what Placement has given with what computes report until the scheduler stops.
pub(crate) fn follow(cloud: &SharedCloud, providers: &Arc<Providers>, tasks: &Tasks) {
    let (cloud, providers) = (Arc::clone(cloud), Arc::clone(providers));
    let stop = tasks.stop().clone();
    tasks.spawn("placement-compare", async move {
        let (watch, mut checks) = (Stopwatch::start(), UsageChecks::default());
        while pause(&stop, COMPARE).await {
            let differing = versioned::read(&cloud, |cloud, _| cloud.hosts_above_report());
            for host in checks.due(watch.elapsed(), differing) {
                providers.mark_usage(&host);
            }
        }
    });
}

/// The hosts whose usage differs, and when each is read next.
#[derive(Debug, Default)]
struct UsageChecks {
    waiting: HashMap<String, Check>,
}

#[derive(Debug)]
struct Check {
    /// Since the start of the scheduler.
    next: Duration,
    /// Between the last read and the next.
    pause: Duration,
}

impl UsageChecks {
    /// The hosts to read now. `now`: since the start of the scheduler; `differing`: all of which
    /// more is known to be given than their computes report. The time between two reads of one
    /// host doubles.
    fn due(&mut self, now: Duration, differing: Vec<String>) -> Vec<String> {
        let all: HashSet<&str> = differing.iter().map(String::as_str).collect();
        self.waiting.retain(|host, _| all.contains(host.as_str()));
        let mut is_due = |host: &String| {
            let check = self.waiting.entry(host.clone()).or_insert(Check {
                next: now + FIRST,
                pause: FIRST,
            });
            let due = now >= check.next;
            if due {
                check.pause = (check.pause * 2).min(MOST);
                check.next = now + check.pause;
            }
            due
        };
        let due = differing.iter().filter(|host| is_due(host)).cloned();
        due.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds at which a host that differs in these is read, of one look in 5 s.
    fn reads(differs: impl Fn(u64) -> bool, until: u64) -> Vec<u64> {
        let mut checks = UsageChecks::default();
        let due = (0..until).step_by(5).filter(|second| {
            let differing: &[&str] = if differs(*second) { &["host0"] } else { &[] };
            let differing: Vec<String> = differing.iter().map(|host| (*host).to_owned()).collect();
            let due = checks.due(Duration::from_secs(*second), differing);
            assert!(due.is_empty() || due == ["host0"]);
            !due.is_empty()
        });
        due.collect()
    }

    #[test]
    fn a_difference_that_lasts_is_read_after_a_while() {
        assert_eq!(reads(|second| second < 20, 600), [15]);
    }

    #[test]
    fn a_claim_whose_server_is_being_built_is_not_read() {
        assert_eq!(reads(|second| second % 15 < 10, 600), [] as [u64; 0]);
    }

    #[test]
    fn a_host_that_always_differs_is_read_ever_less_often() {
        let all = reads(|_| true, 7200);
        assert_eq!(all[..5], [15, 45, 105, 225, 465]);
        let last = all[all.len() - 1] - all[all.len() - 2];
        assert_eq!(last, MOST.as_secs());
    }

    #[test]
    fn a_new_difference_begins_anew() {
        assert_eq!(reads(|second| second != 50, 100), [15, 45, 70]);
    }
}
