//! A request as the engine works with it: extra specs read, classes looked up, group found.

use crate::table::{ClassColumns, HostIndex};
use crate::{EligibleHosts, EngineError, HostTable};
use ebbtide_model::{FlavorProperties, GroupPolicy, PlacementRequest, ResourceClass, ServerGroup};
use std::collections::BTreeSet;

/// One resource class that is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResourceDemand<'a> {
    pub(crate) class: &'a ResourceClass,
    /// `None` if no host has the class and no instance uses it.
    pub(crate) columns: Option<&'a ClassColumns>,
    /// What one instance takes; above zero.
    pub(crate) amount: i64,
}

/// A checked request.
#[derive(Debug)]
pub(crate) struct CheckedRequest<'a> {
    pub(crate) request: &'a PlacementRequest,
    pub(crate) properties: &'a FlavorProperties,
    pub(crate) needs: Vec<ResourceDemand<'a>>,
    pub(crate) group: Option<&'a ServerGroup>,
    /// The only hosts that may be used, if another component (in OpenStack mode Nova's filters) has
    /// selected them.
    pub(crate) eligible: Option<&'a EligibleHosts>,
    /// The hosts that may be used. Unlike forced ones they have to pass all filters.
    pub(crate) only: Option<BTreeSet<HostIndex>>,
    /// How many instances are placed in one step: all of them under affinity, where one host has to
    /// hold all; else one.
    pub(crate) bundle: i64,
}

impl<'a> CheckedRequest<'a> {
    /// Looks everything up that the request names.
    ///
    /// # Errors
    /// [`EngineError::UnknownGroup`].
    pub(crate) fn new(
        table: &'a HostTable,
        request: &'a PlacementRequest,
        properties: &'a FlavorProperties,
        eligible: Option<&'a EligibleHosts>,
    ) -> Result<Self, EngineError> {
        let group = match request.group_id {
            Some(id) => Some(table.group(id).ok_or(EngineError::UnknownGroup(id))?),
            None => None,
        };
        let needs = properties
            .resources
            .iter()
            .map(|(class, amount)| ResourceDemand {
                class,
                columns: table.class(class),
                amount: i64::try_from(amount).unwrap_or(i64::MAX),
            })
            .collect();
        let together = group.is_some_and(|g| g.policy == GroupPolicy::Affinity)
            || eligible.is_some_and(EligibleHosts::is_together);
        let count = i64::try_from(request.server_ids.len()).unwrap_or(i64::MAX);
        let bundle = if together { count } else { 1 };
        Ok(Self {
            request,
            properties,
            needs,
            group,
            eligible,
            only: None,
            bundle,
        })
    }

    /// True if the instances may be evacuated later: they see the full state and never have
    /// victims.
    pub(crate) fn preemptible(&self) -> bool {
        self.properties.preemptible
    }

    /// The policy of the group that the instances join.
    pub(crate) fn policy(&self) -> Option<GroupPolicy> {
        self.group.map(|g| g.policy)
    }

    /// How many steps it takes to place all instances.
    pub(crate) fn steps(&self) -> usize {
        if self.bundle > 1 {
            1
        } else {
            self.request.server_ids.len()
        }
    }

    /// The state that the capacity filter sees, for the explanation.
    pub(crate) fn state_name(&self) -> &'static str {
        if self.preemptible() { "full" } else { "normal" }
    }
}
