//! A request as the engine works with it: extra specs read, classes looked up, group found.

use crate::table::{ClassColumns, HostIndex};
use crate::{EligibleHosts, EligibleRequest, EngineError, HostTable};
use ebbtide_model::{
    Flavor, FlavorProperties, GroupPolicy, PlacementRequest, ResourceClass, Resources, ServerGroup,
    ServerId,
};
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

/// What a request says about hosts besides capacity. Empty if another component has applied its
/// own rules.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HostRules<'a> {
    pub(crate) availability_zone: Option<&'a str>,
    pub(crate) ignore_hosts: &'a [String],
    pub(crate) force_hosts: &'a [String],
    /// The flavor's traits and demands on aggregates.
    pub(crate) properties: Option<&'a FlavorProperties>,
}

#[derive(Debug)]
pub(crate) struct CheckedRequest<'a> {
    pub(crate) server_ids: &'a [ServerId],
    pub(crate) project_id: &'a str,
    /// What one instance takes.
    pub(crate) resources: &'a Resources,
    preemptible: bool,
    /// How many alternates to name.
    pub(crate) alternates: u32,
    /// The flavor, for weighers; `None` if the request has none.
    pub(crate) flavor: Option<&'a Flavor>,
    pub(crate) host_rules: HostRules<'a>,
    pub(crate) needs: Vec<ResourceDemand<'a>>,
    pub(crate) group: Option<&'a ServerGroup>,
    /// The only hosts that may be used, if another component (in OpenStack mode Nova's filters) has
    /// selected them.
    pub(crate) eligible: Option<&'a EligibleHosts<'a>>,
    /// The hosts that may be used. Unlike forced ones they have to pass all filters.
    pub(crate) only: Option<BTreeSet<HostIndex>>,
    /// How many instances are placed in one step: all of them under affinity, where one host has to
    /// hold all; else one.
    pub(crate) bundle: i64,
}

fn demands<'a>(table: &'a HostTable, resources: &'a Resources) -> Vec<ResourceDemand<'a>> {
    let demand = |(class, amount)| ResourceDemand {
        class,
        columns: table.class(class),
        amount: i64::try_from(amount).unwrap_or(i64::MAX),
    };
    resources.iter().map(demand).collect()
}

fn bundle(server_ids: &[ServerId], together: bool) -> i64 {
    if together {
        i64::try_from(server_ids.len()).unwrap_or(i64::MAX)
    } else {
        1
    }
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
        eligible: Option<&'a EligibleHosts<'a>>,
    ) -> Result<Self, EngineError> {
        let group = match request.group_id {
            Some(id) => Some(table.group(id).ok_or(EngineError::UnknownGroup(id))?),
            None => None,
        };
        let together = group.is_some_and(|g| g.policy == GroupPolicy::Affinity)
            || eligible.is_some_and(EligibleHosts::is_together);
        Ok(Self {
            server_ids: &request.server_ids,
            project_id: &request.project_id,
            resources: &properties.resources,
            preemptible: properties.preemptible,
            alternates: request.alternates,
            flavor: Some(&request.flavor),
            host_rules: HostRules {
                availability_zone: request.availability_zone.as_deref(),
                ignore_hosts: &request.ignore_hosts,
                force_hosts: &request.force_hosts,
                properties: Some(properties),
            },
            needs: demands(table, &properties.resources),
            group,
            eligible,
            only: None,
            bundle: bundle(&request.server_ids, together),
        })
    }

    /// A normal request for amounts on hosts that another component has selected.
    pub(crate) fn for_eligible(
        table: &'a HostTable,
        request: &'a EligibleRequest,
        eligible: &'a EligibleHosts<'a>,
    ) -> Self {
        Self {
            server_ids: &request.server_ids,
            project_id: &request.project_id,
            resources: &request.resources,
            preemptible: false,
            alternates: request.alternates,
            flavor: None,
            host_rules: HostRules::default(),
            needs: demands(table, &request.resources),
            group: None,
            eligible: Some(eligible),
            only: None,
            bundle: bundle(&request.server_ids, eligible.is_together()),
        }
    }

    /// True if the instances may be evacuated later: they see the full state and never have
    /// victims.
    pub(crate) fn preemptible(&self) -> bool {
        self.preemptible
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
            self.server_ids.len()
        }
    }

    /// The state that the capacity filter sees, for the explanation.
    pub(crate) fn state_name(&self) -> &'static str {
        if self.preemptible() { "full" } else { "normal" }
    }
}
