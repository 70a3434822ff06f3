//! A driver's data about its hypervisor: plain data, shared by the drivers and the pure protocol.

use ebbtide_model::message::{HostedFacts, HostedState};
use ebbtide_model::{
    EvacuationId, InterruptionBehaviour, Inventory, ResourceClass, Resources, Seconds, ServerId,
    Timestamp, Trait,
};
use std::collections::{BTreeMap, BTreeSet};

/// Properties of the host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostFacts {
    /// Total, reserved and allocation ratio of each resource class.
    pub inventory: BTreeMap<ResourceClass, Inventory>,
    /// The host's traits.
    pub traits: BTreeSet<Trait>,
    /// The name of the storage that the host shares with others.
    pub storage: Option<String>,
}

/// One server as the hypervisor sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerView {
    pub server_id: ServerId,
    pub state: HostedState,
    /// The evacuation for which the guest has released the rest of its time. With the identifier, a
    /// release of an earlier notice does not shorten a later one.
    pub released: Option<EvacuationId>,
    /// What the hypervisor's records say beyond that, for the scheduler; `None` if they are not the
    /// agent's.
    pub facts: Option<Box<HostedFacts>>,
}

/// What one server still holds on the hypervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Occupancy {
    /// Nothing: the hypervisor does not have it.
    Absent,
    /// It is there.
    Present {
        state: HostedState,
        /// The resources that it keeps from others.
        holds: Resources,
        /// Start time of its current or last run.
        since: Timestamp,
    },
}

impl Occupancy {
    /// True if the server holds nothing on this host.
    #[must_use]
    pub fn holds_nothing(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Present { state, holds, .. } => {
                *state != HostedState::Running && holds.is_empty()
            }
        }
    }

    /// True if this interruption has freed its capacity: after terminate and live-migrate the
    /// server holds nothing at all, after stop and hibernate it does not run and holds at most its
    /// disk.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestNotice {
    /// The evacuation, to match the guest's answer with it.
    pub evacuation_id: EvacuationId,
    /// How it will end.
    pub behaviour: InterruptionBehaviour,
    /// Time until its end, from now.
    pub grace: Seconds,
    /// The earliest time of its end. Counted from before the notice was given, so the guest may
    /// live a little longer.
    pub not_before: Timestamp,
    /// The notice must not be given after this time: by then the scheduler has planned without this
    /// victim.
    pub begin_before: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeOutcome {
    /// The guest has its notice.
    Delivered,
    /// There is no running guest that could get a notice, so there is nothing to wait for.
    NotRunning,
}
