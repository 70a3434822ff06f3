//! A job on a recorded market.

use crate::{DeadlineError, DeadlineJob, Decider, Decision, JobCost, JobFacts, JobServer};

/// What came of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobEnd {
    /// What was paid.
    pub cost: JobCost,
    /// Seconds from the start of the job's life until it was done; nothing if it was not done by
    /// the deadline.
    pub done_after: Option<u64>,
    /// Seconds of preemptible servers.
    pub spot: u64,
    /// Seconds of on-demand servers.
    pub on_demand: u64,
    /// Servers started.
    pub changeovers: u32,
}

impl JobEnd {
    /// The deadline was met.
    #[must_use]
    pub fn met(&self) -> bool {
        self.done_after.is_some()
    }
}

/// Carries out what a decider says, from the first step of the market on, until the job is done or
/// the deadline is over. Decisions are made at the start of each step; a preemptible server that is
/// held serves every step in which there are any and is lost with the first step without.
///
/// # Errors
/// [`DeadlineError::TooShort`] if the market ends before the deadline.
pub fn simulate(
    decider: &mut Decider,
    market: &[bool],
    step: u64,
) -> Result<JobEnd, DeadlineError> {
    let job = *decider.job();
    let deadline = job.terms().deadline;
    let seconds = (market.len() as u64).saturating_mul(step);
    if seconds < deadline || step == 0 {
        return Err(DeadlineError::TooShort {
            series: "market".to_owned(),
            seconds,
            deadline,
        });
    }
    let mut world = JobState::new();
    for &available in market {
        if world.facts.now >= deadline || world.done_after.is_some() {
            break;
        }
        world.begin(available);
        let decision = decider.decide(&world.facts);
        world.act(&job, decision, step);
    }
    Ok(world.end(&job))
}

/// A job in a market, step by step.
#[derive(Debug, Clone, Copy, Default)]
pub struct JobState {
    facts: JobFacts,
    done_after: Option<u64>,
    spot: u64,
    on_demand: u64,
    changeovers: u32,
}

impl JobState {
    /// A job at the start of its life.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What a decision knows.
    #[must_use]
    pub fn facts(&self) -> &JobFacts {
        &self.facts
    }

    /// A step begins.
    pub fn begin(&mut self, available: bool) {
        self.facts.spot_available = available;
        if !available && matches!(self.facts.held, JobServer::Spot { .. }) {
            self.facts.held = JobServer::Nothing;
        }
    }

    /// A step passes under a decision. A preemptible server that is not there cannot be started.
    pub fn act(&mut self, job: &DeadlineJob, decision: Decision, step: u64) {
        let fresh = job.terms().changeover;
        let (starting, kept) = match (decision, self.facts.held) {
            (Decision::Spot, JobServer::Spot { starting })
            | (Decision::OnDemand, JobServer::OnDemand { starting }) => (starting, true),
            _ => (fresh, false),
        };
        let there = decision != Decision::Spot || self.facts.spot_available;
        if decision == Decision::Wait || !there {
            self.facts.held = JobServer::Nothing;
            self.facts.now += step;
            return;
        }
        self.changeovers += u32::from(!kept);
        let used = (starting + self.facts.work_left(job)).min(step);
        let started = starting.min(used);
        let starting = starting - started;
        self.facts.done += used - started;
        if decision == Decision::Spot {
            self.spot += used;
            self.facts.held = JobServer::Spot { starting };
        } else {
            self.on_demand += used;
            self.facts.held = JobServer::OnDemand { starting };
        }
        if self.facts.is_done(job) {
            self.done_after = Some(self.facts.now + used);
        }
        self.facts.now += step;
    }

    /// What has come of the job.
    #[must_use]
    pub fn end(&self, job: &DeadlineJob) -> JobEnd {
        let terms = job.terms();
        let spot = JobCost::of(self.spot, terms.prices.spot);
        let on_demand = JobCost::of(self.on_demand, terms.prices.on_demand);
        JobEnd {
            cost: spot.plus(on_demand),
            done_after: self.done_after.filter(|&after| after <= terms.deadline),
            spot: self.spot,
            on_demand: self.on_demand,
            changeovers: self.changeovers,
        }
    }
}
