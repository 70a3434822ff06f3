//! Where a job runs, and how it hears what becomes of that.

use super::fleet::Fleet;
use super::guest::Guest;
use super::method::Env;
use crate::errors::CliError;
use ebbtide_run::Span;
use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior};

/// What became of an instance.
#[derive(Debug)]
pub(super) enum News {
    /// There is one.
    Here {
        /// Its age.
        age: Span,
        /// What commands are told about it.
        env: Env,
        /// The same for people.
        words: String,
    },
    /// It has to leave.
    Notice {
        /// When at the earliest: milliseconds since 1970.
        deadline: i64,
        /// For people.
        words: String,
    },
    /// The provider sees a risk.
    Risk,
    /// It stays after all.
    Spared,
    /// It is gone, or stands still: why.
    Gone(String),
    /// Nothing that would matter to the job.
    Talk(String),
    /// A server is going to be asked for, whose id is known already ([`Place::created`]).
    Asking,
    /// There is none and will be none: what is asked for cannot be, however often it is asked for.
    Never(CliError),
}

/// Looking again and again, at whoever may not answer now and then.
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

    /// Waits until it is time to look.
    pub(super) async fn due(&mut self) {
        self.poll.tick().await;
    }

    /// It is time at once.
    pub(super) fn hurry(&mut self) {
        self.poll.reset_immediately();
    }

    /// So many looks take this long, one at least.
    pub(super) fn looks(&self, time: Duration) -> u32 {
        let looks = time.as_millis() / self.poll.period().as_millis().max(1);
        u32::try_from(looks).unwrap_or(u32::MAX).max(1)
    }

    /// What was seen, if it is news. That there was no answer is, the first time: it is asked again in any case.
    pub(super) fn seen(&mut self, looked: Result<Option<News>, String>) -> Option<News> {
        match looked {
            Ok(news) => {
                self.silent = false;
                news
            }
            Err(problem) => {
                let known = std::mem::replace(&mut self.silent, true);
                (!known).then_some(News::Talk(problem))
            }
        }
    }
}

/// Where a job runs.
#[derive(Debug)]
pub(super) enum Place {
    /// On this machine, about which nothing is heard.
    Here,
    /// In a virtual machine, which can read its metadata.
    Guest(Box<Guest>),
    /// Beside servers of a region, which this program watches.
    Fleet(Box<Fleet>),
}

impl Place {
    /// What happens next. Safe to cancel: what was not heard is heard the next time.
    pub(super) async fn next(&mut self) -> News {
        match self {
            Self::Here => std::future::pending().await,
            Self::Guest(guest) => guest.next().await,
            Self::Fleet(fleet) => fleet.next().await,
        }
    }

    /// Says that no more time is needed. What came of it, for people.
    pub(super) async fn release(&mut self) -> Result<(), String> {
        match self {
            Self::Here => Ok(()),
            Self::Guest(guest) => guest.release().await,
            Self::Fleet(fleet) => fleet.release().await,
        }
    }

    /// The end: what was created for the job is given back.
    pub(super) async fn leave(&mut self) -> Result<Option<String>, CliError> {
        match self {
            Self::Fleet(fleet) => fleet.leave().await,
            Self::Here | Self::Guest(_) => Ok(None),
        }
    }

    /// Whether the provider can be told that no more time is needed.
    pub(super) fn releases(&self) -> bool {
        match self {
            Self::Here => false,
            Self::Guest(guest) => guest.releases(),
            Self::Fleet(_) => true,
        }
    }

    /// The server that was created for the job, to be found again.
    pub(super) fn created(&self) -> Option<String> {
        match self {
            Self::Fleet(fleet) => fleet.created(),
            Self::Here | Self::Guest(_) => None,
        }
    }
}
