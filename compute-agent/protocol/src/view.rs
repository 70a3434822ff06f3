//! What a driver tells about its hypervisor: plain data, shared by the drivers and the pure protocol.

use ebbtide_model::message::HostedState;
use ebbtide_model::{
    EvacuationId, InterruptionBehaviour, Inventory, ResourceClass, Resources, Seconds, ServerId,
    Timestamp, Trait,
};
use std::collections::{BTreeMap, BTreeSet};

/// What the host has and is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostFacts {
    /// Total, reserved and allocation ratio of each resource class.
    pub inventory: BTreeMap<ResourceClass, Inventory>,
    /// The host's traits.
    pub traits: BTreeSet<Trait>,
    /// The storage that the host shares with others, by its name.
    pub storage: Option<String>,
}

/// One server as the hypervisor sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerView {
    /// The server.
    pub server_id: ServerId,
    /// What it is doing.
    pub state: HostedState,
    /// The evacuation for which the guest has said that it needs no more time. Naming it keeps a word that was said
    /// about an earlier notice from shortening a later one.
    pub released: Option<EvacuationId>,
}

/// What one server still holds on the hypervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Occupancy {
    /// Nothing: the hypervisor does not have it.
    Absent,
    /// It is there.
    Present {
        /// What it is doing.
        state: HostedState,
        /// What nobody else can have because of it.
        holds: Resources,
        /// Since when it runs, or ran last.
        since: Timestamp,
    },
}

impl Occupancy {
    /// True if nothing on this host is held by it.
    #[must_use]
    pub fn holds_nothing(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Present { state, holds, .. } => {
                *state != HostedState::Running && holds.is_empty()
            }
        }
    }

    /// True if the room that this interruption is to free is free: after terminate and live-migrate the server holds nothing at
    /// all, after stop and hibernate it does not run and holds at most its disk.
    #[must_use]
    pub fn is_free_after(&self, behaviour: InterruptionBehaviour) -> bool {
        match self {
            Self::Absent => true,
            Self::Present { state, holds, .. } => {
                !matches!(
                    behaviour,
                    InterruptionBehaviour::Terminate | InterruptionBehaviour::LiveMigrate
                ) && *state != HostedState::Running
                    && holds
                        .iter()
                        .all(|(class, _)| *class == ResourceClass::disk_gb())
            }
        }
    }
}

/// What the guest is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestNotice {
    /// The evacuation, so that the guest's answer can be told from an answer to another one.
    pub evacuation_id: EvacuationId,
    /// What will happen to it.
    pub behaviour: InterruptionBehaviour,
    /// How long it has from now.
    pub grace: Seconds,
    /// The earliest moment of its end. Counted from before the notice was given: it may live a little longer.
    pub not_before: Timestamp,
    /// After that nobody may be told any more: whoever wanted the room has planned without it by then.
    pub begin_before: Timestamp,
}

/// What came of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeOutcome {
    /// The guest has been told.
    Delivered,
    /// There is no running guest that could be told, so there is nothing to wait for.
    NotRunning,
}
