//! How the simulated hypervisor and its guests misbehave. Everything here is put in by a person or
//! a test, and stays until it is used up or cleared.

use clap::ValueEnum;
use ebbtide_model::ServerId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Something that the hypervisor can be asked for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum FaultyAction {
    /// Start a server.
    Start,
    /// Give a guest its notice.
    Notice,
    /// Tell a guest that it may stay.
    Withdraw,
    /// Terminate a server.
    Terminate,
    /// Stop a server.
    Stop,
    /// Hibernate a server.
    Hibernate,
    /// Delete a server.
    Delete,
    /// List all servers.
    List,
    /// Tell what one server holds.
    Look,
}

impl FaultyAction {
    /// The action in words that complete "could not …".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Start => "start the server",
            Self::Notice => "give the guest its notice",
            Self::Withdraw => "tell the guest that it may stay",
            Self::Terminate => "terminate the server",
            Self::Stop => "stop the server",
            Self::Hibernate => "hibernate the server",
            Self::Delete => "delete the server",
            Self::List => "list its servers",
            Self::Look => "tell what the server holds",
        }
    }
}

impl fmt::Display for FaultyAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Start => "start",
            Self::Notice => "notice",
            Self::Withdraw => "withdraw",
            Self::Terminate => "terminate",
            Self::Stop => "stop",
            Self::Hibernate => "hibernate",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Look => "look",
        };
        f.write_str(name)
    }
}

/// What a guest does when it gets its notice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum OnNotice {
    /// Nothing that could be seen from outside.
    #[default]
    Ignore,
    /// It says that it needs no more time.
    Release,
    /// It shuts itself down.
    PowerOff,
}

/// How a guest behaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct GuestHabit {
    /// What it does when it gets its notice.
    pub on_notice: OnNotice,
    /// How long after the notice, in seconds.
    pub after_seconds: f64,
}

/// All misbehaviour that is in force.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Faults {
    /// How often each action is still to fail.
    pub fail: BTreeMap<FaultyAction, u32>,
    /// How often each action is still to hang: it never returns and has no effect.
    pub hang: BTreeMap<FaultyAction, u32>,
    /// How many seconds longer each action takes.
    pub slow: BTreeMap<FaultyAction, f64>,
    /// How guests behave.
    pub guests: GuestHabit,
    /// How single guests behave, whatever the others do.
    pub guest: BTreeMap<ServerId, GuestHabit>,
}

/// What becomes of one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CallPlan {
    pub(super) hangs: bool,
    pub(super) fails: bool,
    pub(super) extra: Duration,
}

impl Faults {
    /// Decides about one call, and uses up what is counted.
    pub(super) fn next(&mut self, what: FaultyAction) -> CallPlan {
        let hangs = use_up(&mut self.hang, what);
        let fails = !hangs && use_up(&mut self.fail, what);
        let slow = self.slow.get(&what).copied().unwrap_or(0.0);
        CallPlan {
            hangs,
            fails,
            extra: Duration::try_from_secs_f64(slow).unwrap_or(Duration::ZERO),
        }
    }

    pub(super) fn habit(&self, server_id: ServerId) -> GuestHabit {
        self.guest.get(&server_id).copied().unwrap_or(self.guests)
    }
}

fn use_up(counts: &mut BTreeMap<FaultyAction, u32>, what: FaultyAction) -> bool {
    let Some(left) = counts.get_mut(&what).filter(|n| **n > 0) else {
        return false;
    };
    *left -= 1;
    if *left == 0 {
        counts.remove(&what);
    }
    true
}
