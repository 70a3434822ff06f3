//! What is asked of a cloud, before its names are resolved.

use crate::error::ServiceError;
use ebbtide_model::{Flavor, PlacementRequest, ServerGroup, names, request};
use ebbtide_nova_service::WhatIf;
use ebbtide_region::RegionError;

/// A request for servers. Each cloud resolves the names in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UnresolvedRequest {
    /// The servers, and where they may go. A standalone region knows neither images nor hints.
    pub(crate) wanted: WhatIf,
    /// How many alternates to name for each server. Nova's option says it on an OpenStack.
    pub(crate) alternates: u32,
}

impl UnresolvedRequest {
    /// The request to a standalone region's engine, with the flavor and the group of these names.
    ///
    /// # Errors
    /// The group is another project's, or the request is invalid.
    pub(crate) fn resolved(
        self,
        flavor: Flavor,
        group: Option<ServerGroup>,
    ) -> Result<PlacementRequest, ServiceError> {
        let wanted = self.wanted;
        if let Some(group) = group.as_ref().filter(|g| g.project_id != wanted.project_id) {
            return Err(ServiceError::Field {
                field: "group",
                problem: format!("server group {:?} belongs to another project", group.name),
            });
        }
        let request = PlacementRequest {
            server_ids: wanted.servers,
            project_id: wanted.project_id,
            flavor,
            availability_zone: wanted.availability_zone,
            group_id: group.map(|g| g.id),
            ignore_hosts: wanted.ignore_hosts,
            force_hosts: wanted.force_hosts,
            alternates: self.alternates,
        };
        request.check().map_err(RegionError::from)?;
        Ok(request)
    }

    /// Refuses what only an OpenStack has.
    ///
    /// # Errors
    /// [`ServiceError::Field`].
    pub(crate) fn is_for_region(&self) -> Result<(), ServiceError> {
        let wanted = &self.wanted;
        let foreign = [
            ("image", wanted.image.is_some()),
            ("boot_from_volume", wanted.boots_from_volume),
            ("scheduler_hints", !wanted.hints.is_empty()),
        ];
        match foreign.into_iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((field, _)) => Err(ServiceError::Field {
                field,
                problem: "is for an OpenStack; this cloud is a standalone region".to_owned(),
            }),
        }
    }

    /// Checks the names and the servers of a request to an OpenStack.
    ///
    /// # Errors
    /// What is wrong, named.
    pub(crate) fn check(&self) -> Result<(), ServiceError> {
        let wanted = &self.wanted;
        let checked = request::check_servers(&wanted.project_id, &wanted.servers)
            .and_then(|()| match &wanted.availability_zone {
                Some(zone) => names::check_name("availability zone", zone),
                None => Ok(()),
            })
            .and_then(|()| {
                let mut hosts = wanted.force_hosts.iter().chain(&wanted.ignore_hosts);
                hosts.try_for_each(|host| names::check_host_name(host))
            });
        checked.map_err(|error| RegionError::from(error).into())
    }
}
