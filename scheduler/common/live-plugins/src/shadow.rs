//! Statistics of shadow comparisons, the same on both clouds.

use ebbtide_model::{DecisionComparison, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Differences that are kept individually.
const RECENT: usize = 100;
/// Different pairs of hosts that are counted individually; further ones are counted together.
const PAIRS: usize = 1000;

/// Totals of the comparisons since the present shadow configuration began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ShadowReport {
    /// Since when; `None` if nothing is in shadow.
    pub since: Option<Timestamp>,
    /// What is in shadow, as text.
    pub what: String,
    /// Compared decisions.
    pub decisions: u64,
    /// Decisions that differed in shadow.
    pub different: u64,
    /// Decisions that failed in shadow.
    pub failed: u64,
    /// Shadow decisions during which a plugin failed.
    pub warned: u64,
    /// Requests without a valid host: decided, in shadow.
    pub no_valid_host: (u64, u64),
    /// Victims: decided, in shadow.
    pub victims: (u64, u64),
    /// Their cost by the deciding engine's cost module: decided, in shadow.
    pub cost: (f64, f64),
    /// Their cost by the shadow engine's cost module: decided, in shadow.
    pub shadow_cost: (f64, f64),
    /// How often the first host was selected and the shadow engine selected the second.
    pub moves: BTreeMap<(String, String), u64>,
    /// Moves that are not in `moves` because there are too many different ones.
    pub other_moves: u64,
    /// The last differences, the latest last.
    pub recent: VecDeque<(Timestamp, DecisionComparison)>,
    /// Why the last shadow decision failed, or what a plugin did wrong.
    pub last_problem: String,
}

/// The report, shared. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ShadowBook {
    report: Arc<Mutex<ShadowReport>>,
}

impl ShadowBook {
    fn with<T>(&self, work: impl FnOnce(&mut ShadowReport) -> T) -> T {
        work(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts a new report, unless the same is in shadow as before.
    pub fn begin(&self, now: Timestamp, what: Option<String>) {
        self.with(|report| {
            let same = match &what {
                Some(what) => report.since.is_some() && report.what == *what,
                None => report.since.is_none(),
            };
            if !same {
                *report = ShadowReport {
                    since: what.as_ref().map(|_| now),
                    what: what.unwrap_or_default(),
                    ..ShadowReport::default()
                };
            }
        });
    }

    /// Adds comparisons.
    pub fn note(&self, now: Timestamp, compared: Vec<DecisionComparison>) {
        if compared.is_empty() {
            return;
        }
        self.with(|report| {
            for one in compared {
                report.add(now, one);
            }
        });
    }

    /// A copy of the report.
    pub fn report(&self) -> ShadowReport {
        self.with(|report| report.clone())
    }
}

impl ShadowReport {
    fn add(&mut self, now: Timestamp, compared: DecisionComparison) {
        self.decisions += 1;
        self.no_valid_host.0 += u64::from(compared.decided.hosts.is_empty());
        if let Some(warning) = compared.warnings.last() {
            self.warned += 1;
            self.last_problem.clone_from(warning);
        }
        let shadow = match &compared.shadow {
            Ok(shadow) => shadow,
            Err(problem) => {
                self.failed += 1;
                self.last_problem.clone_from(problem);
                return;
            }
        };
        let decided = &compared.decided;
        self.no_valid_host.1 += u64::from(shadow.hosts.is_empty());
        self.victims.0 += u64::from(decided.victims);
        self.victims.1 += u64::from(shadow.victims);
        // If one side has no cost, the sums would not be comparable.
        if let (Some(a), Some(b)) = (decided.cost, shadow.cost) {
            self.cost = (self.cost.0 + a, self.cost.1 + b);
        }
        if let (Some(a), Some(b)) = (decided.shadow_cost, shadow.shadow_cost) {
            self.shadow_cost = (self.shadow_cost.0 + a, self.shadow_cost.1 + b);
        }
        if !compared.differs() {
            return;
        }
        self.different += 1;
        for (from, to) in decided.hosts.iter().zip(&shadow.hosts) {
            if from == to {
                continue;
            }
            let pair = (from.clone(), to.clone());
            if self.moves.len() < PAIRS || self.moves.contains_key(&pair) {
                *self.moves.entry(pair).or_default() += 1;
            } else {
                self.other_moves += 1;
            }
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((now, compared));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_model::{DecisionId, DecisionSide};

    fn side(host: &str, victims: u32, cost: f64) -> DecisionSide {
        DecisionSide {
            hosts: vec![host.to_owned()],
            victims,
            cost: Some(cost),
            shadow_cost: Some(2.0 * cost),
        }
    }

    fn compared(decided: DecisionSide, shadow: Result<DecisionSide, String>) -> DecisionComparison {
        DecisionComparison {
            decision_id: DecisionId(uuid::Uuid::nil()),
            flavor: "m1".to_owned(),
            decided,
            shadow,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn the_report_counts_differences_and_what_they_would_have_cost() {
        let book = ShadowBook::default();
        let at = Timestamp::from_millis(5);
        book.begin(at, Some("energy".to_owned()));
        book.note(
            at,
            vec![
                compared(side("a", 0, 0.0), Ok(side("a", 0, 0.0))),
                compared(side("a", 2, 10.0), Ok(side("b", 1, 25.0))),
                compared(side("a", 0, 0.0), Err("it looped".to_owned())),
            ],
        );
        // The same configuration does not start a new report.
        book.begin(Timestamp::from_millis(9), Some("energy".to_owned()));
        let report = book.report();
        assert_eq!(report.since, Some(at));
        assert_eq!(
            (report.decisions, report.different, report.failed),
            (3, 1, 1)
        );
        assert_eq!(report.victims, (2, 1));
        assert_eq!(report.cost, (10.0, 25.0));
        assert_eq!(report.shadow_cost, (20.0, 50.0));
        let moved = ("a".to_owned(), "b".to_owned());
        assert_eq!(report.moves.get(&moved), Some(&1));
        assert_eq!(report.last_problem, "it looped");
        book.begin(at, None);
        assert_eq!(book.report(), ShadowReport::default());
    }

    #[test]
    fn whatever_happens_it_stays_small() {
        let book = ShadowBook::default();
        book.begin(Timestamp::from_millis(0), Some("x".to_owned()));
        for n in 0..3000 {
            let to = format!("host-{n}");
            book.note(
                Timestamp::from_millis(n),
                vec![compared(side("a", 0, 0.0), Ok(side(&to, 0, 0.0)))],
            );
        }
        let report = book.report();
        assert_eq!((report.moves.len(), report.recent.len()), (PAIRS, RECENT));
        assert_eq!(report.other_moves, 2000);
    }
}
