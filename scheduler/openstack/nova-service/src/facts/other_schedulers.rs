//! Whether other schedulers may claim at the same time as this one.
//!
//! Two claims that Placement takes at the same time can overcommit a provider
//! (`provider_locks.rs`). The scheduler that claims last sees the excess if it looks at the
//! provider after its claim. While this scheduler is the only one, no claim of another scheduler
//! can meet its claims, and the look may run beside the claim.
//!
//! Two sources count, because each of them misses some schedulers: `services` of Nova's database
//! has nova-schedulers, and those of this project by host name; the ledger has those of this
//! project by their own names, exactly at the time of a read.

use super::Facts;
use crate::Tasks;
use ebbtide_nova_db::SchedulerRecord;
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A scheduler that has been silent for this long counts as gone: Nova's default
/// `service_down_time`. Schedulers write a heartbeat every 10 s to `services` and more often to the
/// ledger.
pub(crate) const GONE_AFTER: Duration = Duration::from_secs(60);
/// Interval between two reads of `services`: Nova's default `report_interval`.
const RECORDS_EVERY: Duration = Duration::from_secs(10);

/// What both sources say. Until a source has answered, and after it failed, it says that there may
/// be others.
#[derive(Debug)]
pub(crate) struct OtherSchedulers {
    in_services: AtomicBool,
    in_ledger: AtomicBool,
}

impl Default for OtherSchedulers {
    fn default() -> Self {
        Self {
            in_services: AtomicBool::new(true),
            in_ledger: AtomicBool::new(true),
        }
    }
}

impl OtherSchedulers {
    /// Whether another scheduler may be claiming.
    pub(crate) fn may_claim(&self) -> bool {
        self.in_services.load(Ordering::SeqCst) || self.in_ledger.load(Ordering::SeqCst)
    }

    /// What the last read of `services` showed.
    pub(crate) fn set_in_services(&self, others: bool) {
        self.in_services.store(others, Ordering::SeqCst);
    }

    /// What the last read of the ledger showed.
    pub(crate) fn set_in_ledger(&self, others: bool) {
        self.in_ledger.store(others, Ordering::SeqCst);
    }
}

/// Reads the records of schedulers at once and then regularly. `own`: the host of this scheduler's
/// record.
pub(crate) fn follow(facts: &Facts, own: String, tasks: &Tasks) {
    let (facts, stop) = (facts.clone(), tasks.stop().clone());
    tasks.spawn("other-schedulers", async move {
        loop {
            let others = match facts.database.nova().schedulers().await {
                Ok(records) => has_others(&records, &own, clock::unix_micros()),
                Err(error) => {
                    tracing::debug!(code = error.code(), "{error}");
                    true
                }
            };
            facts.others.set_in_services(others);
            if !pause(&stop, RECORDS_EVERY).await {
                return;
            }
        }
    });
}

/// Whether a record of another host shows a recent heartbeat. A record without a heartbeat is new.
fn has_others(records: &[SchedulerRecord], own: &str, now: i64) -> bool {
    let gone = i64::try_from(GONE_AFTER.as_micros()).unwrap_or(i64::MAX);
    let mut others = records.iter().filter(|record| record.host != own);
    others.any(|record| record.last_seen_up.is_none_or(|at| now - at < gone))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(host: &str, last_seen_up: Option<i64>) -> SchedulerRecord {
        SchedulerRecord {
            host: host.to_owned(),
            version: 66,
            last_seen_up,
        }
    }

    #[test]
    fn a_record_counts_for_a_minute_after_its_last_heartbeat() {
        let now = 1_000_000_000;
        let seen = |seconds: i64| Some(now - seconds * 1_000_000);
        assert!(!has_others(&[], "one", now));
        assert!(!has_others(&[record("one", seen(1))], "one", now));
        let two = |at| [record("one", seen(1)), record("two", at)];
        assert!(has_others(&two(seen(59)), "one", now));
        assert!(!has_others(&two(seen(60)), "one", now));
        assert!(has_others(&two(None), "one", now), "it has just started");
    }

    #[test]
    fn a_scheduler_is_alone_only_when_both_sources_say_so() {
        let others = OtherSchedulers::default();
        assert!(others.may_claim(), "nothing is known yet");
        others.set_in_services(false);
        assert!(others.may_claim());
        others.set_in_ledger(false);
        assert!(!others.may_claim());
        others.set_in_ledger(true);
        assert!(others.may_claim());
    }
}
