//! Changes of the durable state: the region's state machine decides them, and the store writes them
//! atomically.
//!
//! Each change sets one record as a whole, so that applying a list twice is the same as applying it
//! once.

use crate::{
    Aggregate, AggregateId, BudgetScope, Decision, DisruptionBudget, Evacuation, Flavor, FlavorId,
    GroupId, Host, MessageId, PastLife, PricePoint, Seconds, Server, ServerGroup, ServerId,
    Timestamp,
};
use serde::{Deserialize, Serialize};

/// How long a deleted server is remembered, so that a repeated request does not create it again.
/// Clients repeat a request for less than this time.
pub const REMEMBER_GONE: Seconds = Seconds(600);

/// A message that has to be sent once the change that it belongs to is durable (transactional
/// outbox).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutboxMessage {
    /// The message's id; the same on every repetition.
    pub id: MessageId,
    /// Whose agent gets it.
    pub host: String,
    /// The message, as it goes over the bus.
    #[serde(with = "text")]
    pub body: Vec<u8>,
    /// The evacuation to report to the region when the broker has confirmed the message.
    pub evacuation_id: Option<crate::EvacuationId>,
    /// When it was written.
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", content = "of", rename_all = "snake_case")]
pub enum Change {
    /// Writes a host.
    PutHost(Box<Host>),
    /// Removes a host.
    DeleteHost(String),
    /// Writes an aggregate.
    PutAggregate(Aggregate),
    /// Removes an aggregate.
    DeleteAggregate(AggregateId),
    /// Writes a flavor.
    PutFlavor(Flavor),
    /// Removes a flavor; servers keep their copies.
    DeleteFlavor(FlavorId),
    /// Writes a server group.
    PutGroup(ServerGroup),
    /// Removes a server group.
    DeleteGroup(GroupId),
    /// Writes a disruption budget.
    PutBudget(DisruptionBudget),
    /// Removes a disruption budget.
    DeleteBudget(BudgetScope),
    /// Writes a server.
    PutServer(Box<Server>),
    /// Writes an evacuation.
    PutEvacuation(Box<Evacuation>),
    /// Writes a decision. Decisions are never changed.
    PutDecision(Box<Decision>),
    /// Writes a life that is over.
    PutLife(Box<PastLife>),
    /// Writes a price that counts from its moment on.
    PutPrice(PricePoint),
    /// Puts a message into the outbox.
    Enqueue(OutboxMessage),
    /// Takes a message out of the outbox: the broker has confirmed it.
    Dequeue(MessageId),
    /// Marks the database as restored from a backup.
    PutRestoreMark(RestoreMark),
    /// Removes the mark: the region was reconciled with its agents.
    DeleteRestoreMark,
}

/// The mark of a database that was restored from a backup and not reconciled yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreMark {
    /// When the mark was set.
    pub at: Timestamp,
    /// The last time at which any agent was heard, according to the backup: about the time of the
    /// backup. `None` if no agent ever was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_at: Option<Timestamp>,
}

/// The state that a region needs after a restart. Servers: those that can still change.
/// Evacuations: those that can still change, and those within the longest budget window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// All hosts, in the order of their registration.
    pub hosts: Vec<Host>,
    /// All aggregates.
    pub aggregates: Vec<Aggregate>,
    /// All flavors.
    pub flavors: Vec<Flavor>,
    /// All server groups.
    pub groups: Vec<ServerGroup>,
    /// All disruption budgets.
    pub budgets: Vec<DisruptionBudget>,
    /// Servers that are not gone (`ServerStatus::is_gone` is false).
    pub servers: Vec<Server>,
    /// Servers that were deleted within [`REMEMBER_GONE`] before the last of them, with the time,
    /// the earliest first: a repeated request must not create them again.
    pub gone: Vec<(ServerId, Timestamp)>,
    /// Evacuations that are not final, or were claimed after the time asked for.
    pub evacuations: Vec<Evacuation>,
    /// The last price of each flavor that has had one.
    #[serde(default)]
    pub prices: Vec<PricePoint>,
    /// Messages not yet confirmed, in the order in which they were written.
    pub outbox: Vec<OutboxMessage>,
    /// Set while the database waits to be reconciled after it was restored from a backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<RestoreMark>,
}

/// Bytes that are almost always JSON, as the text that they are.
mod text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Bytes {
        Text(String),
        Raw(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) => to.serialize_str(text),
            Err(_) => bytes.serialize(to),
        }
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<u8>, D::Error> {
        Ok(match Bytes::deserialize(from)? {
            Bytes::Text(text) => text.into_bytes(),
            Bytes::Raw(bytes) => bytes,
        })
    }
}
