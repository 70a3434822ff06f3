//! Requests that have to preempt: how long the choice of victims takes over a whole saturated
//! cloud.
//!
//! Every host holds K preemptible instances of mixed sizes and ages, and normal ones until not even
//! the smallest size fits. Normal requests of mixed sizes are decided one after another on one
//! thread, with the default configuration. Between two of them 37 seconds pass, so the victims'
//! costs are never those of the request before and nothing can be kept. The table stays as it is
//! unless the answers are to be applied.

mod reference;

pub use reference::{AnswerCost, AnswerFault, Mirror};

use crate::BenchError;
use crate::cloud::{
    Amounts, BenchInstance, Builder, CloudPlan, Fill, NOW_MILLIS, host_name, requests,
};
use crate::progress::Progress;
use crate::stats::{Latency, ratio, rounded};
use crate::timing::{ElapsedTime, timed, timed_cpu};
use ebbtide_engine::{Budgets, Engine, EngineConfig, HostTable};
use ebbtide_model::{Decision, DecisionId, DecisionOutcome, ServerId, Timestamp};
use serde::Serialize;
use std::time::Duration;
use uuid::Uuid;

/// Between two requests; no divisor of the billing period, so costs do not repeat soon.
const STEP_MILLIS: i64 = 37_000;
/// Requests before the measured ones: caches and branch predictors are as they are in a scheduler
/// that runs.
const WARM_UP: u32 = 20;
/// Up to so many instances every answer is held against the reference; above, [`SAMPLE`] of them,
/// evenly spread: there one check takes a tenth of a second and longer.
const CHECK_ALL_BELOW: u64 = 50_000;
/// See [`CHECK_ALL_BELOW`].
const SAMPLE: u32 = 25;
/// A host holds no more: beyond, one host would be a cloud.
const MAX_PREEMPTIBLES: u32 = 10_000;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct PreemptOptions {
    pub hosts: u32,
    /// Preemptible instances on each.
    pub preemptibles: u32,
    /// Requests that are measured.
    pub requests: u32,
    /// Another seed, another cloud and other requests.
    pub seed: u64,
    /// Do what was answered: victims leave, the preemptor comes.
    pub apply: bool,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PreemptReport {
    pub hosts: u32,
    /// Preemptible instances on each.
    pub preemptibles: u32,
    /// How long one decision takes.
    #[serde(flatten)]
    pub latency: Latency,
    /// True if every answer was proven to be the global minimum by the engine, and every one that
    /// was held against the reference was equal to it.
    pub exact: bool,
    /// Requests measured.
    pub requests: u32,
    /// Of them, answers that were held against the reference.
    pub checked: u32,
    /// Of them, answers that the reference contradicts.
    pub wrong: u32,
    /// Answers that a limit of the search has cut.
    pub cut: u32,
    /// Answers that no host can take the request.
    pub no_valid_host: u32,
    /// Victims of a placement, on average.
    pub mean_victims: f64,
    /// Cost of a placement, on average, in `cost_unit`.
    pub mean_cost: f64,
    /// What victims cost is.
    pub cost_unit: String,
    /// Normal instances in the cloud, beside the preemptible ones.
    pub normal_instances: u64,
    /// True if answers were applied.
    pub applied: bool,
    pub seed: u64,
    /// How long the table took to build.
    pub build_seconds: f64,
    /// What the reference said about the first wrong answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_fault: Option<String>,
}

impl PreemptOptions {
    fn check(&self) -> Result<(), BenchError> {
        let wrong = |text: String| Err(BenchError::Option(text));
        match self {
            Self { hosts: 0, .. } => wrong("--hosts 0: use 1 or more".to_owned()),
            Self { requests: 0, .. } => wrong("--requests 0: use 1 or more".to_owned()),
            Self { preemptibles, .. } if !(1..=MAX_PREEMPTIBLES).contains(preemptibles) => wrong(
                format!("--preemptibles {preemptibles}: use 1 to {MAX_PREEMPTIBLES}"),
            ),
            _ => Ok(()),
        }
    }

    fn plan(&self) -> CloudPlan {
        CloudPlan {
            hosts: self.hosts,
            fill: Fill::Saturated {
                preemptibles: self.preemptibles,
            },
            seed: self.seed,
        }
    }

    /// True if the answer of this request is held against the reference.
    fn checks(&self, number: u32) -> bool {
        let instances = u64::from(self.hosts) * u64::from(self.preemptibles);
        let every = self.requests.div_ceil(SAMPLE).max(1);
        instances <= CHECK_ALL_BELOW || number.is_multiple_of(every)
    }
}

/// Builds the cloud, asks, checks.
///
/// # Errors
/// An option out of its range; the engine's.
pub fn run(
    options: &PreemptOptions,
    progress: &mut dyn Progress,
) -> Result<PreemptReport, BenchError> {
    options.check()?;
    let plan = options.plan();
    let (table, built) = timed(|| plan.table(progress));
    let mut bench = Bench {
        engine: Engine::new(EngineConfig::default())?,
        table: table?,
        mirror: Mirror::of(&plan),
        builder: Builder::new()?,
    };
    let normal = bench.table.instance_count() as u64
        - u64::from(options.hosts) * u64::from(options.preemptibles);
    let mut tally = Tally::default();
    let all = requests(WARM_UP + options.requests, options.seed);
    let total = u64::from(options.requests);
    progress.begin("deciding", total);
    for (number, (size, request)) in all.iter().enumerate() {
        let now_millis = NOW_MILLIS + STEP_MILLIS * i64::try_from(number).unwrap_or(0);
        let id = DecisionId(Uuid::from_u128(number as u128));
        let (decision, took) = timed_cpu(|| {
            let now = Timestamp::from_millis(now_millis);
            let budgets = Budgets::unlimited();
            bench
                .engine
                .decide(&bench.table, &budgets, request, now, options.seed, id)
        });
        let decision = decision?;
        let Some(measured) = u32::try_from(number)
            .ok()
            .and_then(|n| n.checked_sub(WARM_UP))
        else {
            continue;
        };
        tally.note(&decision, took);
        let (answer, wanted) = (answer(&decision), size.amounts());
        if options.checks(measured) {
            tally.hold(&bench.mirror, wanted, now_millis, answer.as_ref());
        }
        if let Some((host, victims)) = answer.filter(|_| options.apply) {
            bench.apply(&decision, size, host, &victims, now_millis)?;
        }
        progress.set(u64::from(measured) + 1);
    }
    Ok(tally.report(options, normal, built, bench.engine.cost_unit()))
}

/// Everything that requests are decided with.
struct Bench {
    engine: Engine,
    table: HostTable,
    mirror: Mirror,
    builder: Builder,
}

impl Bench {
    /// The victims leave, the new instance runs.
    fn apply(
        &mut self,
        decision: &Decision,
        size: &'static crate::cloud::Size,
        host: u32,
        victims: &[u128],
        now_millis: i64,
    ) -> Result<(), BenchError> {
        self.mirror.apply(size.amounts(), host, victims);
        for victim in victims {
            self.table
                .remove_instance(ServerId(Uuid::from_u128(*victim)));
        }
        for id in &decision.request.server_ids {
            let guest = BenchInstance {
                id: id.0.as_u128(),
                size,
                preemptible: false,
                launched_millis: now_millis,
                project: 0,
            };
            let instance = self.builder.instance(&guest, &host_name(host));
            self.table.put_instance(&instance)?;
        }
        Ok(())
    }
}

/// The number of the host and the victims; `None` for no valid host.
fn answer(decision: &Decision) -> Option<(u32, Vec<u128>)> {
    let DecisionOutcome::Placed(placements) = &decision.outcome else {
        return None;
    };
    let placement = placements.first()?;
    let number = placement.host.strip_prefix("host-")?.parse().ok()?;
    let victims = placement.victims.iter().map(|v| v.server_id.0.as_u128());
    Some((number, victims.collect()))
}

/// What is added up over the requests.
#[derive(Debug, Default)]
struct Tally {
    times: Vec<ElapsedTime>,
    checked: u32,
    wrong: u32,
    cut: u32,
    no_valid_host: u32,
    placed: usize,
    victims: usize,
    cost: f64,
    first_fault: Option<AnswerFault>,
}

impl Tally {
    fn note(&mut self, decision: &Decision, took: ElapsedTime) {
        self.times.push(took);
        self.cut += u32::from(!decision.explanation.optimal);
        match &decision.outcome {
            DecisionOutcome::Placed(_) => self.placed += 1,
            DecisionOutcome::NoValidHost(_) => self.no_valid_host += 1,
        }
        for (_, victim) in decision.victims() {
            self.victims += 1;
            self.cost += victim.cost;
        }
    }

    fn hold(
        &mut self,
        mirror: &Mirror,
        wanted: Amounts,
        now_millis: i64,
        answer: Option<&(u32, Vec<u128>)>,
    ) {
        self.checked += 1;
        let answer = answer.map(|(host, victims)| (*host, victims.as_slice()));
        if let Err(fault) = mirror.check(wanted, now_millis, answer) {
            self.wrong += 1;
            self.first_fault.get_or_insert(fault);
        }
    }

    fn report(
        self,
        options: &PreemptOptions,
        normal_instances: u64,
        built: Duration,
        cost_unit: &str,
    ) -> PreemptReport {
        PreemptReport {
            hosts: options.hosts,
            preemptibles: options.preemptibles,
            latency: Latency::of_both(&self.times),
            exact: self.cut == 0 && self.wrong == 0 && self.checked > 0,
            requests: options.requests,
            checked: self.checked,
            wrong: self.wrong,
            cut: self.cut,
            no_valid_host: self.no_valid_host,
            mean_victims: ratio(self.victims as f64, self.placed),
            mean_cost: ratio(self.cost, self.placed),
            cost_unit: cost_unit.to_owned(),
            normal_instances,
            applied: options.apply,
            seed: options.seed,
            build_seconds: rounded(built.as_secs_f64()),
            first_fault: self.first_fault.map(|fault| format!("{fault:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoProgress;

    #[test]
    fn every_answer_is_the_reference_s_answer() {
        for (preemptibles, apply) in [(1, false), (5, true), (12, false), (16, true)] {
            let options = PreemptOptions {
                hosts: 12,
                preemptibles,
                requests: 40,
                seed: u64::from(preemptibles),
                apply,
            };
            let report = run(&options, &mut NoProgress).unwrap();
            assert_eq!(report.first_fault, None);
            assert!(report.exact && report.checked == 40, "{report:?}");
            if !apply && preemptibles > 1 {
                assert!(
                    report.mean_victims >= 1.0,
                    "no victim was evicted: {report:?}"
                );
            }
        }
    }

    #[test]
    fn a_request_that_no_host_can_take_is_an_answer_too() {
        // One host of four virtual CPUs: the large sizes fit nowhere.
        let options = PreemptOptions {
            hosts: 1,
            preemptibles: 1,
            requests: 30,
            seed: 0,
            apply: false,
        };
        let report = run(&options, &mut NoProgress).unwrap();
        assert!(report.no_valid_host > 0 && report.exact, "{report:?}");
    }

    #[test]
    fn options_out_of_range_are_refused() {
        let good = PreemptOptions {
            hosts: 1,
            preemptibles: 1,
            requests: 1,
            seed: 0,
            apply: false,
        };
        for bad in [
            PreemptOptions { hosts: 0, ..good },
            PreemptOptions {
                preemptibles: 0,
                ..good
            },
            PreemptOptions {
                preemptibles: 10_001,
                ..good
            },
            PreemptOptions {
                requests: 0,
                ..good
            },
        ] {
            let error = run(&bad, &mut NoProgress).unwrap_err();
            assert_eq!(error.code(), "EB-BENCH-001");
        }
    }
}
