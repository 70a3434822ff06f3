//! Greedy, *Can't Be Late* section 3.4.

use super::{Policy, net_reached, on_spot};
use crate::{DeadlineJob, Decision, JobFacts, JobServer};

/// Preemptible servers while there are any, waiting otherwise; on demand until the end as soon as
/// the job is idle and the slack is less than two changeovers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Greedy;

impl Policy for Greedy {
    fn propose(&mut self, job: &DeadlineJob, facts: &JobFacts) -> Decision {
        match facts.held {
            _ if on_spot(facts) => Decision::Spot,
            JobServer::OnDemand { .. } => Decision::OnDemand,
            _ if net_reached(job, facts) => Decision::OnDemand,
            _ if facts.spot_available => Decision::Spot,
            _ => Decision::Wait,
        }
    }
}
