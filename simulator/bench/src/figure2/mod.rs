//! The paper's figure 2: what support for preemption costs when no instance has to leave, and what
//! one pass saves when an instance has to leave.
//!
//! López García et al. (FGCS 2019) request 130 virtual machines of one size, three times: normal
//! ones in an empty cloud, preemptible ones in an empty cloud, and normal ones in a cloud that is
//! full of preemptible ones, so that every request ends one instance. They compare the original
//! scheduler, their own scheduler, and a scheduler that runs a second cycle after the first one has
//! failed. The paper's text gives only the order and no numbers, so the benchmark compares ratios.
//!
//! The benchmark applies every answer before the next request. The schedulers take turns, and each
//! round begins with another one, so that other load on the machine affects all three equally.

mod schedulers;

pub use schedulers::{BenchRequest, BenchScheduler, SchedulerAnswer, SchedulerKind};

use crate::BenchError;
use crate::cloud::{BenchInstance, Builder, CloudPlan, Fill, NOW_MILLIS, SMALL, request};
use crate::progress::Progress;
use crate::request::quotient;
use crate::stats::Latency;
use crate::timing::{ElapsedTime, timed_cpu};
use ebbtide_engine::{Engine, EngineConfig, HostTable};
use ebbtide_model::{DecisionId, Timestamp};
use schedulers::answer;
use serde::Serialize;
use std::collections::BTreeMap;
use uuid::Uuid;

/// Between two requests: a tenant in a hurry.
const STEP_MILLIS: i64 = 250;
/// Instances that a host holds at least: 24 hosts hold the paper's 130 then, with a tenth to spare.
const LEAST_SLOTS: u32 = 6;

/// What the cloud holds, and what is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// An empty cloud, normal requests.
    EmptyNormal,
    /// An empty cloud, preemptible requests.
    EmptyPreemptible,
    /// A cloud full of preemptible instances, normal requests: each ends one.
    SaturatedNormal,
}

impl Scenario {
    /// All, in the order of the figure.
    pub const ALL: [Self; 3] = [
        Self::EmptyNormal,
        Self::EmptyPreemptible,
        Self::SaturatedNormal,
    ];

    /// The words for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EmptyNormal => "empty & normal",
            Self::EmptyPreemptible => "empty & preemptible",
            Self::SaturatedNormal => "saturated & normal",
        }
    }
}

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Figure2Options {
    pub hosts: u32,
    /// Requests in one round.
    pub requests: u32,
    /// Rounds; each begins with the same cloud.
    pub rounds: u32,
    /// Another seed, other ages of those who are there.
    pub seed: u64,
}

/// One bar of the figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure2Row {
    pub hosts: u32,
    /// What the cloud holds and what is asked.
    pub scenario: Scenario,
    /// Who decides.
    pub scheduler: SchedulerKind,
    /// How long one request takes.
    #[serde(flatten)]
    pub latency: Latency,
    /// Its median over that of the plain scheduler; `None` where that one finds no host.
    pub ratio_to_plain: Option<f64>,
    /// Its median over that of the preemptible-aware scheduler.
    pub ratio_to_aware: f64,
    /// Requests in one round.
    pub requests: u32,
    pub rounds: u32,
    /// Of the requests of a round, those that found a host.
    pub placed: u32,
    /// Victims of a round.
    pub victims: u32,
    /// True if the scheduler always answered as the preemptible-aware one did, victims included.
    /// The plain one cannot where the cloud is saturated.
    pub same_answers: bool,
}

/// What one scheduler did in one scenario.
#[derive(Debug, Default)]
struct Done {
    times: Vec<ElapsedTime>,
    answers: Vec<SchedulerAnswer>,
}

/// Measures all bars of one number of hosts.
///
/// # Errors
/// An option out of its range; the engine's.
pub fn run(
    options: &Figure2Options,
    progress: &mut dyn Progress,
) -> Result<Vec<Figure2Row>, BenchError> {
    for (name, value) in [
        ("hosts", options.hosts),
        ("requests", options.requests),
        ("rounds", options.rounds),
    ] {
        if value == 0 {
            return Err(BenchError::Option(format!("--{name} 0: use 1 or more")));
        }
    }
    let bench = Bench::new(*options)?;
    let mut done: BTreeMap<(Scenario, SchedulerKind), Done> = BTreeMap::new();
    let total = options.rounds + 1;
    for scenario in Scenario::ALL {
        let start = Start::new(&bench, scenario, progress)?;
        progress.begin(scenario.as_str(), u64::from(total));
        // One round more than is measured, to be warm.
        for round in 0..total {
            for turn in 0..3 {
                let kind = SchedulerKind::ALL[(turn + round as usize) % 3];
                let made = bench.round(&start, scenario, kind)?;
                let kept = done.entry((scenario, kind)).or_default();
                if round > 0 {
                    kept.times.extend(made.times);
                }
                kept.answers = made.answers;
            }
            progress.set(u64::from(round) + 1);
        }
    }
    Ok(rows(options, &done))
}

/// What stays the same over all rounds.
struct Bench {
    options: Figure2Options,
    engine: Engine,
    builder: Builder,
    slots: u32,
}

/// The clouds with which every round of a scenario begins.
struct Start {
    both_states: HostTable,
    /// Everybody is normal.
    one_state: HostTable,
}

impl Start {
    fn new(
        bench: &Bench,
        scenario: Scenario,
        progress: &mut dyn Progress,
    ) -> Result<Self, BenchError> {
        let slots = bench.slots;
        let fill = match scenario {
            Scenario::EmptyNormal | Scenario::EmptyPreemptible => Fill::Empty { slots },
            Scenario::SaturatedNormal => Fill::Uniform { slots },
        };
        let plan = CloudPlan {
            hosts: bench.options.hosts,
            fill,
            seed: bench.options.seed,
        };
        let mut one_state = HostTable::new();
        for number in 0..plan.hosts {
            let mut host = plan.host(number);
            host.guests
                .iter_mut()
                .for_each(|guest| guest.preemptible = false);
            bench.builder.put_host(&mut one_state, number, &plan);
            bench.builder.put_guests(&mut one_state, number, &host)?;
        }
        Ok(Self {
            both_states: plan.table(progress)?,
            one_state,
        })
    }
}

impl Bench {
    fn new(options: Figure2Options) -> Result<Self, BenchError> {
        let needed = (options.requests + options.requests / 10).div_ceil(options.hosts);
        Ok(Self {
            options,
            engine: Engine::new(EngineConfig::default())?,
            builder: Builder::new()?,
            slots: needed.max(LEAST_SLOTS),
        })
    }

    fn round(
        &self,
        start: &Start,
        scenario: Scenario,
        kind: SchedulerKind,
    ) -> Result<Done, BenchError> {
        let table = match kind {
            SchedulerKind::Plain => start.one_state.clone(),
            SchedulerKind::PreemptibleAware | SchedulerKind::Retry => start.both_states.clone(),
        };
        let mut scheduler = BenchScheduler::new(kind, &self.engine, table);
        let wants_preemptible = scenario == Scenario::EmptyPreemptible;
        let mut done = Done::default();
        for number in 0..self.options.requests {
            let asked = bench_request(number, wants_preemptible);
            let now_millis = NOW_MILLIS + STEP_MILLIS * i64::from(number);
            let now = Timestamp::from_millis(now_millis);
            let id = DecisionId(Uuid::from_u128(u128::from(number)));
            let (decision, took) = timed_cpu(|| scheduler.decide(&asked, now, id));
            let answer = answer(&decision?);
            done.times.push(took);
            let guest = BenchInstance {
                id: asked
                    .normal
                    .server_ids
                    .first()
                    .map_or(0, |id| id.0.as_u128()),
                size: &SMALL,
                preemptible: wants_preemptible,
                launched_millis: now_millis,
                project: 0,
            };
            scheduler.apply(&self.builder, &answer, &guest)?;
            done.answers.push(answer);
        }
        Ok(done)
    }
}

fn bench_request(number: u32, wants_preemptible: bool) -> BenchRequest {
    let normal = request(SMALL.flavor(), number);
    let mut preemptible = normal.clone();
    let spec = ("ebbtide:preemptible".to_owned(), "true".to_owned());
    preemptible.flavor.extra_specs.extend([spec]);
    BenchRequest {
        normal,
        preemptible,
        wants_preemptible,
    }
}

fn rows(
    options: &Figure2Options,
    done: &BTreeMap<(Scenario, SchedulerKind), Done>,
) -> Vec<Figure2Row> {
    let none = Done::default();
    let of = |scenario, kind| done.get(&(scenario, kind)).unwrap_or(&none);
    let mut rows = Vec::new();
    for scenario in Scenario::ALL {
        let (plain, aware) = (
            of(scenario, SchedulerKind::Plain),
            of(scenario, SchedulerKind::PreemptibleAware),
        );
        let median = |done: &Done| Latency::of_both(&done.times).p50_us;
        for kind in SchedulerKind::ALL {
            let this = of(scenario, kind);
            let latency = Latency::of_both(&this.times);
            let placed = this.answers.iter().flatten();
            rows.push(Figure2Row {
                hosts: options.hosts,
                scenario,
                scheduler: kind,
                latency,
                ratio_to_plain: (scenario != Scenario::SaturatedNormal)
                    .then(|| quotient(latency.p50_us, median(plain))),
                ratio_to_aware: quotient(latency.p50_us, median(aware)),
                requests: options.requests,
                rounds: options.rounds,
                placed: u32::try_from(placed.clone().count()).unwrap_or(u32::MAX),
                victims: u32::try_from(placed.map(|(_, v)| v.len()).sum::<usize>())
                    .unwrap_or(u32::MAX),
                same_answers: this.answers == aware.answers,
            });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoProgress;

    #[test]
    fn the_three_schedulers_answer_alike_where_they_can() {
        for (hosts, requests) in [(24, 130), (3, 20), (1, 5)] {
            let options = Figure2Options {
                hosts,
                requests,
                rounds: 1,
                seed: 1,
            };
            for row in run(&options, &mut NoProgress).unwrap() {
                let saturated = row.scenario == Scenario::SaturatedNormal;
                if saturated && row.scheduler == SchedulerKind::Plain {
                    assert_eq!((row.placed, row.victims), (0, 0), "{row:?}");
                    continue;
                }
                assert!(row.same_answers, "{row:?}");
                assert_eq!(row.placed, requests, "{row:?}");
                assert_eq!(row.victims, if saturated { requests } else { 0 }, "{row:?}");
            }
        }
    }
}
