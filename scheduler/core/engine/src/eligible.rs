//! Which hosts may have instances of a flavor at all, however full they are.

use crate::checked_request::CheckedRequest;
use crate::filters::Pipeline;
use crate::state::DecisionState;
use crate::{Budgets, EngineError, HostTable};
use ebbtide_model::{Flavor, PlacementRequest, ServerId, Timestamp};
use uuid::Uuid;

impl HostTable {
    /// Names of the hosts that all filters but those of room and groups let pass for an instance of
    /// this flavor, in the order of their registration: they are up and not disabled, and have its
    /// traits and what it asks of aggregates.
    ///
    /// # Errors
    /// [`EngineError`] for extra specs that cannot be read.
    pub fn hosts_that_take(&self, flavor: &Flavor) -> Result<Vec<&str>, EngineError> {
        let request = PlacementRequest {
            server_ids: vec![ServerId(Uuid::nil())],
            project_id: String::new(),
            flavor: flavor.clone(),
            availability_zone: None,
            group_id: None,
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            alternates: 0,
        };
        let properties = flavor.properties()?;
        let ask = CheckedRequest::new(self, &request, &properties, None)?;
        // The filters that run once a request look neither at time nor at budgets.
        let state = DecisionState::new(self, &ask, &Budgets::default(), Timestamp::default());
        let hosts = Pipeline::new(&state, 0).static_hosts(self);
        Ok(hosts.into_iter().map(|host| self.host_name(host)).collect())
    }
}
