//! Inputs and outputs of the protocol.

use super::JournalRecord;
use crate::{DriverError, GuestNotice, NoticeOutcome, Occupancy, ServerView};
use ebbtide_model::message::{Message, Start};
use ebbtide_model::{EvacuationId, InterruptionBehaviour, Seconds, ServerId, Timestamp};

/// A delivery of the bus that is not settled yet. The shell maps it to the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryTag(pub u64);

/// One call of the driver; unique within the life of one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub u64);

/// One report on its way to the scheduler; unique within the life of one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReportId(pub u64);

/// Something that has happened.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentInput {
    /// A message has arrived.
    Command {
        token: DeliveryTag,
        /// The message, well-formed.
        message: Message,
    },
    /// A call of the driver has returned.
    ActionDone {
        action: ActionId,
        /// What it returned.
        result: Result<DriverResult, DriverError>,
    },
    /// The broker has confirmed a report.
    Published(ReportId),
    /// A report that can never be sent. This is a defect, and the report would block all later
    /// ones.
    Unpublishable { report: ReportId, reason: String },
    /// The current list of all servers of the hypervisor.
    Observed(Vec<ServerView>),
    /// Time has passed.
    Tick,
    /// The clock was set: it shows this many milliseconds more, or fewer, than it would otherwise.
    /// The shell sends this before any other input with the new time.
    ClockSet {
        /// Forward is positive.
        by_ms: i64,
    },
}

/// What a call of the driver returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriverResult {
    /// Of [`DriverCall::GiveNotice`].
    Noticed(NoticeOutcome),
    /// Of [`DriverCall::WithdrawNotice`].
    Withdrawn,
    /// Of [`DriverCall::Interrupt`].
    Interrupted,
    /// Of [`DriverCall::Fence`]: the operator's fence reports that the server does not run any
    /// more.
    Fenced,
    /// Of [`DriverCall::Look`].
    Seen {
        /// What it holds.
        occupancy: Occupancy,
        /// The part of its running time that is not to be billed, if the driver ended it and knows.
        unbilled: Option<Seconds>,
        /// The storage in which it is kept for any host that shares the storage, if it is.
        storage: Option<String>,
    },
    /// Of [`DriverCall::Start`]: the start time of the server.
    Started(Timestamp),
    /// Of [`DriverCall::Delete`].
    Deleted,
}

/// An action for the shell.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEffect {
    /// Write this to the journal. It must be durable before any later effect of the same list
    /// begins.
    Journal(JournalRecord),
    /// Call the driver, and answer with [`AgentInput::ActionDone`].
    Drive {
        /// Names the call.
        action: ActionId,
        /// Its server. There is never more than one call under way for a server.
        server_id: ServerId,
        /// The action.
        what: DriverCall,
    },
    /// Send this to the scheduler until the broker has confirmed it, in the order of these effects.
    Publish {
        /// Names the report.
        report: ReportId,
        /// The report.
        message: Message,
    },
    /// Acknowledge a delivery.
    Ack(DeliveryTag),
    /// Move a delivery to the dead-letter queue, for an operator to look at.
    DeadLetter(DeliveryTag, String),
    /// The servers of this host have changed: send a heartbeat now.
    ServersChanged,
}

#[derive(Debug, Clone, PartialEq)]
pub enum DriverCall {
    GiveNotice(GuestNotice),
    /// Withdraw the guest's notice.
    WithdrawNotice(EvacuationId),
    /// End or move the server.
    Interrupt(InterruptionBehaviour),
    /// End the server with the operator's fence, because the driver could not.
    Fence,
    /// Look what the server still holds.
    Look,
    Start(Start),
    /// Remove the server with everything that it has, and what is kept of it in this storage.
    Delete(Option<String>),
}

impl DriverResult {
    /// The result of a look, without billing data.
    #[must_use]
    pub fn from_occupancy(occupancy: Occupancy) -> Self {
        Self::Seen {
            occupancy,
            unbilled: None,
            storage: None,
        }
    }
}

impl DriverCall {
    /// The action in words that complete "could not …".
    #[must_use]
    pub fn words(&self) -> &'static str {
        match self {
            Self::GiveNotice(_) => "give the guest its notice",
            Self::WithdrawNotice(_) => "tell the guest that it may stay",
            Self::Interrupt(InterruptionBehaviour::Terminate) => "terminate the server",
            Self::Interrupt(InterruptionBehaviour::Stop) => "stop the server",
            Self::Interrupt(InterruptionBehaviour::Hibernate) => "hibernate the server",
            Self::Interrupt(InterruptionBehaviour::LiveMigrate) => {
                "move the server to another host"
            }
            Self::Fence => "fence the server",
            Self::Look => "tell what the server holds",
            Self::Start(_) => "start the server",
            Self::Delete(_) => "delete the server",
        }
    }
}
