//! The safety net under every policy: which decisions keep the deadline whatever happens next.
//!
//! *Slack* is the time until the deadline less the work that is left. The invariant: without an
//! on-demand server the slack is at least one changeover, on an on-demand server at least what is
//! left of its changeover. On-demand servers can always be had and are never lost.
//!
//! - Waiting costs one poll interval of slack at most, then one changeover must be left.
//! - A new preemptible server costs its changeover and, when it is lost, the time until the loss is
//!   known; then one changeover must be left. Progress on it leaves the slack as it is, so a server
//!   that was safe to start stays safe to keep.
//! - An on-demand server, once it makes progress, leaves the slack as it is. It is left only if one
//!   of the two other decisions is safe, which allows for the changeover back.

use crate::facts::signed;
use crate::{DeadlineJob, Decision, JobFacts, JobServer};

/// Which decisions are safe. [`Decision::OnDemand`] always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SafeDecisions {
    /// [`Decision::Wait`] is.
    pub wait: bool,
    /// [`Decision::Spot`] is, and such a server is held or could be had.
    pub spot: bool,
}

impl SafeDecisions {
    /// What is safe for a job with these facts.
    #[must_use]
    pub fn of(job: &DeadlineJob, facts: &JobFacts) -> Self {
        let terms = job.terms();
        let slack = facts.slack(job);
        let changeover = signed(terms.changeover);
        let starting = match facts.held {
            JobServer::Spot { starting } => signed(starting),
            JobServer::Nothing | JobServer::OnDemand { .. } => changeover,
        };
        let after_loss = slack - starting - signed(terms.loss_lag);
        Self {
            wait: slack - signed(terms.poll) >= changeover,
            spot: facts.spot_available && after_loss >= changeover,
        }
    }

    /// The proposal if it is safe, otherwise an on-demand server.
    #[must_use]
    pub fn hold(self, proposal: Decision) -> Decision {
        let safe = match proposal {
            Decision::Wait => self.wait,
            Decision::Spot => self.spot,
            Decision::OnDemand => true,
        };
        if safe { proposal } else { Decision::OnDemand }
    }
}
