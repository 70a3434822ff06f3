//! Uniform Progress, *Can't Be Late* section 5.2.2.

use super::{Policy, net_reached, on_spot};
use crate::{DeadlineJob, Decision, JobFacts, JobServer};

/// Keeps the job on the straight line from nothing done at the start to all done at the deadline.
///
/// 1. An idle job that is behind the line goes on demand.
/// 2. Preemptible servers are taken whenever there are any, and kept until they are lost.
/// 3. Hysteresis: an on-demand server is kept until the job is at the line of two changeovers
///    later.
///
/// The safety net comes first. On demand rule 3 comes before rule 2. By the text a job that has
/// reached the later line leaves its on-demand server even if it has to wait then. With `keep` it
/// leaves it only for a preemptible one.
#[derive(Debug, Clone, Copy)]
pub(super) struct UniformProgress {
    /// An on-demand server is kept until a preemptible one can be had.
    pub(super) keep: bool,
}

impl Policy for UniformProgress {
    fn propose(&mut self, job: &DeadlineJob, facts: &JobFacts) -> Decision {
        if on_spot(facts) {
            return Decision::Spot;
        }
        let on_demand = matches!(facts.held, JobServer::OnDemand { .. });
        if net_reached(job, facts) {
            return Decision::OnDemand;
        }
        let hysteresis = 2 * job.terms().changeover;
        if on_demand && behind(job, facts, hysteresis) {
            return Decision::OnDemand;
        }
        if facts.spot_available {
            return Decision::Spot;
        }
        if behind(job, facts, 0) || (on_demand && self.keep) {
            return Decision::OnDemand;
        }
        Decision::Wait
    }
}

/// Less is done than the line asks for `ahead` seconds from now: cp(t) < ep(t + ahead). The line
/// ends at the deadline with all work done.
fn behind(job: &DeadlineJob, facts: &JobFacts, ahead: u64) -> bool {
    let terms = job.terms();
    let at = (facts.now + ahead).min(terms.deadline);
    let expected = u128::from(at) * u128::from(terms.work);
    u128::from(facts.done) * u128::from(terms.deadline) < expected
}
