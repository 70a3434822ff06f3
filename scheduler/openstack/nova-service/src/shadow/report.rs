//! What a shadow found: how often both answers were the same, why not, how fast, and what could
//! have been sold.

use crate::configure;
use crate::decisions::DecisionOptions;
use crate::error::NovaServiceError;
use ebbtide_model::{ComparisonVerdict, Decision, DecisionOutcome, IdleHour, Timestamp};
use ebbtide_nova_objects::nova_conf::NovaConf;
use ebbtide_store::ledger::LedgerError;
use ebbtide_store::{DecisionFilter, DecisionStore, MAX_PAGE};
use std::collections::BTreeMap;

/// The part of a decision's times that is the whole of it.
const WHOLE: &str = "whole";

/// Why answers were not the same, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasonCount {
    /// How both relate.
    pub verdict: ComparisonVerdict,
    /// The reason without its details.
    pub reason: String,
    /// How many requests.
    pub count: u64,
    /// How many of them nova-scheduler decided while others were open, whose claims may be why.
    pub beside_others: u64,
    /// The request id of the latest one, for `ebbtide decision list --request-id`.
    pub example: String,
    /// The reason of the latest one, with its details.
    pub example_reason: String,
}

/// What could have been sold of one flavor.
#[derive(Debug, Clone, PartialEq)]
pub struct IdleFlavor {
    /// Its name.
    pub flavor: String,
    /// Hours with samples.
    pub hours: u64,
    /// Server-hours that lay idle. They are not to be added over flavors, which share the room.
    pub server_hours: f64,
    /// The fewest servers that fitted at any time.
    pub least: u64,
    pub most: u64,
    /// How many servers would have had to leave, had all of it been sold all the time.
    pub preemptions: u64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ShadowReport {
    /// How many requests were seen.
    pub requests: u64,
    /// By verdict; without those that did not occur.
    pub verdicts: BTreeMap<ComparisonVerdict, u64>,
    /// Of those with the same answer: refused by both.
    pub refused_by_both: u64,
    /// Requests that nova-scheduler refused and preemption would have served.
    pub served_by_preemption: u64,
    /// The servers that would have had to leave for them.
    pub victims: u64,
    /// Why answers were not the same, the most frequent first.
    pub reasons: Vec<ReasonCount>,
    /// Time of a decision in microseconds: median, 99th percentile, most. `None` without any.
    pub micros: Option<[u64; 3]>,
    /// What could have been sold, by flavor.
    pub idle: Vec<IdleFlavor>,
    /// The same by hour, oldest first.
    pub idle_hours: Vec<IdleHour>,
}

impl ShadowReport {
    /// Reads what shadows recorded from `from` to `before`.
    ///
    /// # Errors
    /// [`NovaServiceError::Config`] without a database of decisions in nova.conf, and those of the
    /// database.
    pub async fn read(
        conf: &NovaConf,
        from: Timestamp,
        before: Timestamp,
    ) -> Result<Self, NovaServiceError> {
        let options = DecisionOptions::read(conf)?.ok_or_else(|| {
            let text = format!(
                "{}: a shadow records there, and it is not set",
                configure::LEDGER
            );
            NovaServiceError::Config(text)
        })?;
        let failed = |error| NovaServiceError::Ledger(LedgerError::Store(error));
        let store = DecisionStore::open(&options.store).await.map_err(failed)?;
        let mut report = ReportBuilder::default();
        let mut filter = DecisionFilter {
            from: Some(from),
            before: Some(before),
            ..DecisionFilter::default()
        };
        loop {
            let page = store.decisions(&filter).await.map_err(failed)?;
            page.iter().for_each(|decision| report.add(decision));
            filter.marker = page.last().map(|decision| decision.id);
            if page.len() < MAX_PAGE as usize {
                break;
            }
        }
        let hours = store.idle_hours(from, before).await.map_err(failed)?;
        store.close().await;
        Ok(report.finish(hours))
    }

    /// The report of these decisions, latest first, and hours.
    #[must_use]
    pub fn of(decisions: &[Decision], hours: Vec<IdleHour>) -> Self {
        let mut report = ReportBuilder::default();
        decisions.iter().for_each(|decision| report.add(decision));
        report.finish(hours)
    }

    /// How many requests have this verdict.
    #[must_use]
    pub fn count(&self, verdict: ComparisonVerdict) -> u64 {
        self.verdicts.get(&verdict).copied().unwrap_or_default()
    }
}

#[derive(Default)]
struct ReportBuilder {
    report: ShadowReport,
    reasons: BTreeMap<(ComparisonVerdict, String), ReasonCount>,
    micros: Vec<u64>,
}

impl ReportBuilder {
    /// Decisions of schedulers that answer have no comparison, and do not count.
    fn add(&mut self, decision: &Decision) {
        let Some(comparison) = &decision.trace.comparison else {
            return;
        };
        let verdict = comparison.verdict;
        self.report.requests += 1;
        *self.report.verdicts.entry(verdict).or_default() += 1;
        let refused = matches!(decision.outcome, DecisionOutcome::NoValidHost(_));
        self.report.refused_by_both += u64::from(refused && verdict == ComparisonVerdict::Same);
        let victims = decision.victims().count() as u64;
        if verdict == ComparisonVerdict::EbbtideOnly && victims > 0 {
            self.report.served_by_preemption += 1;
            self.report.victims += victims;
        }
        let times = decision.trace.times.iter();
        let mut whole = times.filter(|time| time.part == WHOLE);
        self.micros.extend(whole.next().map(|time| time.micros));
        if comparison.reason.is_empty() {
            return;
        }
        let kind = comparison.reason.split(": ").next().unwrap_or_default();
        let count = self
            .reasons
            .entry((verdict, kind.to_owned()))
            .or_insert_with(|| ReasonCount {
                verdict,
                reason: kind.to_owned(),
                count: 0,
                beside_others: 0,
                example: decision.trace.request_id.clone(),
                example_reason: comparison.reason.clone(),
            });
        count.count += 1;
        count.beside_others += u64::from(comparison.requests_beside > 0);
    }

    fn finish(mut self, hours: Vec<IdleHour>) -> ShadowReport {
        self.report.reasons = self.reasons.into_values().collect();
        let rank = |one: &ReasonCount| std::cmp::Reverse(one.count);
        self.report.reasons.sort_by_key(rank);
        self.micros.sort_unstable();
        let at = |part: usize| self.micros[(self.micros.len() - 1) * part / 100];
        self.report.micros = (!self.micros.is_empty()).then(|| [at(50), at(99), at(100)]);
        self.report.idle = by_flavor(&hours);
        self.report.idle_hours = hours;
        self.report
    }
}

fn by_flavor(hours: &[IdleHour]) -> Vec<IdleFlavor> {
    let mut flavors: BTreeMap<&str, IdleFlavor> = BTreeMap::new();
    for hour in hours {
        let flavor = flavors.entry(&hour.flavor).or_insert_with(|| IdleFlavor {
            flavor: hour.flavor.clone(),
            hours: 0,
            server_hours: 0.0,
            least: u64::MAX,
            most: 0,
            preemptions: 0,
        });
        flavor.hours += 1;
        flavor.server_hours += hour.server_hours();
        flavor.least = flavor.least.min(hour.least);
        flavor.most = flavor.most.max(hour.most);
        flavor.preemptions += hour.falls;
    }
    flavors.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shadow::kit;
    use ebbtide_model::decision::{Explanation, NoValidHost};
    use ebbtide_model::{Comparison, PartTime, RequestTrace};

    fn decision(n: u64, verdict: ComparisonVerdict, reason: &str, victims: usize) -> Decision {
        let outcome = DecisionOutcome::Placed(vec![kit::placed("a", victims)]);
        Decision {
            trace: RequestTrace {
                request_id: format!("req-{n}"),
                times: vec![PartTime {
                    part: WHOLE.to_owned(),
                    micros: n * 1000,
                }],
                comparison: Some(Box::new(Comparison {
                    verdict,
                    hosts: vec!["b".to_owned()],
                    reason: reason.to_owned(),
                    requests_beside: u32::try_from(n % 2).unwrap_or(0),
                })),
                ..RequestTrace::default()
            },
            ..kit::decision(outcome, Explanation::default())
        }
    }

    #[test]
    fn verdicts_reasons_and_times_are_counted() {
        use ComparisonVerdict::{Different, EbbtideOnly, Same};
        let mut refused = decision(1, Same, "", 0);
        refused.outcome = DecisionOutcome::NoValidHost(NoValidHost {
            reason: String::new(),
            placed_before: 0,
            dropped: Vec::new(),
            hosts: 0,
        });
        let mut answered = decision(9, Different, "x", 3);
        answered.trace.comparison = None;
        let all = [
            decision(
                7,
                Different,
                "the weights differ: a weighs 2, b weighs 1",
                0,
            ),
            decision(
                6,
                EbbtideOnly,
                "preemptible servers would make room: 2 of them",
                2,
            ),
            answered,
            decision(
                5,
                Different,
                "the weights differ: c weighs 2, d weighs 1",
                0,
            ),
            decision(4, Same, "", 0),
            refused,
        ];
        let report = ShadowReport::of(&all, Vec::new());
        assert_eq!(report.requests, 5);
        assert_eq!((report.count(Same), report.refused_by_both), (2, 1));
        assert_eq!((report.served_by_preemption, report.victims), (1, 2));
        assert_eq!(report.micros, Some([5000, 6000, 7000]));
        let first = &report.reasons[0];
        assert_eq!(
            (first.verdict, first.count, first.beside_others),
            (Different, 2, 2)
        );
        assert_eq!(first.reason, "the weights differ");
        assert_eq!((first.example.as_str(), report.reasons.len()), ("req-7", 2));
    }

    #[test]
    fn idle_hours_add_up_by_flavor() {
        let hour = |n: i64, flavor: &str, fits: &[u64]| {
            let mut hour = IdleHour::new(Timestamp::from_millis(n * 3_600_000), flavor);
            let mut before = None;
            for fit in fits {
                hour.add(*fit, before);
                before = Some(*fit);
            }
            hour
        };
        let hours = vec![
            hour(0, "small", &[4, 2]),
            hour(0, "large", &[1]),
            hour(1, "small", &[8]),
        ];
        let report = ShadowReport::of(&[], hours);
        assert_eq!((report.requests, report.micros), (0, None));
        let small = &report.idle[1];
        assert_eq!((small.flavor.as_str(), small.hours), ("small", 2));
        assert!((small.server_hours - (3.0 + 8.0)).abs() < 1e-9);
        assert_eq!((small.least, small.most, small.preemptions), (2, 8, 2));
    }
}
