//! The messages between the scheduler and its agents: CloudEvents 1.0 in JSON (structured content
//! mode).
//!
//! Every message may arrive twice, late, or never. The identifiers inside (`evacuation_id`,
//! `server_id`) make each of them safe to repeat; [`Message::id`] lets a receiver drop plain
//! duplicates early.

use crate::names::{self, shorten};
use crate::{
    EvacuationId, InterruptionBehaviour, Inventory, MessageId, ModelError, ResourceClass,
    Resources, Seconds, ServerId, Timestamp, Trait,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// The media type of a message.
pub const CONTENT_TYPE: &str = "application/cloudevents+json";
/// Maximum size of a message. The largest real one is the heartbeat of a host with thousands of
/// servers.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Most servers in one heartbeat.
pub const MAX_HOSTED: usize = 100_000;

/// One message with its envelope.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Unique; a repeated send has the same.
    pub id: MessageId,
    /// The sender: `/ebbtide/scheduler` or `/ebbtide/agent/HOST`.
    pub source: String,
    /// When it was sent, by the sender's clock.
    pub time: Timestamp,
    /// The content.
    pub body: Body,
}

macro_rules! bodies {
    ($($(#[$doc:meta])* $variant:ident($payload:ident) = $type:literal,)+) => {
        /// The content of a message.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Body {
            $($(#[$doc])* $variant($payload),)+
        }

        impl Body {
            /// The CloudEvents `type`.
            #[must_use]
            pub fn event_type(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $type,)+
                }
            }

            fn data(&self) -> Result<Value, serde_json::Error> {
                match self {
                    $(Self::$variant(payload) => serde_json::to_value(payload),)+
                }
            }

            fn parse(event_type: &str, data: Value) -> Result<Self, ModelError> {
                match event_type {
                    $($type => serde_json::from_value(data)
                        .map(Self::$variant)
                        .map_err(|e| ModelError::Message(format!("data of {event_type}: {}", names::brief(e)))),)+
                    other => Err(ModelError::Message(format!(
                        "type {:?} is unknown; this version knows {}", shorten(other), Self::TYPES.join(", ")
                    ))),
                }
            }

            /// All types that this version knows.
            pub const TYPES: &'static [&'static str] = &[$($type),+];
        }
    };
}

bodies! {
    /// To the agent: this server has to leave.
    Notice(Notice) = "org.ebbtide.evacuation.notice.v1",
    /// To the agent: this server may stay; its notice is withdrawn.
    Spare(Spare) = "org.ebbtide.evacuation.spare.v1",
    /// To the agent: the tenant does not need the rest of the grace period.
    Release(Release) = "org.ebbtide.evacuation.release.v1",
    /// To the agent: start this server.
    Start(Start) = "org.ebbtide.server.start.v1",
    /// To the agent: delete this server for its owner.
    Delete(Delete) = "org.ebbtide.server.delete.v1",
    /// From the agent: it runs, and this is the state of its host.
    Heartbeat(Heartbeat) = "org.ebbtide.agent.heartbeat.v1",
    /// From the agent: the guest has its notice.
    Draining(Draining) = "org.ebbtide.evacuation.draining.v1",
    /// From the agent: the victim is gone and its capacity is free.
    Evacuated(Evacuated) = "org.ebbtide.evacuation.evacuated.v1",
    /// From the agent: the victim could not be evacuated, or the notice came too late to be
    /// followed.
    EvacuationFailed(EvacuationFailed) = "org.ebbtide.evacuation.failed.v1",
    /// From the agent: the victim was spared.
    Spared(Spared) = "org.ebbtide.evacuation.spared.v1",
    /// From the agent: the server runs.
    Started(Started) = "org.ebbtide.server.started.v1",
    /// From the agent: the server could not be started.
    StartFailed(StartFailed) = "org.ebbtide.server.start-failed.v1",
    /// From the agent: the server was deleted for its owner.
    Deleted(Deleted) = "org.ebbtide.server.deleted.v1",
}

/// See [`Body::Notice`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// The evacuation, the same on every repetition.
    pub evacuation_id: EvacuationId,
    /// The victim.
    pub server_id: ServerId,
    /// The interruption behaviour.
    pub behaviour: InterruptionBehaviour,
    /// Time between the guest's notice and its end.
    pub grace_seconds: Seconds,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// An agent that has not begun by then must not begin: the scheduler has stopped counting on
    /// it.
    pub begin_before: Timestamp,
}

/// See [`Body::Spare`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spare {
    /// The withdrawn evacuation.
    pub evacuation_id: EvacuationId,
    /// The server that may stay.
    pub server_id: ServerId,
}

/// See [`Body::Release`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Release {
    /// The evacuation.
    pub evacuation_id: EvacuationId,
    /// The server that releases the rest of its time.
    pub server_id: ServerId,
}

/// See [`Body::Start`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// The server.
    pub server_id: ServerId,
    /// Its name.
    pub name: String,
    /// Its owner.
    pub project_id: String,
    /// The name of its flavor.
    pub flavor: String,
    /// What it takes.
    pub resources: Resources,
    /// True if it may be evacuated later.
    pub preemptible: bool,
    /// The number of this start of the server, from 1; the answer repeats it. 0 from schedulers
    /// that do not count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// True if the server was stopped or hibernated here and is to resume: without its kept state
    /// there is nothing to start.
    #[serde(default, skip_serializing_if = "is_false")]
    pub resume: bool,
    /// The storage in which it was kept, if several hosts share it: then any of them may resume it,
    /// once it holds its token. A host without this storage has nothing of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_false(flag: &bool) -> bool {
    !flag
}

/// See [`Body::Delete`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delete {
    /// The server.
    pub server_id: ServerId,
    /// The storage in which the server itself was kept; its kept state is deleted, too. `None` for
    /// a server that was never kept in one. `None` also for what an attempt may have left on a
    /// host: that deletion must not touch the kept state of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
}

/// The state of a server on a host, as the hypervisor sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostedState {
    /// It runs and takes its resources.
    Running,
    /// Shut down; takes disk only.
    Stopped,
    /// On disk; takes disk only.
    Hibernated,
}

/// One server on a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostedServer {
    /// The server.
    pub server_id: ServerId,
    /// What it is doing.
    pub state: HostedState,
    /// What else the host knows of it, for a region whose database was restored from a backup that
    /// is older than the server. `None` from agents that do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Box<HostedFacts>>,
}

/// What a host knows of a server, from the order that started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostedFacts {
    /// Its name.
    pub name: String,
    /// Its owner.
    pub project_id: String,
    /// The name of its flavor.
    pub flavor: String,
    /// What it takes while it runs.
    pub resources: Resources,
    /// True if it may be evacuated.
    pub preemptible: bool,
    /// Start time of its current or last run, by the agent's clock.
    pub since: Timestamp,
    /// The evacuation whose notice its guest has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evacuation_id: Option<EvacuationId>,
}

/// See [`Body::Heartbeat`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The host.
    pub host: String,
    /// This run of the agent.
    pub session: Uuid,
    /// Increases within the session; an older heartbeat that arrives later is ignored.
    pub sequence: u64,
    /// The host's inventory.
    pub inventory: BTreeMap<ResourceClass, Inventory>,
    /// The host's traits.
    #[serde(default)]
    pub traits: BTreeSet<Trait>,
    /// Every server that the hypervisor has.
    pub servers: Vec<HostedServer>,
    /// The name of the storage that this host shares with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
}

/// See [`Body::Draining`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Draining {
    /// The evacuation.
    pub evacuation_id: EvacuationId,
    /// The reporting host.
    pub host: String,
    /// The victim.
    pub server_id: ServerId,
    /// When the guest had its notice.
    pub notified_at: Timestamp,
    /// End of the grace period.
    pub deadline_at: Timestamp,
}

/// How a victim ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvacuationEnd {
    /// Gone with its disk.
    Terminated,
    /// Shut down.
    Stopped,
    /// On disk.
    Hibernated,
    /// Ended by the operator's fence, because the hypervisor could not; gone with its disk.
    Fenced,
    /// Running on another host.
    Migrated,
    /// The hypervisor did not have it any more when it was to be evacuated.
    AlreadyGone,
}

/// See [`Body::Evacuated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evacuated {
    /// The evacuation.
    pub evacuation_id: EvacuationId,
    /// The reporting host.
    pub host: String,
    /// The victim.
    pub server_id: ServerId,
    /// How it ended.
    pub how: EvacuationEnd,
    /// When.
    pub at: Timestamp,
    /// The last, partial hour of its running time, for which its owner is not billed. `None` if the
    /// agent does not know the start time, or if the server keeps running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbilled_seconds: Option<Seconds>,
    /// The storage in which it is kept, if other hosts can resume it from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
}

/// See [`Body::EvacuationFailed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvacuationFailed {
    /// The evacuation.
    pub evacuation_id: EvacuationId,
    /// The reporting host.
    pub host: String,
    /// The victim.
    pub server_id: ServerId,
    /// Why.
    pub reason: String,
    /// True if the victim still runs.
    pub still_running: bool,
    /// The attempt of the notice, if the failure is that the notice arrived too late, or so shortly
    /// before that the guest could not be told: a newer notice may be on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_attempt: Option<u32>,
}

/// See [`Body::Spared`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spared {
    /// The evacuation.
    pub evacuation_id: EvacuationId,
    /// The reporting host.
    pub host: String,
    /// The server that lives on.
    pub server_id: ServerId,
}

/// See [`Body::Started`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The server.
    pub server_id: ServerId,
    /// The reporting host.
    pub host: String,
    /// When it began to run.
    pub at: Timestamp,
    /// The [`Start::attempt`] that this answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
}

/// See [`Body::StartFailed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartFailed {
    /// The server.
    pub server_id: ServerId,
    /// The reporting host.
    pub host: String,
    /// Why.
    pub reason: String,
    /// The [`Start::attempt`] that this answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// True if it is unknown whether the server runs all the same.
    #[serde(default, skip_serializing_if = "is_false")]
    pub may_run: bool,
}

/// See [`Body::Deleted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deleted {
    /// The server.
    pub server_id: ServerId,
    /// The reporting host.
    pub host: String,
}

impl Body {
    /// The server that the message is about, for the envelope's `subject`.
    #[must_use]
    pub fn server_id(&self) -> Option<ServerId> {
        match self {
            Self::Notice(m) => Some(m.server_id),
            Self::Spare(m) => Some(m.server_id),
            Self::Release(m) => Some(m.server_id),
            Self::Start(m) => Some(m.server_id),
            Self::Delete(m) => Some(m.server_id),
            Self::Heartbeat(_) => None,
            Self::Draining(m) => Some(m.server_id),
            Self::Evacuated(m) => Some(m.server_id),
            Self::EvacuationFailed(m) => Some(m.server_id),
            Self::Spared(m) => Some(m.server_id),
            Self::Started(m) => Some(m.server_id),
            Self::StartFailed(m) => Some(m.server_id),
            Self::Deleted(m) => Some(m.server_id),
        }
    }

    /// The host that sent a report; `None` for messages of the scheduler.
    #[must_use]
    pub fn reporting_host(&self) -> Option<&str> {
        match self {
            Self::Heartbeat(m) => Some(&m.host),
            Self::Draining(m) => Some(&m.host),
            Self::Evacuated(m) => Some(&m.host),
            Self::EvacuationFailed(m) => Some(&m.host),
            Self::Spared(m) => Some(&m.host),
            Self::Started(m) => Some(&m.host),
            Self::StartFailed(m) => Some(&m.host),
            Self::Deleted(m) => Some(&m.host),
            Self::Notice(_)
            | Self::Spare(_)
            | Self::Release(_)
            | Self::Start(_)
            | Self::Delete(_) => None,
        }
    }

    /// Checks what types alone cannot: names, sizes, ranges.
    fn check(&self) -> Result<(), ModelError> {
        if let Some(host) = self.reporting_host() {
            names::check_host_name(host)?;
        }
        match self {
            Self::Heartbeat(m) => {
                if m.servers.len() > MAX_HOSTED {
                    return Err(ModelError::Message(format!(
                        "heartbeat of {} names {} servers, at most {MAX_HOSTED} are looked at",
                        m.host,
                        m.servers.len()
                    )));
                }
                m.inventory
                    .iter()
                    .try_for_each(|(class, inventory)| inventory.check(class))
            }
            Self::Notice(m) if m.grace_seconds > crate::flavor::MAX_GRACE => {
                Err(ModelError::Range {
                    what: "grace_seconds".to_owned(),
                    value: m.grace_seconds.0.to_string(),
                    allowed: format!("0 to {}", crate::flavor::MAX_GRACE.0),
                })
            }
            _ => Ok(()),
        }
    }
}

impl Message {
    /// The message as bytes for the bus.
    ///
    /// # Errors
    /// [`ModelError::Message`] if it cannot be written as JSON (a NaN in an inventory).
    pub fn to_bytes(&self) -> Result<Vec<u8>, ModelError> {
        let wrong = |e: serde_json::Error| ModelError::Message(format!("cannot be written: {e}"));
        let mut event = Map::new();
        event.insert("specversion".to_owned(), "1.0".into());
        event.insert("id".to_owned(), self.id.to_string().into());
        event.insert("source".to_owned(), self.source.clone().into());
        event.insert("type".to_owned(), self.body.event_type().into());
        if let Some(server) = self.body.server_id() {
            event.insert("subject".to_owned(), server.to_string().into());
        }
        event.insert("time".to_owned(), self.time.to_string().into());
        event.insert("datacontenttype".to_owned(), "application/json".into());
        event.insert("data".to_owned(), self.body.data().map_err(wrong)?);
        serde_json::to_vec(&event).map_err(wrong)
    }

    /// Reads and checks a message. Unknown attributes are ignored (CloudEvents allows extensions),
    /// unknown types are not.
    ///
    /// # Errors
    /// What is wrong and where, in words fit for the dead-letter queue.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ModelError> {
        if bytes.len() > MAX_BYTES {
            return Err(ModelError::Message(format!(
                "{} bytes, at most {MAX_BYTES} are read",
                bytes.len()
            )));
        }
        let mut event: Map<String, Value> = serde_json::from_slice(bytes)
            .map_err(|e| ModelError::Message(format!("not a JSON object: {}", names::brief(e))))?;
        let text = |name: &str| match event.get(name) {
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(_) => Err(ModelError::Message(format!(
                "attribute {name} is not a string"
            ))),
            None => Err(ModelError::Message(format!("attribute {name} is missing"))),
        };
        let version = text("specversion")?;
        if version != "1.0" {
            return Err(ModelError::Message(format!(
                "specversion {:?}, expected \"1.0\"",
                shorten(version)
            )));
        }
        let id = text("id")?
            .parse()
            .map_err(|_| ModelError::Message("attribute id is not a UUID".to_owned()))?;
        let source = text("source")?.to_owned();
        let time = text("time")?.parse()?;
        let event_type = text("type")?.to_owned();
        let data = event
            .remove("data")
            .ok_or_else(|| ModelError::Message("attribute data is missing".to_owned()))?;
        let body = Body::parse(&event_type, data)?;
        body.check()?;
        Ok(Self {
            id,
            source,
            time,
            body,
        })
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
