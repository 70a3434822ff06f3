//! Requests of tenants and operators, each with the type of its reply.

use crate::input::InputKind;
use crate::transition::Transition;
use crate::{Region, RegionError, RegionInput};
use ebbtide_engine::HostReclaim;
use ebbtide_model::{
    Aggregate, BudgetScope, Decision, DisruptionBudget, Evacuation, Flavor, Money,
    PlacementRequest, ReclaimTerms, Server, ServerGroup, ServerId, Timestamp,
};

/// Creates servers, all or nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateServers {
    /// The name; the region appends `-1`, `-2`… if there are several servers.
    pub name: String,
    /// What the tenant asks for, with flavor and group resolved.
    pub request: PlacementRequest,
    /// True if the caller starts the servers itself.
    pub external: bool,
    /// The owner's maximum price for an hour; `None`: whatever the market asks.
    pub max_price: Option<Money>,
    /// The most servers that the project may have including these; those in error count. `None`: no
    /// limit.
    pub quota: Option<u32>,
}

/// The servers of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum CreatedServers {
    /// The request was new.
    New {
        /// The servers, in the order of the request; empty for a select-destinations without a
        /// valid host.
        servers: Vec<Server>,
        /// The decision that placed them.
        decision: Box<Decision>,
    },
    /// The request was repeated; these are its servers in their present state.
    Repeated(Vec<Server>),
}

/// Adopts a server that is already placed and that the region is to manage.
#[derive(Debug, Clone, PartialEq)]
pub struct AdoptServer {
    pub id: ServerId,
    pub name: String,
    /// Its owner.
    pub project_id: String,
    pub flavor: Flavor,
    pub group: Option<ServerGroup>,
    /// The host on which it is.
    pub host: String,
    /// When it was launched; `None`: now.
    pub launched_at: Option<Timestamp>,
    /// True if the agent has to start it first.
    pub start_now: bool,
}

/// Deletes a server.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteServer(pub ServerId);

/// Ends a victim's grace period early, at its owner's request.
#[derive(Debug, Clone, PartialEq)]
pub struct ReleaseServer(pub ServerId);

/// Places no new servers on a host.
#[derive(Debug, Clone, PartialEq)]
pub struct DisableHost {
    pub name: String,
    pub reason: String,
}

/// Places new servers on a host again.
#[derive(Debug, Clone, PartialEq)]
pub struct EnableHost(pub String);

/// Removes a host for good.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoveHost(pub String);

/// Lets a removed host register again.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadmitHost(pub String);

/// Takes a host back for an outside owner.
#[derive(Debug, Clone, PartialEq)]
pub struct ReclaimHost {
    pub name: String,
    /// What the owner asks for.
    pub terms: ReclaimTerms,
}

/// Ends the reclaim of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct ReturnHost {
    pub name: String,
    /// True if the host stays disabled.
    pub keep_disabled: bool,
}

/// Creates a flavor.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateFlavor(pub Flavor);

/// Deletes a flavor, by name or id.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteFlavor(pub String);

/// Creates or replaces an aggregate, by name. Its id is used only if it is new.
#[derive(Debug, Clone, PartialEq)]
pub struct PutAggregate(pub Aggregate);

/// Deletes an aggregate, by name or id.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteAggregate(pub String);

/// Creates a server group.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateGroup {
    pub group: ServerGroup,
    /// The most groups that the project may have including this one. `None`: no limit.
    pub quota: Option<u32>,
}

/// Deletes a server group, by name or id.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteGroup(pub String);

/// Creates or replaces a disruption budget.
#[derive(Debug, Clone, PartialEq)]
pub struct PutBudget(pub DisruptionBudget);

/// Deletes a disruption budget.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteBudget(pub BudgetScope);

impl RegionInput for CreateServers {
    type Reply = CreatedServers;

    fn kind(&self) -> InputKind<'_> {
        InputKind::Placement(self)
    }

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.create_servers(transition, self)
    }
}

impl RegionInput for AdoptServer {
    type Reply = Server;

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.adopt_server(transition, self)
    }
}

impl RegionInput for DeleteServer {
    type Reply = Server;

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.delete_server(transition, self.0)
    }
}

impl RegionInput for ReleaseServer {
    type Reply = Evacuation;

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.release_server(transition, self.0)
    }
}

impl RegionInput for DisableHost {
    type Reply = ();

    fn works_while_held(&self) -> bool {
        true
    }

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.set_disabled(transition, &self.name, Some(self.reason))
    }
}

impl RegionInput for EnableHost {
    type Reply = ();

    fn works_while_held(&self) -> bool {
        true
    }

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.set_disabled(transition, &self.0, None)
    }
}

impl RegionInput for RemoveHost {
    type Reply = ();

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.remove_host(transition, &self.0)
    }
}

impl RegionInput for ReadmitHost {
    type Reply = ();

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.readmit_host(transition, &self.0)
    }
}

impl RegionInput for ReclaimHost {
    type Reply = HostReclaim;

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.reclaim_host(transition, &self.name, self.terms)
    }
}

impl RegionInput for ReturnHost {
    type Reply = ();

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.return_host(transition, &self.name, self.keep_disabled)
    }
}

impl RegionInput for CreateFlavor {
    type Reply = Flavor;

    fn works_while_held(&self) -> bool {
        true
    }

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.create_flavor(transition, self.0)
    }
}

impl RegionInput for DeleteFlavor {
    type Reply = ();

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.delete_flavor(transition, &self.0)
    }
}

impl RegionInput for PutAggregate {
    type Reply = Aggregate;

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.put_aggregate(transition, self.0)
    }
}

impl RegionInput for DeleteAggregate {
    type Reply = ();

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.delete_aggregate(transition, &self.0)
    }
}

impl RegionInput for CreateGroup {
    type Reply = ServerGroup;

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.create_group(transition, self.group, self.quota)
    }
}

impl RegionInput for DeleteGroup {
    type Reply = ();

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.delete_group(transition, &self.0)
    }
}

impl RegionInput for PutBudget {
    type Reply = DisruptionBudget;

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.put_budget(transition, self.0)
    }
}

impl RegionInput for DeleteBudget {
    type Reply = ();

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError> {
        region.delete_budget(transition, &self.0)
    }
}
