//! No policy misses a deadline that can be met, whatever the market does.

use crate::support::{POLICIES, job, prices};
use ebbtide_deadline::{
    DeadlineJob, Decider, Decision, History, JobFacts, JobServer, JobState, JobTerms, PolicyKind,
    optimum, simulate,
};
use proptest::prelude::*;

/// Runs of availability of any lengths.
fn market(steps: usize) -> impl Strategy<Value = Vec<bool>> {
    let runs = prop::collection::vec((1..40_usize, any::<bool>()), 1..30);
    runs.prop_map(move |runs| {
        let all = runs.into_iter().cycle();
        all.flat_map(|(length, there)| std::iter::repeat_n(there, length))
            .take(steps)
            .collect()
    })
}

/// A job that can be done in time, from no slack to much of it, with changeovers shorter and longer
/// than a step.
fn jobs() -> impl Strategy<Value = (DeadlineJob, u64)> {
    let step = 1..900_u64;
    let work = 1..60_000_u64;
    (step, work, 0..4_000_u64, 0..30_000_u64)
        .prop_map(|(step, work, changeover, slack)| {
            (job(work, work + changeover + slack, changeover, step), step)
        })
        .prop_filter("few steps", |(job, step)| job.terms().deadline / step < 400)
}

fn job_and_market() -> impl Strategy<Value = (DeadlineJob, u64, Vec<bool>)> {
    jobs().prop_flat_map(|(job, step)| {
        let steps = usize::try_from(job.terms().deadline.div_ceil(step)).unwrap();
        market(steps).prop_map(move |market| (job, step, market))
    })
}

fn policy() -> impl Strategy<Value = PolicyKind> {
    prop::sample::select(POLICIES.to_vec())
}

/// What an adversary sees: the facts of the last step and its own chance.
#[derive(Debug, Clone, Copy)]
enum Adversary {
    /// A server is lost one step after it was started.
    LosesAtOnce,
    /// A server is lost when its changeover is over.
    LosesWhenReady,
    /// There are servers only while the job holds an on-demand one.
    OnlyWhileOnDemand,
    /// There are servers only while the job holds none.
    OnlyWhileIdle,
}

impl Adversary {
    fn available(self, facts: &JobFacts) -> bool {
        match (self, facts.held) {
            (Self::LosesAtOnce, held) => !matches!(held, JobServer::Spot { .. }),
            (Self::LosesWhenReady, held) => held != JobServer::Spot { starting: 0 },
            (Self::OnlyWhileOnDemand, held) => matches!(held, JobServer::OnDemand { .. }),
            (Self::OnlyWhileIdle, held) => held == JobServer::Nothing,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_policy_meets_every_deadline_and_never_beats_the_optimum(
        (job, step, market) in job_and_market(),
        kind in policy(),
        history in prop::collection::vec(any::<bool>(), 0..50),
    ) {
        let looks = history.iter().zip(-50_i64..).map(|(&there, n)| (n * 300, there));
        let mut decider = Decider::new(job, kind, &History::new(looks)).unwrap();
        let end = simulate(&mut decider, &market, step).unwrap();
        prop_assert!(end.met(), "{kind:?}: {end:?}");
        let least = optimum(&job, &market, step).unwrap();
        prop_assert!(end.cost >= least, "{kind:?}: {end:?}, optimum {least:?}");
    }

    #[test]
    fn every_policy_meets_its_deadline_against_an_adversary(
        (job, step) in jobs(),
        kind in policy(),
        phases in prop::collection::vec(
            prop::sample::select(vec![
                Adversary::LosesAtOnce,
                Adversary::LosesWhenReady,
                Adversary::OnlyWhileOnDemand,
                Adversary::OnlyWhileIdle,
            ]),
            1..5,
        ),
    ) {
        let mut decider = Decider::new(job, kind, &History::default()).unwrap();
        let mut world = JobState::new();
        let steps = job.terms().deadline.div_ceil(step);
        for n in 0..steps {
            if world.facts().is_done(&job) {
                break;
            }
            let phase = phases[usize::try_from(n / 10).unwrap() % phases.len()];
            world.begin(phase.available(world.facts()));
            let decision = decider.decide(world.facts());
            world.act(&job, decision, step);
        }
        prop_assert!(world.end(&job).met(), "{kind:?}: {world:?}");
    }

    /// Live: decisions at irregular times, servers lost between two decisions, at any second.
    #[test]
    fn losses_between_two_decisions_do_not_cost_the_deadline(
        (base, _) in jobs(),
        poll in 1..600_u64,
        kind in policy(),
        chances in prop::collection::vec((any::<bool>(), any::<u16>(), any::<u16>()), 1..60),
    ) {
        let terms = *base.terms();
        let job = DeadlineJob::new(JobTerms { poll, loss_lag: poll, prices: prices(), ..terms }).unwrap();
        let mut decider = Decider::new(job, kind, &History::default()).unwrap();
        let mut facts = JobFacts::default();
        for &(there, pause, life) in chances.iter().cycle() {
            if facts.is_done(&job) || facts.now > terms.deadline {
                break;
            }
            facts.spot_available = there || matches!(facts.held, JobServer::Spot { .. });
            let decision = decider.decide(&facts);
            let pause = 1 + u64::from(pause) % poll;
            let life = (!there).then(|| u64::from(life) % pause);
            facts = passed(&job, facts, decision, pause, life);
        }
        prop_assert!(facts.is_done(&job), "{kind:?}: {facts:?}");
        prop_assert!(facts.now <= terms.deadline, "{kind:?}: {facts:?}");
    }
}

/// The facts after a pause in which a preemptible server is lost after `life` seconds. What it did
/// in this pause until then is lost with it. A job that is done ends at that second.
fn passed(
    job: &DeadlineJob,
    before: JobFacts,
    decision: Decision,
    pause: u64,
    life: Option<u64>,
) -> JobFacts {
    let fresh = job.terms().changeover;
    let starting = match (decision, before.held) {
        (Decision::Spot, JobServer::Spot { starting })
        | (Decision::OnDemand, JobServer::OnDemand { starting }) => starting,
        _ => fresh,
    };
    let lost = decision == Decision::Spot && life.is_some();
    if decision == Decision::Wait || lost {
        return JobFacts {
            now: before.now + pause,
            held: JobServer::Nothing,
            ..before
        };
    }
    let used = (starting + before.work_left(job)).min(pause);
    let started = starting.min(used);
    let starting = starting - started;
    JobFacts {
        now: before.now + used,
        done: before.done + used - started,
        held: match decision {
            Decision::Spot => JobServer::Spot { starting },
            _ => JobServer::OnDemand { starting },
        },
        spot_available: before.spot_available,
    }
}

#[test]
fn a_job_without_slack_goes_on_demand_at_once() {
    let job = job(3_600, 3_900, 300, 60);
    for kind in POLICIES {
        let mut decider = Decider::new(job, kind, &History::default()).unwrap();
        let facts = JobFacts {
            spot_available: true,
            ..JobFacts::default()
        };
        assert_eq!(decider.decide(&facts), Decision::OnDemand, "{kind:?}");
    }
}

#[test]
fn a_job_that_is_done_needs_no_server() {
    let job = job(3_600, 7_200, 300, 60);
    for kind in POLICIES {
        let mut decider = Decider::new(job, kind, &History::default()).unwrap();
        let facts = JobFacts {
            now: 4_000,
            done: 3_600,
            held: JobServer::OnDemand { starting: 0 },
            spot_available: true,
        };
        assert_eq!(decider.decide(&facts), Decision::Wait, "{kind:?}");
    }
}
