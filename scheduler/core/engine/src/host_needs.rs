//! What a request needs of a host besides amounts of resource classes, judged by another component:
//! in OpenStack mode NUMA cells and PCI devices, by Nova's filters.

use crate::state::DecisionState;
use crate::table::{HostIndex, Slot};
use ebbtide_model::ServerId;
use std::fmt::Debug;

/// What every set of instances that is accepted frees in any case: columns of the victim search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NeedColumns {
    /// What is missing of each column; an accepted set covers at least one of these. Not empty.
    pub deficits: Vec<Vec<i64>>,
    /// What each instance frees of each column, one row an instance. Never negative.
    pub freed: Vec<i64>,
}

impl NeedColumns {
    /// No columns: every set may be accepted.
    #[must_use]
    pub fn none() -> Self {
        Self {
            deficits: vec![Vec::new()],
            freed: Vec::new(),
        }
    }
}

/// Judges hosts for one request. Hosts go by their names. The same question has the same answer as
/// long as a decision takes.
pub trait HostNeeds: Debug + Sync {
    /// Whether an instance frees anything on its host besides amounts.
    fn frees(&self, host: &str, instance: ServerId) -> bool;

    /// Whether `count` instances of the request fit on a host once these instances have left it.
    /// Amounts are not looked at.
    fn fits(&self, host: &str, count: u32, gone: &[ServerId]) -> bool;

    /// What holds in any case of the sets of `candidates` that [`Self::fits`] accepts, once
    /// `before` have left.
    fn columns(
        &self,
        _host: &str,
        _count: u32,
        _before: &[ServerId],
        _candidates: &[ServerId],
    ) -> NeedColumns {
        NeedColumns::none()
    }

    /// Why the host is refused even without these instances, in words.
    fn reason(&self, host: &str, count: u32, gone: &[ServerId]) -> String;
}

/// The needs of the request at hand on one host.
#[derive(Clone, Copy)]
pub(crate) struct NeedsOn<'a> {
    pub(crate) needs: &'a dyn HostNeeds,
    pub(crate) host: &'a str,
    /// Instances of the request on the host, those included that were placed before.
    pub(crate) count: u32,
}

impl NeedsOn<'_> {
    pub(crate) fn fits(&self, gone: &[ServerId]) -> bool {
        self.needs.fits(self.host, self.count, gone)
    }
}

impl<'a> DecisionState<'a> {
    /// The needs of the request besides amounts, if it has any.
    pub(crate) fn host_needs(&self) -> Option<&'a dyn HostNeeds> {
        self.ask.eligible.and_then(|eligible| eligible.host_needs())
    }

    /// By slot, how many victims a host needs at least for one instance of the request, where it
    /// has needs besides amounts and that is known.
    pub(crate) fn fewest(&self) -> Option<&'a [u32]> {
        let eligible = self.ask.eligible?;
        eligible
            .fewest()
            .filter(|_| eligible.host_needs().is_some())
    }

    /// The same for `count` more instances on a host.
    pub(crate) fn needs_on(&self, host: HostIndex, count: i64) -> Option<NeedsOn<'a>> {
        let needs = self.host_needs()?;
        let count = self.placed_on(host).saturating_add(count);
        Some(NeedsOn {
            needs,
            host: self.table.host_name(host),
            count: u32::try_from(count).unwrap_or(u32::MAX),
        })
    }

    /// The instances that have to leave a host for what was placed there before.
    pub(crate) fn leaving_for_placed(&self, host: HostIndex) -> Vec<ServerId> {
        let pending = self.pending(host);
        let slots = pending.map_or(&[][..], |pending| &pending.victims);
        self.ids(slots)
    }

    pub(crate) fn ids(&self, slots: &[Slot]) -> Vec<ServerId> {
        slots.iter().map(|slot| self.table.row(*slot).id).collect()
    }
}
