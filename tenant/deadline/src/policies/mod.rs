//! The policies, one a file.

mod greedy;
mod planned;
mod time_sliced;
mod uniform_progress;

use crate::facts::signed;
use crate::{DeadlineError, DeadlineJob, Decision, History, JobFacts, JobServer, SafeDecisions};
use greedy::Greedy;
use planned::PlannedPolicy;
use time_sliced::TimeSliced;
use uniform_progress::UniformProgress;

/// The most slices of the policy `time-sliced`.
pub const MOST_SLICES: u32 = 1_000;

/// Proposes what to do. The safety net may overrule it.
trait Policy {
    fn propose(&mut self, job: &DeadlineJob, facts: &JobFacts) -> Decision;
}

/// The policies by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyKind {
    /// On demand from the first second.
    OnDemand,
    /// Preemptible servers while there are any, waiting otherwise, on demand when time runs out.
    Greedy,
    /// Greedy in each of so many equal slices of the time.
    TimeSliced {
        /// The number of slices.
        slices: u32,
    },
    /// *Can't Be Late*'s Uniform Progress, as its text has the rules.
    UniformProgress,
    /// The same, but an on-demand server is kept until a preemptible one can be had: the reading
    /// that gives the hours of the paper's table 3.
    UniformProgressKeep,
    /// Ours: least expected cost under a model of availability that learns.
    Planned,
}

impl PolicyKind {
    /// The name in tables and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Greedy => "greedy",
            Self::TimeSliced { .. } => "time-sliced",
            Self::UniformProgress => "uniform-progress",
            Self::UniformProgressKeep => "uniform-progress-keep",
            Self::Planned => "planned",
        }
    }
}

/// Decides for one job. The same facts in the same order give the same decisions.
#[derive(Debug, Clone)]
pub struct Decider {
    job: DeadlineJob,
    policy: Chosen,
}

#[derive(Debug, Clone)]
enum Chosen {
    OnDemand,
    Greedy(Greedy),
    TimeSliced(TimeSliced),
    UniformProgress(UniformProgress),
    Planned(Box<PlannedPolicy>),
}

impl Decider {
    /// A decider for a job, with what was seen of the market before the job's life began. Only
    /// [`PolicyKind::Planned`] reads it.
    ///
    /// # Errors
    /// [`DeadlineError::Slices`] for a number of slices out of range.
    pub fn new(
        job: DeadlineJob,
        kind: PolicyKind,
        history: &History,
    ) -> Result<Self, DeadlineError> {
        let policy = match kind {
            PolicyKind::OnDemand => Chosen::OnDemand,
            PolicyKind::Greedy => Chosen::Greedy(Greedy),
            PolicyKind::TimeSliced { slices } if (1..=MOST_SLICES).contains(&slices) => {
                Chosen::TimeSliced(TimeSliced::new(slices))
            }
            PolicyKind::TimeSliced { slices } => {
                return Err(DeadlineError::Slices {
                    slices,
                    most: MOST_SLICES,
                });
            }
            PolicyKind::UniformProgress | PolicyKind::UniformProgressKeep => {
                let keep = kind == PolicyKind::UniformProgressKeep;
                Chosen::UniformProgress(UniformProgress { keep })
            }
            PolicyKind::Planned => Chosen::Planned(Box::new(PlannedPolicy::new(history))),
        };
        Ok(Self { job, policy })
    }

    #[must_use]
    pub fn job(&self) -> &DeadlineJob {
        &self.job
    }

    /// What to do until the next decision, at most a poll interval later. A job that is done needs
    /// no server.
    pub fn decide(&mut self, facts: &JobFacts) -> Decision {
        let job = &self.job;
        let proposal = match &mut self.policy {
            Chosen::OnDemand => Decision::OnDemand,
            Chosen::Greedy(policy) => policy.propose(job, facts),
            Chosen::TimeSliced(policy) => policy.propose(job, facts),
            Chosen::UniformProgress(policy) => policy.propose(job, facts),
            Chosen::Planned(policy) => policy.propose(job, facts),
        };
        if facts.is_done(job) {
            return Decision::Wait;
        }
        SafeDecisions::of(job, facts).hold(proposal)
    }
}

/// The Safety Net Rule of the paper (section 3.3): an idle job with less slack than two changeovers
/// goes on demand. It stays there because its slack does not grow.
fn net_reached(job: &DeadlineJob, facts: &JobFacts) -> bool {
    facts.slack(job) < 2 * signed(job.terms().changeover)
}

/// A preemptible server is held. The Exploitation Rule of the paper (section 3.3): it is kept until
/// it is lost.
fn on_spot(facts: &JobFacts) -> bool {
    matches!(facts.held, JobServer::Spot { .. })
}
