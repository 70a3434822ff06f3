//! Instances, as the table takes them in, keeps them, and shows them.

use super::{HostIndex, HostTable};
use ebbtide_model::{GroupId, Money, ResourceClass, Resources, ServerId, Timestamp};

/// Where an instance is, as far as a decision cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InstancePhase {
    /// It has the room promised: its victims are still there, or its start was not sent yet.
    Claimed,
    /// It is being built, which is I/O work on its host.
    Building,
    /// It runs.
    Running,
    /// It was chosen as a victim, or is being deleted: its room is spoken for, and it is never a
    /// candidate again.
    Leaving,
    /// It was evacuated and is stopped or hibernated. What it retains counts, like normal usage; it
    /// runs nothing, is no member of its group, and can free nothing.
    Retained,
}

/// An instance with a place.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    pub id: ServerId,
    /// The name that its owner gave it; for explanations only.
    pub name: String,
    /// The project that owns it.
    pub project_id: String,
    pub host: String,
    /// What it takes.
    pub resources: Resources,
    /// What it goes on taking when it is evacuated: the disk of a server that is stopped or
    /// hibernated. Counted in h_n like normal usage, since no eviction frees it. What it does not
    /// take it does not retain either: the table cuts this at `resources`. Without meaning for a
    /// normal instance, unless it is in [`InstancePhase::Retained`].
    pub retained: Resources,
    /// True if it may be evacuated for a normal request.
    pub preemptible: bool,
    /// The name of its flavor; empty if it is not known.
    pub flavor: String,
    /// When its flavor's maximum lifetime ends it, if it has one.
    pub ends_at: Option<Timestamp>,
    /// Its server group.
    pub group_id: Option<GroupId>,
    /// When it began to run; `None` if it has not: it counts as age zero, the youngest of all.
    pub launched_at: Option<Timestamp>,
    /// Until when it cannot be a victim; from this very moment on it can.
    pub protected_until: Option<Timestamp>,
    /// Price of an instance-hour.
    pub price_per_hour: Money,
    /// The most that its owner pays for an hour.
    pub max_price: Money,
    /// Priority class; 0 goes first.
    pub priority: u8,
    /// Where it is.
    pub phase: InstancePhase,
}

/// An instance in the table, borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InstanceView<'a> {
    pub id: ServerId,
    /// The name that its owner gave it.
    pub name: &'a str,
    /// The project that owns it.
    pub project_id: &'a str,
    pub host: &'a str,
    /// What it takes.
    pub resources: &'a Resources,
    /// What it goes on taking when it is evacuated; never more than `resources`.
    pub retained: &'a Resources,
    /// True if it may be evacuated for a normal request.
    pub preemptible: bool,
    /// The name of its flavor; empty if it is not known.
    pub flavor: &'a str,
    /// When its flavor's maximum lifetime ends it, if it has one.
    pub ends_at: Option<Timestamp>,
    /// Its server group.
    pub group_id: Option<GroupId>,
    /// When it began to run.
    pub launched_at: Option<Timestamp>,
    /// Until when it cannot be a victim.
    pub protected_until: Option<Timestamp>,
    /// Price of an instance-hour.
    pub price_per_hour: Money,
    /// The most that its owner pays for an hour.
    pub max_price: Money,
    /// Priority class; 0 goes first.
    pub priority: u8,
    /// Where it is.
    pub phase: InstancePhase,
}

impl InstanceView<'_> {
    /// A copy of its own, as it could be put into a table.
    #[must_use]
    pub fn to_instance(&self) -> Instance {
        Instance {
            id: self.id,
            name: self.name.to_owned(),
            project_id: self.project_id.to_owned(),
            host: self.host.to_owned(),
            resources: self.resources.clone(),
            retained: self.retained.clone(),
            preemptible: self.preemptible,
            flavor: self.flavor.to_owned(),
            ends_at: self.ends_at,
            group_id: self.group_id,
            launched_at: self.launched_at,
            protected_until: self.protected_until,
            price_per_hour: self.price_per_hour,
            max_price: self.max_price,
            priority: self.priority,
            phase: self.phase,
        }
    }
}

/// What instances of one kind take and retain. Invariant: of no class more is retained than taken.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct InstanceSize {
    takes: Resources,
    retained: Resources,
}

impl InstanceSize {
    pub(super) fn of(instance: &Instance) -> Self {
        Self {
            takes: instance.resources.clone(),
            retained: instance.retained.at_most(&instance.resources),
        }
    }

    /// What an instance takes.
    pub(crate) fn takes(&self) -> &Resources {
        &self.takes
    }

    /// What its evacuation leaves behind.
    pub(crate) fn retained(&self) -> &Resources {
        &self.retained
    }

    /// What its evacuation frees.
    pub(crate) fn frees(&self) -> Resources {
        self.takes.without(&self.retained)
    }

    /// What its evacuation frees of one class.
    pub(crate) fn freed(&self, class: &ResourceClass) -> i64 {
        let freed = self
            .takes
            .get(class)
            .saturating_sub(self.retained.get(class));
        i64::try_from(freed).unwrap_or(i64::MAX)
    }
}

/// A moment, or none, in eight bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompactTimestamp(i64);

impl CompactTimestamp {
    /// Before every timestamp.
    const NONE: i64 = i64::MIN;

    pub(super) fn new(at: Option<Timestamp>) -> Self {
        Self(at.map_or(Self::NONE, |at| at.as_millis().max(Self::NONE + 1)))
    }

    /// In milliseconds since the epoch.
    pub(crate) fn millis(self) -> Option<i64> {
        (self.0 != Self::NONE).then_some(self.0)
    }

    /// As it was given.
    pub(crate) fn get(self) -> Option<Timestamp> {
        self.millis().map(Timestamp::from_millis)
    }
}

/// An instance as the table keeps it: what is shared is interned.
#[derive(Debug, Clone)]
pub(crate) struct InstanceRow {
    pub(crate) id: ServerId,
    pub(crate) name: Box<str>,
    pub(crate) project: u32,
    pub(crate) host: HostIndex,
    pub(crate) shape: u32,
    pub(crate) flavor: u32,
    pub(crate) ends_at: CompactTimestamp,
    pub(crate) group: Option<GroupId>,
    pub(crate) launched_at: CompactTimestamp,
    pub(crate) protected_until: CompactTimestamp,
    pub(crate) price_per_hour: Money,
    pub(crate) max_price: Money,
    pub(crate) priority: u8,
    pub(crate) preemptible: bool,
    pub(crate) phase: InstancePhase,
    /// Where it stands in its host's list.
    pub(super) position: u32,
}

impl InstanceRow {
    /// True for a preemptible instance that is not leaving.
    pub(crate) fn is_staying_preemptible(&self) -> bool {
        self.preemptible && !matches!(self.phase, InstancePhase::Leaving | InstancePhase::Retained)
    }

    /// Milliseconds that it has been running.
    pub(crate) fn age_millis(&self, now: Timestamp) -> i64 {
        self.launched_at
            .get()
            .map_or(0, |launched| now.millis_since(launched))
    }
}

impl HostTable {
    /// A row as others see it.
    pub(super) fn view<'a>(&'a self, row: &'a InstanceRow) -> InstanceView<'a> {
        InstanceView {
            id: row.id,
            name: &row.name,
            project_id: self.projects.get(row.project),
            host: self.host_name(row.host),
            resources: self.shapes.get(row.shape).takes(),
            retained: self.shapes.get(row.shape).retained(),
            preemptible: row.preemptible,
            flavor: self.flavor_name(row.flavor),
            ends_at: row.ends_at.get(),
            group_id: row.group,
            launched_at: row.launched_at.get(),
            protected_until: row.protected_until.get(),
            price_per_hour: row.price_per_hour,
            max_price: row.max_price,
            priority: row.priority,
            phase: row.phase,
        }
    }
}
