//! Ours: the decision of least expected cost under a model of availability that learns.

use super::{Policy, on_spot};
use crate::availability::{AvailabilityModel, History};
use crate::facts::signed;
use crate::plan::{Plan, PlanServer};
use crate::{DeadlineJob, Decision, JobFacts, JobServer};

/// Seconds between two solutions.
const SOLVE_EVERY: u64 = 2 * 3_600;

/// Learns how long periods with and without preemptible servers last, and solves for the least
/// expected cost again every few hours.
#[derive(Debug, Clone)]
pub(super) struct PlannedPolicy {
    model: AvailabilityModel,
    plan: Option<(u64, Plan)>,
}

impl PlannedPolicy {
    pub(super) fn new(history: &History) -> Self {
        Self {
            model: AvailabilityModel::new(history),
            plan: None,
        }
    }
}

impl Policy for PlannedPolicy {
    fn propose(&mut self, job: &DeadlineJob, facts: &JobFacts) -> Decision {
        self.model.look(signed(facts.now), facts.spot_available);
        let terms = job.terms();
        let slack = facts.slack(job);
        if on_spot(facts) {
            return Decision::Spot;
        }
        let (Ok(slack), Some(left)) = (u64::try_from(slack), terms.deadline.checked_sub(facts.now))
        else {
            return Decision::OnDemand;
        };
        let due = self
            .plan
            .as_ref()
            .is_none_or(|&(at, _)| facts.now >= at + SOLVE_EVERY);
        if due {
            self.plan = Some((facts.now, Plan::solve(job, &self.model, left, slack)));
        }
        let Some((_, plan)) = &self.plan else {
            return Decision::OnDemand;
        };
        let (have, starting) = match facts.held {
            JobServer::Nothing => (PlanServer::Nothing, 0),
            JobServer::Spot { starting } => (PlanServer::Spot, starting),
            JobServer::OnDemand { starting } => (PlanServer::OnDemand, starting),
        };
        let slack = slack.saturating_sub(starting) as f32;
        let market = (facts.spot_available, self.model.class_now());
        plan.best(left as f32, slack, have, market)
    }
}
