//! Inputs and outputs of a region.

use crate::shadow::DecisionComparison;
use ebbtide_model::message::Message;
use ebbtide_model::record::Change;
use ebbtide_model::{
    Aggregate, BudgetScope, Decision, DisruptionBudget, Evacuation, EvacuationId, Flavor, Host,
    HostHealth, MessageId, Money, PlacementRequest, Server, ServerGroup, ServerId, Timestamp,
};
use uuid::Uuid;

/// Source of new identifiers: random in the service, counted in a simulation.
pub trait Ids {
    /// An identifier that was never returned before.
    fn next(&mut self) -> Uuid;
}

/// An input to the region.
#[derive(Debug, Clone, PartialEq)]
pub enum RegionInput {
    /// A request from a tenant or an operator.
    Command(RegionCommand),
    /// A report from an agent.
    Report(Message),
    /// The broker has confirmed a message of the outbox.
    Published {
        /// The message.
        id: MessageId,
        /// The evacuation, if the message is its notice.
        evacuation_id: Option<EvacuationId>,
    },
    /// Time has passed.
    Tick,
}

/// A request for servers.
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

/// A server that is already placed and that the region is to manage.
#[derive(Debug, Clone, PartialEq)]
pub struct AdoptServer {
    /// Its identifier.
    pub id: ServerId,
    /// Its name.
    pub name: String,
    /// Its owner.
    pub project_id: String,
    /// Its flavor.
    pub flavor: Flavor,
    /// Its group.
    pub group: Option<ServerGroup>,
    /// The host on which it is.
    pub host: String,
    /// When it was launched; `None`: now.
    pub launched_at: Option<Timestamp>,
    /// True if the agent has to start it first.
    pub start_now: bool,
}

/// A request from a tenant or an operator.
#[derive(Debug, Clone, PartialEq)]
pub enum RegionCommand {
    /// Create servers, all or nothing.
    CreateServers(Box<CreateServers>),
    /// Delete a server.
    DeleteServer(ServerId),
    /// End a victim's grace period early, at its owner's request.
    ReleaseServer(ServerId),
    /// Adopt a running server.
    AdoptServer(Box<AdoptServer>),
    /// Place no new servers on a host.
    DisableHost {
        /// The host.
        name: String,
        /// The reason.
        reason: String,
    },
    /// Place new servers on a host again.
    EnableHost(String),
    /// Create a flavor.
    CreateFlavor(Flavor),
    /// Delete a flavor, by name or id.
    DeleteFlavor(String),
    /// Create or replace an aggregate, by name. Its id is used only if it is new.
    PutAggregate(Aggregate),
    /// Delete an aggregate, by name or id.
    DeleteAggregate(String),
    /// Create a server group.
    CreateGroup(ServerGroup),
    /// Create a server group for a project that may have at most this number of groups.
    CreateGroupWithin(ServerGroup, u32),
    /// Delete a server group, by name or id.
    DeleteGroup(String),
    /// Create or replace a disruption budget.
    PutBudget(DisruptionBudget),
    /// Delete a disruption budget.
    DeleteBudget(BudgetScope),
}

/// The answer to an input.
#[derive(Debug, Clone, PartialEq)]
pub enum RegionReply {
    /// Success without a value.
    Done,
    /// The created servers and the decision about them.
    Created {
        /// The servers, in the order of the request; empty for a select-destinations without a
        /// valid host.
        servers: Vec<Server>,
        /// The decision that placed them.
        decision: Box<Decision>,
    },
    /// The request was repeated; these are its servers in their present state.
    Repeated(Vec<Server>),
    /// A server in its present state.
    Server(Box<Server>),
    /// An evacuation in its present state.
    Evacuation(Box<Evacuation>),
    /// A flavor.
    Flavor(Flavor),
    /// An aggregate.
    Aggregate(Aggregate),
    /// A server group.
    Group(ServerGroup),
    /// A disruption budget.
    Budget(DisruptionBudget),
}

/// An event for watchers.
#[derive(Debug, Clone, PartialEq)]
pub enum RegionEvent {
    /// A decision was made (what-if excluded).
    Decision(Box<Decision>),
    /// A server has a new state.
    Server(Box<Server>),
    /// An evacuation has a new state.
    Evacuation(Box<Evacuation>),
    /// A host appeared, went down, was enabled or was disabled.
    Host(Box<Host>, HostHealth),
    /// The region ignored a report, for this reason: for the log and the metrics.
    Ignored(String),
    /// A problem that an operator must look at, for the log.
    Alarm {
        /// Its code in `docs/reference/errors.md`.
        code: &'static str,
        /// What was observed, and what to do.
        words: String,
    },
}

/// What the caller has to do after an input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effects {
    /// Changes to make durable in one transaction, in this order.
    pub changes: Vec<Change>,
    /// Events to publish once the changes are durable.
    pub events: Vec<RegionEvent>,
    /// Decisions, each with the one that the shadow engine would have made.
    pub compared: Vec<DecisionComparison>,
}

impl Effects {
    /// True if the changes contain a message for the outbox.
    #[must_use]
    pub fn has_messages(&self) -> bool {
        self.changes
            .iter()
            .any(|change| matches!(change, Change::Enqueue(_)))
    }
}
