//! Servers: what tenants asked for and what became of it.

use crate::{
    Comeback, DecisionId, EvacuationId, Flavor, GroupId, ModelError, Money, SavedState, Seconds,
    ServerId, Timestamp, names,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The state of a server.
///
/// ```text
/// Waiting ─▶ Building ─▶ Active ─▶ Evacuating ─▶ Preempted | Stopped | Hibernated
///    │           │          ▲          │ spared
///    │           │          └──────────┘
///    └───────────┴──▶ Error          any of them ─▶ Deleting ─▶ Deleted
///
/// Stopped | Hibernated ─▶ Building    there is room again
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerStatus {
    /// It has a claim on a host; victims have to leave first.
    Waiting,
    /// Its agent was told to start it.
    Building,
    /// It has its claim, and the caller starts it (select-destinations).
    Reserved,
    /// It runs.
    Active,
    /// It runs, and has been chosen as a victim.
    Evacuating,
    /// It was a victim and was shut down; its disk is kept.
    Stopped,
    /// It was a victim and its memory is on disk, which is kept.
    Hibernated,
    /// It was a victim and is gone.
    Preempted,
    /// Its owner has requested its deletion; the agent has the command.
    Deleting,
    /// It was deleted for its owner.
    Deleted,
    /// It could not be placed or started, or it was lost; the fault says why.
    Error,
}

impl ServerStatus {
    /// All of them, in the order of a life.
    pub const ALL: [Self; 11] = [
        Self::Waiting,
        Self::Building,
        Self::Reserved,
        Self::Active,
        Self::Evacuating,
        Self::Stopped,
        Self::Hibernated,
        Self::Preempted,
        Self::Deleting,
        Self::Deleted,
        Self::Error,
    ];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Building => "building",
            Self::Reserved => "reserved",
            Self::Active => "active",
            Self::Evacuating => "evacuating",
            Self::Stopped => "stopped",
            Self::Hibernated => "hibernated",
            Self::Preempted => "preempted",
            Self::Deleting => "deleting",
            Self::Deleted => "deleted",
            Self::Error => "error",
        }
    }

    /// True while the server occupies all its capacity on its host: it runs there, or the capacity
    /// is kept for it. A stopped or hibernated one holds only what
    /// [`FlavorProperties::retained`](crate::FlavorProperties::retained) says, and for that this is
    /// false.
    #[must_use]
    pub fn holds_room(self) -> bool {
        matches!(
            self,
            Self::Waiting
                | Self::Building
                | Self::Reserved
                | Self::Active
                | Self::Evacuating
                | Self::Deleting
        )
    }

    /// True if the server cannot change any more.
    #[must_use]
    pub fn is_gone(self) -> bool {
        matches!(self, Self::Preempted | Self::Deleted)
    }
}

impl fmt::Display for ServerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ServerStatus {
    type Err = ModelError;

    fn from_str(word: &str) -> Result<Self, ModelError> {
        Self::ALL.into_iter().find(|s| s.as_str() == word).ok_or_else(|| ModelError::Unknown {
            what: "server status",
            value: names::shorten(word),
            allowed: "waiting, building, reserved, active, evacuating, stopped, hibernated, preempted, deleting, deleted, error",
        })
    }
}

/// Why a server is in error, or is gone without a request of its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFailure {
    /// A stable code.
    pub code: String,
    /// In words, for the owner: names no other tenant.
    pub message: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Server {
    pub id: ServerId,
    /// The name that its owner gave it.
    pub name: String,
    /// Who owns it.
    pub project_id: String,
    /// Its flavor, as it was when the server was created.
    pub flavor: Flavor,
    /// Its server group, if any.
    #[serde(default)]
    pub group_id: Option<GroupId>,
    /// The zone that was asked for, if any.
    #[serde(default)]
    pub availability_zone: Option<String>,
    /// Its current, last or future host.
    #[serde(default)]
    pub host: Option<String>,
    /// Where it is in its life.
    pub status: ServerStatus,
    /// True if the caller starts it, not an agent (select-destinations).
    #[serde(default)]
    pub external: bool,
    /// The decision that put it where it is.
    #[serde(default)]
    pub decision_id: Option<DecisionId>,
    /// The evacuation that it is, or was, the victim of.
    #[serde(default)]
    pub evacuation_id: Option<EvacuationId>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it began to run; hours are counted from here.
    #[serde(default)]
    pub launched_at: Option<Timestamp>,
    /// When its agent reported that it runs, by the agent's clock: reports that the agent sent
    /// before that are outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_at: Option<Timestamp>,
    #[serde(default)]
    pub ended_at: Option<Timestamp>,
    /// What went wrong.
    #[serde(default)]
    pub fault: Option<ServerFailure>,
    /// The most that its owner pays for an hour; `None`: any market price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_price: Option<Money>,
    /// Hosts that its owner did not want.
    #[serde(default)]
    pub ignore_hosts: Vec<String>,
    /// The only hosts that its owner wanted; empty for any.
    #[serde(default)]
    pub force_hosts: Vec<String>,
    /// Hosts that could not take it; they are not tried again for this server.
    #[serde(default)]
    pub refused_hosts: Vec<String>,
    /// For each of these hosts: when it reported, by its own clock, that nothing of an abandoned
    /// start is left there. Reports that it sent earlier, and late or repeated ones, are ignored.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_hosts: BTreeMap<String, Timestamp>,
    /// The `time` of the last start or first notice that the scheduler sent to an agent about it.
    /// Agents order messages by this time, so every further message gets a later one, also from a
    /// scheduler whose clock is behind or was set back.
    #[serde(default, rename = "told_at", skip_serializing_if = "Option::is_none")]
    pub last_message_at: Option<Timestamp>,
    /// How often the scheduler told an agent to start it. A report about an earlier start says
    /// nothing about the current one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub starts: u32,
    /// The plan for its return, once it was evacuated and kept. While it is stopped or hibernated
    /// with this, it waits for capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comeback: Option<Comeback>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Server {
    /// True if it may be evacuated for a normal request. Fixed at creation by its copy of the
    /// flavor.
    #[must_use]
    pub fn is_preemptible(&self) -> bool {
        self.flavor.is_preemptible()
    }

    /// True while it waits for capacity to resume: it was evacuated and kept, and its agent starts
    /// it.
    #[must_use]
    pub fn waits_to_come_back(&self) -> bool {
        self.comeback.is_some() && !self.external && SavedState::of(self.status).is_some()
    }

    /// True if its current or last start resumes it from its kept state.
    #[must_use]
    pub fn resumes(&self) -> bool {
        self.comeback.is_some()
    }

    /// The storage in which it was last kept, if several hosts share it.
    #[must_use]
    pub fn saved_storage(&self) -> Option<String> {
        self.comeback.as_ref().and_then(|c| c.storage.clone())
    }

    /// The grace period it gets: its flavor's, or the region's default.
    #[must_use]
    pub fn grace(&self, default: Seconds) -> Seconds {
        self.flavor
            .properties()
            .ok()
            .and_then(|p| p.grace)
            .unwrap_or(default)
    }
}
