//! The state of a server for its owner: one word, its begin, its end, and the reason. Derived from
//! stored records only.

use crate::{Evacuation, EvacuationCause, EvacuationState, Server, ServerStatus, Timestamp};
use std::fmt;

/// A server's state as its owner sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LifeState {
    /// It waits for capacity: for the first time, or to resume.
    Waiting,
    /// Its host is starting it.
    Starting,
    /// Its host is resuming it from its kept state.
    Returning,
    /// A claim for a program that starts its servers itself.
    Reserved,
    /// It runs.
    Active,
    /// It runs and has to leave; its guest is about to get the notice.
    Warned,
    /// Its guest has the notice; the grace period runs.
    Draining,
    /// It had to leave, its disk is kept, and it stays away for now.
    Stopped,
    /// It had to leave, its memory is kept, and it stays away for now.
    Hibernated,
    /// Its owner has requested its deletion.
    Deleting,
    /// It is gone for good.
    Gone,
    /// It could not be placed or started, or it was lost.
    Error,
}

impl LifeState {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Returning => "returning",
            Self::Reserved => "reserved",
            Self::Active => "active",
            Self::Warned => "warned",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
            Self::Hibernated => "hibernated",
            Self::Deleting => "deleting",
            Self::Gone => "gone",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for LifeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One state of a server's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifeInterval {
    /// The word.
    pub state: LifeState,
    /// Since when, as far as it is known.
    pub since: Option<Timestamp>,
    /// Until when at least: the end of the grace period, or of the time for which it stays away.
    pub until: Option<Timestamp>,
    /// The reason, for the owner: names no other tenant. Empty if there is none.
    pub reason: String,
}

impl LifeInterval {
    /// The state of a server at this time. `leaving`: its evacuation, if known.
    #[must_use]
    pub fn of(server: &Server, leaving: Option<&Evacuation>, now: Timestamp) -> Self {
        let plain = |state, since| Self {
            state,
            since,
            until: None,
            reason: String::new(),
        };
        let fault = || {
            let words = server.fault.as_ref().map(|f| f.message.clone());
            words.unwrap_or_default()
        };
        match server.status {
            ServerStatus::Waiting => Self {
                reason: "its place is promised; others leave it first".to_owned(),
                ..plain(LifeState::Waiting, Some(server.created_at))
            },
            ServerStatus::Building => match &server.comeback {
                Some(comeback) => plain(LifeState::Returning, comeback.resumed_at),
                None => plain(LifeState::Starting, server.last_message_at),
            },
            ServerStatus::Reserved => plain(LifeState::Reserved, server.launched_at),
            ServerStatus::Active => plain(LifeState::Active, server.launched_at),
            ServerStatus::Evacuating => Self::leaving(leaving),
            ServerStatus::Stopped | ServerStatus::Hibernated => Self::saved(server, now, fault()),
            ServerStatus::Deleting => plain(LifeState::Deleting, None),
            ServerStatus::Preempted => Self {
                reason: fault(),
                ..plain(LifeState::Gone, server.ended_at)
            },
            ServerStatus::Deleted => Self {
                reason: "deleted by its owner".to_owned(),
                ..plain(LifeState::Gone, server.ended_at)
            },
            ServerStatus::Error => Self {
                reason: fault(),
                ..plain(LifeState::Error, server.fault.as_ref().map(|f| f.at))
            },
        }
    }

    fn leaving(evacuation: Option<&Evacuation>) -> Self {
        let Some(e) = evacuation else {
            return Self {
                state: LifeState::Warned,
                since: None,
                until: None,
                reason: "it has to leave".to_owned(),
            };
        };
        let cause = match e.cause {
            EvacuationCause::Preemption => "a normal request needs its capacity",
            EvacuationCause::MaxLifetime => "it has lived as long as its flavor allows",
            EvacuationCause::OutOfBid => "the price is above the most that it pays",
            EvacuationCause::Headroom => "its capacity is kept free for normal requests",
            EvacuationCause::Reclaim => "its host is taken back",
        };
        let end = format!("{cause} ({}, {} grace)", e.behaviour, e.grace);
        let reason = match &e.reason {
            Some(why) if e.spare_requested => format!("it may stay if it is not too late: {why}"),
            _ => end,
        };
        let draining = e.state == EvacuationState::Draining;
        Self {
            state: if draining {
                LifeState::Draining
            } else {
                LifeState::Warned
            },
            since: match draining {
                true => e.draining_at,
                false => Some(e.claimed_at),
            },
            until: e.deadline_at.filter(|_| draining),
            reason,
        }
    }

    fn saved(server: &Server, now: Timestamp, fault: String) -> Self {
        let hibernated = server.status == ServerStatus::Hibernated;
        let state = match hibernated {
            true => LifeState::Hibernated,
            false => LifeState::Stopped,
        };
        let Some(comeback) = server.comeback.as_ref().filter(|_| !server.external) else {
            return Self {
                state,
                since: server.ended_at,
                until: None,
                reason: fault,
            };
        };
        let since = Some(comeback.since);
        let failed = comeback.reason.as_ref();
        if now < comeback.not_before {
            let reason = match failed {
                Some(why) => format!("it could not go on: {why}"),
                None => fault,
            };
            return Self {
                state,
                since,
                until: Some(comeback.not_before),
                reason,
            };
        }
        let host = server.host.as_deref().unwrap_or("its host");
        let last = failed.map(|why| format!("; the last attempt: {why}"));
        Self {
            state: LifeState::Waiting,
            since,
            until: None,
            reason: format!(
                "{state}; waits for capacity on {host}{}",
                last.unwrap_or_default()
            ),
        }
    }
}

#[cfg(test)]
#[path = "life_tests.rs"]
mod tests;
