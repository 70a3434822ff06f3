//! Hosts that another component has selected: in OpenStack mode Nova's own filters and weighers.
//!
//! The engine then applies only its capacity filter and takes the given weights as they are. The
//! rules of a server group come as two values: the largest number of instances of the request that
//! each host may get, and whether all instances have to go to one host.

use crate::host_needs::HostNeeds;
use crate::table::HostIndex;
use crate::{HostTable, InstancePhase};
use ebbtide_model::host_set::HostSet;
use ebbtide_model::request::check_servers;
use ebbtide_model::{DecisionOutcome, Explanation, ModelError, Resources, ServerId};
use std::collections::HashSet;

/// A host's number in a table. It is the host's while the host is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostNumber(HostIndex);

/// A normal request whose hosts another component selects: amounts instead of a flavor.
#[derive(Debug, Clone, PartialEq)]
pub struct EligibleRequest {
    /// The servers to place, in order. Not empty, no duplicates.
    pub server_ids: Vec<ServerId>,
    /// The requesting project.
    pub project_id: String,
    /// The resources of one instance. Not empty, unless a judge of the hosts counts them.
    pub resources: Resources,
    /// How many alternates to name for each instance.
    pub alternates: u32,
}

impl EligibleRequest {
    /// `is_judged`: see [`EligibleHosts::judge_by`].
    pub(crate) fn check(&self, is_judged: bool) -> Result<(), ModelError> {
        check_servers(&self.project_id, &self.server_ids)?;
        if self.resources.is_empty() && !is_judged {
            return Err(ModelError::Range {
                what: "resources of an instance".to_owned(),
                value: "none".to_owned(),
                allowed: "at least one resource class above 0".to_owned(),
            });
        }
        Ok(())
    }
}

/// The answer to an [`EligibleRequest`], with its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct EligibleDecision {
    /// What was answered.
    pub outcome: DecisionOutcome,
    pub explanation: Explanation,
}

/// Instead of a number of victims: all that may leave are not enough.
pub(crate) const NO_VICTIMS_SUFFICE: u32 = u32::MAX;

/// The hosts that a request may use, and the instances that it must spare.
#[derive(Debug, Clone)]
pub struct EligibleHosts<'n> {
    hosts: HostSet,
    weights: Vec<f64>,
    /// How many instances of the request each host may get; empty: any number.
    most: Vec<u32>,
    together: bool,
    spared: HashSet<ServerId>,
    needs: Option<&'n dyn HostNeeds>,
    /// By slot; `None`: not known.
    fewest: Option<Vec<u32>>,
}

impl<'n> EligibleHosts<'n> {
    /// No host of a table yet.
    #[must_use]
    pub fn none(table: &HostTable) -> Self {
        Self {
            hosts: table.known().none_like(),
            weights: vec![0.0; table.host_slots()],
            most: Vec::new(),
            together: false,
            spared: HashSet::new(),
            needs: None,
            fewest: None,
        }
    }

    /// Adds a host. Among hosts whose victims cost the same, the engine takes the one with the
    /// largest weight; NaN counts least.
    pub fn insert(&mut self, host: HostNumber, weight: f64) {
        if let Some(slot) = self.weights.get_mut(host.0.at()) {
            *slot = weight;
            self.hosts.set(host.0.at());
        }
    }

    /// At most so many instances of the request on a host.
    pub fn limit(&mut self, host: HostNumber, most: u32) {
        if self.most.is_empty() {
            self.most = vec![u32::MAX; self.weights.len()];
        }
        if let Some(slot) = self.most.get_mut(host.0.at()) {
            *slot = most;
        }
    }

    /// All instances of the request go to one host.
    pub fn together(&mut self) {
        self.together = true;
    }

    /// An instance that is no victim of this request.
    pub fn spare(&mut self, id: ServerId) {
        self.spared.insert(id);
    }

    /// The request needs more of a host than amounts, and this judges it.
    pub fn judge_by(&mut self, needs: &'n dyn HostNeeds) {
        self.needs = Some(needs);
    }

    /// The judge refuses one instance of the request on a host, more of them anyway, until at least
    /// so many preemptible instances have left; `None`: whichever leave. Zero, which holds of every
    /// host that nothing is said of, says nothing. The engine then asks the judge about fewer hosts
    /// and answers the same.
    pub fn at_least(&mut self, host: HostNumber, victims: Option<u32>) {
        let slots = self.weights.len();
        let fewest = self.fewest.get_or_insert_with(|| vec![0; slots]);
        if let Some(slot) = fewest.get_mut(host.0.at()) {
            *slot = victims.unwrap_or(NO_VICTIMS_SUFFICE);
        }
    }

    /// By slot: see [`Self::at_least`].
    pub(crate) fn fewest(&self) -> Option<&[u32]> {
        self.fewest.as_deref()
    }

    pub(crate) fn host_needs(&self) -> Option<&'n dyn HostNeeds> {
        self.needs
    }

    pub(crate) fn hosts(&self) -> &HostSet {
        &self.hosts
    }

    pub(crate) fn weight(&self, host: HostIndex) -> f64 {
        self.weights.get(host.at()).copied().unwrap_or(0.0)
    }

    /// How many instances a host may get; `None`: any number, on all hosts.
    pub(crate) fn most(&self, host: HostIndex) -> Option<u32> {
        self.most.get(host.at()).copied()
    }

    pub(crate) fn is_limited(&self) -> bool {
        !self.most.is_empty()
    }

    pub(crate) fn is_together(&self) -> bool {
        self.together
    }

    pub(crate) fn spares(&self, id: ServerId) -> bool {
        !self.spared.is_empty() && self.spared.contains(&id)
    }
}

impl HostTable {
    /// The number of a host; `None` if it is unknown.
    #[must_use]
    pub fn host_number(&self, name: &str) -> Option<HostNumber> {
        self.find_host(name).map(HostNumber)
    }

    /// How many preemptible instances a host has, leaving ones included.
    #[must_use]
    pub fn preemptible_on(&self, host: HostNumber) -> usize {
        let slots = self.slots_on(host.0).iter();
        let rows = slots.map(|slot| self.row(*slot));
        rows.filter(|row| row.preemptible && row.phase != InstancePhase::Retained)
            .count()
    }

    /// The preemptible instances of a host that are not leaving: its victims, if any.
    pub fn candidates_of(&self, host: HostNumber) -> impl Iterator<Item = ServerId> + '_ {
        let slots = self.candidates_on(host.0).iter();
        slots.map(|slot| self.row(*slot).id)
    }
}
