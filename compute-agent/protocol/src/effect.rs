//! What goes into the protocol and what comes out of it.

use super::Record;
use crate::{DriverError, GuestNotice, NoticeOutcome, Occupancy, ServerView};
use ebbtide_model::message::{Message, Start};
use ebbtide_model::{EvacuationId, InterruptionBehaviour, Seconds, ServerId, Timestamp};

/// A delivery of the bus that waits to be settled. The shell knows which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// One call of the driver; unique within the life of one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub u64);

/// One report on its way to the scheduler; unique within the life of one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReportId(pub u64);

/// Something that has happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A message has arrived.
    Command {
        /// Its delivery.
        token: Token,
        /// The message, well-formed.
        message: Message,
    },
    /// A call of the driver has returned.
    ActionDone {
        /// Which one.
        action: ActionId,
        /// What it returned.
        result: Result<Done, DriverError>,
    },
    /// The broker has confirmed a report.
    Published(ReportId),
    /// A report that can never be sent (a defect; it would block everything behind it for ever).
    Unpublishable {
        /// Which one.
        report: ReportId,
        /// Why.
        reason: String,
    },
    /// All servers that the hypervisor has, just now.
    Observed(Vec<ServerView>),
    /// Time has passed.
    Tick,
    /// The clock was set: it shows this many milliseconds more than it would otherwise, or fewer. Said before anything else is said at the
    /// new time.
    ClockSet {
        /// Forward is positive.
        by_ms: i64,
    },
}

/// What a call of the driver returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// Of [`Action::GiveNotice`].
    Noticed(NoticeOutcome),
    /// Of [`Action::WithdrawNotice`].
    Withdrawn,
    /// Of [`Action::Interrupt`].
    Interrupted,
    /// Of [`Action::Fence`]: whoever fences says that the server does not run any more.
    Fenced,
    /// Of [`Action::Look`].
    Seen {
        /// What it holds.
        occupancy: Occupancy,
        /// The part of its running time that is not to be billed, if the driver ended it and knows.
        unbilled: Option<Seconds>,
        /// The storage in which it is kept for any host that shares it, if it is.
        storage: Option<String>,
    },
    /// Of [`Action::Start`]: since when the server runs.
    Started(Timestamp),
    /// Of [`Action::Delete`].
    Deleted,
}

/// Something that the shell has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Write this to the journal. It must be durable before any later effect of the same answer begins.
    Journal(Record),
    /// Call the driver, and answer with [`Input::ActionDone`].
    Drive {
        /// Names the call.
        action: ActionId,
        /// About whom. There is never more than one call under way for a server.
        server_id: ServerId,
        /// What.
        what: Action,
    },
    /// Send this to the scheduler until the broker has confirmed it, in the order of these effects.
    Publish {
        /// Names the report.
        report: ReportId,
        /// The report.
        message: Message,
    },
    /// Acknowledge a delivery.
    Ack(Token),
    /// Put a delivery aside for people to look at.
    DeadLetter(Token, String),
    /// The servers of this host have changed: send a heartbeat now.
    ServersChanged,
}

/// A call of the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Tell the guest that its end is near.
    GiveNotice(GuestNotice),
    /// Tell the guest that it may stay.
    WithdrawNotice(EvacuationId),
    /// End it.
    Interrupt(InterruptionBehaviour),
    /// End it without the driver, which could not: by the operator's own means.
    Fence,
    /// See what it still holds.
    Look,
    /// Start it.
    Start(Start),
    /// Remove it with all it has, and what is kept of it in this storage.
    Delete(Option<String>),
}

impl Done {
    /// A look at a server without anything to say about its bill.
    #[must_use]
    pub fn seen(occupancy: Occupancy) -> Self {
        Self::Seen {
            occupancy,
            unbilled: None,
            storage: None,
        }
    }
}

impl Action {
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
