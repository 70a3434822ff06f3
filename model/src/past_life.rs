//! Past lives of servers: the data that lifetime models are fitted to and bills are made from.
//!
//! A server that is kept and comes back has several lives. Each lasts from the time when it began
//! to run until it had to stop.

use crate::{EvacuationCause, ModelError, Money, Seconds, ServerId, Timestamp, names};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How a life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LifeEnd {
    /// A normal server needed the capacity, or was to find it free.
    Preempted,
    /// It reached the maximum lifetime of its flavor.
    MaxLifetime,
    /// The price rose above its owner's maximum price.
    OutOfBid,
    /// Its owner deleted it, before any other end was requested.
    Deleted,
    /// Its owner stopped, suspended or shelved it; it can be started again. Only an OpenStack has
    /// this end.
    Stopped,
    /// It stopped running without a request: its guest shut itself down, or its host failed.
    Lost,
}

impl LifeEnd {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Preempted,
        Self::MaxLifetime,
        Self::OutOfBid,
        Self::Deleted,
        Self::Stopped,
        Self::Lost,
    ];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preempted => "preempted",
            Self::MaxLifetime => "max-lifetime",
            Self::OutOfBid => "out-of-bid",
            Self::Deleted => "deleted",
            Self::Stopped => "stopped",
            Self::Lost => "lost",
        }
    }
}

impl From<EvacuationCause> for LifeEnd {
    fn from(cause: EvacuationCause) -> Self {
        match cause {
            EvacuationCause::Preemption | EvacuationCause::Headroom | EvacuationCause::Reclaim => {
                Self::Preempted
            }
            EvacuationCause::MaxLifetime => Self::MaxLifetime,
            EvacuationCause::OutOfBid => Self::OutOfBid,
        }
    }
}

impl fmt::Display for LifeEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LifeEnd {
    type Err = ModelError;

    fn from_str(word: &str) -> Result<Self, ModelError> {
        Self::ALL
            .into_iter()
            .find(|end| end.as_str() == word)
            .ok_or_else(|| ModelError::Unknown {
                what: "end of a life",
                value: names::shorten(word),
                allowed: "preempted, max-lifetime, out-of-bid, deleted, stopped, lost",
            })
    }
}

/// One life of a server that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastLife {
    pub server_id: ServerId,
    /// The number of the life: how often the scheduler had told an agent to start the server
    /// ([`Server::starts`](crate::Server::starts)). On an OpenStack, where Nova starts servers: the
    /// second since 1970 in which the life began.
    pub starts: u32,
    /// The server's name.
    pub name: String,
    /// Its owner.
    pub project_id: String,
    /// The name of its flavor.
    pub flavor: String,
    /// True if it could be evacuated for normal requests.
    pub preemptible: bool,
    /// What its flavor costs an hour.
    #[serde(default)]
    pub price_per_hour: Money,
    /// The maximum lifetime of its flavor, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lifetime: Option<Seconds>,
    /// Where it ran.
    pub host: String,
    /// The availability zone of that host.
    pub zone: String,
    /// When it began to run.
    pub launched_at: Timestamp,
    /// When it ended, or its owner requested the deletion. Never before it began.
    pub ended_at: Timestamp,
    pub end: LifeEnd,
}

impl PastLife {
    /// A key that is unique among all lives, up to 47 characters.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}.{}", self.server_id, self.starts)
    }
}
