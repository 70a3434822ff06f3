//! What goes into a region and what comes out.

use crate::shadow::Compared;
use ebbtide_model::message::Message;
use ebbtide_model::record::Change;
use ebbtide_model::{
    Aggregate, BudgetScope, Decision, DisruptionBudget, Evacuation, EvacuationId, Flavor, Host,
    HostHealth, MessageId, Money, PlacementRequest, Server, ServerGroup, ServerId, Timestamp,
};
use uuid::Uuid;

/// Where new identifiers come from: random at the edge, counted in a simulation.
pub trait Ids {
    /// An identifier that has never been given before.
    fn next(&mut self) -> Uuid;
}

/// Something for the region to deal with.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Somebody wants something.
    Command(Command),
    /// An agent says something.
    Report(Message),
    /// The broker has confirmed a message of the outbox.
    Published {
        /// The message.
        id: MessageId,
        /// The evacuation that it was the notice of, if it was one.
        evacuation_id: Option<EvacuationId>,
    },
    /// Time has passed.
    Tick,
}

/// Asks for servers.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateServers {
    /// The name; for several, `-1`, `-2`… is appended.
    pub name: String,
    /// What is asked for. Its flavor and group are resolved already.
    pub request: PlacementRequest,
    /// True if the caller starts them.
    pub external: bool,
    /// The most that the owner pays for an hour; none: whatever the market takes.
    pub max_price: Option<Money>,
    /// The most servers that the project may have with these, those in error included; none: no
    /// limit.
    pub quota: Option<u32>,
}

/// Takes note of a server that is already placed.
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
    /// Where it is.
    pub host: String,
    /// Since when it runs; `None`: now.
    pub launched_at: Option<Timestamp>,
    /// True: the agent has to start it first.
    pub start_now: bool,
}

/// What somebody wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Room for servers, all or nothing.
    CreateServers(Box<CreateServers>),
    /// The decision for a request, without any change.
    WhatIf(Box<PlacementRequest>),
    /// A server gone.
    DeleteServer(ServerId),
    /// The rest of a victim's grace period given up by its owner.
    ReleaseServer(ServerId),
    /// A running server taken note of.
    AdoptServer(Box<AdoptServer>),
    /// No new servers on a host.
    DisableHost {
        /// Which.
        name: String,
        /// Why.
        reason: String,
    },
    /// New servers on a host again.
    EnableHost(String),
    /// A new flavor.
    CreateFlavor(Flavor),
    /// A flavor gone, by name or id.
    DeleteFlavor(String),
    /// An aggregate made or replaced, by name. Its id is used if it is new.
    PutAggregate(Aggregate),
    /// An aggregate gone, by name or id.
    DeleteAggregate(String),
    /// A new server group.
    CreateGroup(ServerGroup),
    /// A new server group of a project that may have so many.
    CreateGroupWithin(ServerGroup, u32),
    /// A server group gone, by name or id.
    DeleteGroup(String),
    /// A disruption budget made or replaced.
    PutBudget(DisruptionBudget),
    /// A disruption budget gone.
    DeleteBudget(BudgetScope),
}

/// The answer to an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Nothing to say.
    Done,
    /// Servers and the decision about them.
    Created {
        /// The servers, in the order of the request; empty for a select-destinations without a place.
        servers: Vec<Server>,
        /// Why they are where they are.
        decision: Box<Decision>,
    },
    /// The request came before; these are its servers as they are now.
    Repeated(Vec<Server>),
    /// A decision that changed nothing.
    WhatIf(Box<Decision>),
    /// A server as it is now.
    Server(Box<Server>),
    /// An evacuation as it is now.
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

/// Something that those who watch want to know.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A decision was made (what-if excluded).
    Decision(Box<Decision>),
    /// A server is in a new state.
    Server(Box<Server>),
    /// An evacuation is in a new state.
    Evacuation(Box<Evacuation>),
    /// A host has come, gone, been enabled or disabled.
    Host(Box<Host>, HostHealth),
    /// A report that was not followed, with the reason: for the log and the metrics.
    Ignored(String),
    /// Something that a person has to look at, for the log.
    Alarm {
        /// Its code in `docs/errors.md`.
        code: &'static str,
        /// What was seen, and what to do.
        words: String,
    },
}

/// What has to be done because of an input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effects {
    /// To be made durable in one transaction, in this order.
    pub changes: Vec<Change>,
    /// To be told once that is done.
    pub events: Vec<Event>,
    /// Decisions beside those that would have been made in shadow.
    pub compared: Vec<Compared>,
}

impl Effects {
    /// True if there is a message to be sent.
    #[must_use]
    pub fn has_messages(&self) -> bool {
        self.changes
            .iter()
            .any(|change| matches!(change, Change::Enqueue(_)))
    }
}
