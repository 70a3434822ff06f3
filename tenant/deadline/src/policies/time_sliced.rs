//! Time Sliced, *Can't Be Late* section 5.1.

use super::{Policy, net_reached, on_spot};
use crate::facts::signed;
use crate::{DeadlineJob, Decision, JobFacts, JobServer};

/// Greedy in each of n equal slices of the time: by the end of slice i, i/n of the work is done.
/// What one slice does beyond its share the next one need not do, and preemptible servers are used
/// beyond it. An on-demand server that a slice needed is kept until the slice's share is done; then
/// the job takes a preemptible server or waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeSliced {
    slices: u32,
}

impl TimeSliced {
    pub(super) fn new(slices: u32) -> Self {
        Self { slices }
    }
}

impl Policy for TimeSliced {
    fn propose(&mut self, job: &DeadlineJob, facts: &JobFacts) -> Decision {
        if on_spot(facts) {
            return Decision::Spot;
        }
        let terms = job.terms();
        let slices = u64::from(self.slices);
        // The slice of this moment, counted from 1; the last one holds until the end.
        let slice = (facts.now * slices / terms.deadline + 1).min(slices);
        let end = terms.deadline * slice / slices;
        let share = (terms.work * slice).div_ceil(slices);
        let left = share.saturating_sub(facts.done);
        let slack = signed(end) - signed(facts.now + left);
        let net = left > 0 && slack < 2 * signed(terms.changeover);
        let stays = matches!(facts.held, JobServer::OnDemand { .. }) && left > 0;
        if net || stays || net_reached(job, facts) {
            return Decision::OnDemand;
        }
        if facts.spot_available {
            return Decision::Spot;
        }
        Decision::Wait
    }
}
