//! The instance that a job runs on, and the news about it.

use super::fleet::Fleet;
use super::guest::OwnMetadata;
use super::method::Env;
use ebbtide_run::Span;
use ebbtide_shell::errors::CliError;
use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior};

/// News about an instance.
#[derive(Debug)]
pub(super) enum InstanceNews {
    /// An instance is available.
    Here {
        age: Span,
        /// Environment variables for the user's commands.
        env: Env,
        /// The same as text for people.
        words: String,
    },
    /// The instance has notice.
    Notice {
        /// The earliest time at which the instance ends: milliseconds since 1970.
        deadline: i64,
        /// For people.
        words: String,
    },
    /// The provider reports a higher risk.
    Risk,
    /// The job is to be saved, and goes on: the reason.
    Save(String),
    /// The notice is withdrawn.
    Spared,
    /// The instance is gone, or stopped: the reason.
    Gone(String),
    /// A message that does not affect the job.
    Talk(String),
    /// A server is about to be requested; its id is known already ([`JobHost::created`]).
    Asking,
    /// There is no instance and there will be none: every further request would fail in the same
    /// way.
    Never(CliError),
}

/// Repeated polling of a source that sometimes does not answer.
#[derive(Debug)]
pub(super) struct Rounds {
    poll: Interval,
    silent: bool,
}

impl Rounds {
    pub(super) fn new(poll: Duration) -> Self {
        let mut poll = tokio::time::interval(poll);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            poll,
            silent: false,
        }
    }

    /// Waits for the next poll.
    pub(super) async fn due(&mut self) {
        self.poll.tick().await;
    }

    /// Makes the next poll due at once.
    pub(super) fn hurry(&mut self) {
        self.poll.reset_immediately();
    }

    /// Number of polls in this time, at least one.
    pub(super) fn looks(&self, time: Duration) -> u32 {
        let looks = time.as_millis() / self.poll.period().as_millis().max(1);
        u32::try_from(looks).unwrap_or(u32::MAX).max(1)
    }

    /// Converts the result of a poll to news. The first missing answer is news; polling continues
    /// in any case.
    pub(super) fn seen(
        &mut self,
        looked: Result<Option<InstanceNews>, String>,
    ) -> Option<InstanceNews> {
        match looked {
            Ok(news) => {
                self.silent = false;
                news
            }
            Err(problem) => {
                let known = std::mem::replace(&mut self.silent, true);
                (!known).then_some(InstanceNews::Talk(problem))
            }
        }
    }
}

/// The kind of instance that a job runs on.
#[derive(Debug)]
pub(super) enum JobHost {
    /// This machine, without any source of notices.
    Here {
        /// Its age; `None` for the time since its boot.
        age: Option<Span>,
    },
    /// A virtual machine that can read its metadata.
    Guest(Box<OwnMetadata>),
    /// Servers of a cloud, which this program watches from outside.
    Fleet(Box<Fleet>),
}

impl JobHost {
    /// Waits for the next news. Safe to cancel: a later call returns news that was not returned.
    pub(super) async fn next(&mut self) -> InstanceNews {
        match self {
            Self::Here { .. } => std::future::pending().await,
            Self::Guest(guest) => guest.next().await,
            Self::Fleet(fleet) => fleet.next().await,
        }
    }

    /// Reports that the instance needs no more time. The error is a text for people.
    pub(super) async fn release(&mut self) -> Result<(), String> {
        match self {
            Self::Here { .. } => Ok(()),
            Self::Guest(guest) => guest.release().await,
            Self::Fleet(fleet) => fleet.release().await,
        }
    }

    /// Ends the use of the instance: deletes what was created for the job.
    pub(super) async fn leave(&mut self) -> Result<Option<String>, CliError> {
        match self {
            Self::Fleet(fleet) => fleet.leave().await,
            Self::Here { .. } | Self::Guest(_) => Ok(None),
        }
    }

    /// Whether the provider accepts a report that the instance needs no more time.
    pub(super) fn releases(&self) -> bool {
        match self {
            Self::Here { .. } => false,
            Self::Guest(guest) => guest.releases(),
            Self::Fleet(_) => true,
        }
    }

    /// The id of the server that was created for the job, so that a later run finds it.
    pub(super) fn created(&self) -> Option<String> {
        match self {
            Self::Fleet(fleet) => fleet.created(),
            Self::Here { .. } | Self::Guest(_) => None,
        }
    }
}
