//! The message bus between the scheduler and the compute agents.
//!
//! One contract ([`Bus`]), two transports: [`AmqpBus`] speaks AMQP 0-9-1 to RabbitMQ through lapin,
//! and [`InProcessBus`] carries messages inside one process for the embedded mode. Both pass the
//! same conformance suite (`tests/bus/suite.rs`). The contract is written down once, in
//! [`mod@bus`].
//!
//! Invariants of this crate:
//!
//! - No lapin type appears in its public interface.
//! - A message that was reported as published sits in a durable queue until a consumer has
//!   acknowledged it or has put it into the dead letter queue, which is bounded: its oldest letters
//!   go.
//! - No password appears in a log line, an error or a `Debug` output of this crate.

mod amqp;
mod backoff;
pub mod bus;
mod delivery;
mod error;
mod inprocess;
mod logins;
mod name;
mod rejects;
mod status;

pub use amqp::{AmqpBus, AmqpConfig, BrokerUrl, BusIdentity, BusLogins, QueueKind};
pub use backoff::BackoffPolicy;
pub use bus::{
    BodyLimit, Bus, MAX_BODY_BYTES, MAX_DEAD_LETTERS, MAX_DEAD_LETTERS_BYTES, OutgoingMessage,
};
pub use delivery::{
    DEAD_LETTER_BODY_BYTES, DeadLetterNote, Delivery, Subscription, SubscriptionState,
};
pub use ebbtide_amqp::TlsFiles;
pub use error::BusError;
pub use inprocess::{InProcessBroker, InProcessBus};
pub use logins::{Definitions, Login};
pub use name::{DEFAULT_PREFIX, QueueName, QueuePrefix};
pub use rejects::{RejectResult, Rejects};
pub use status::{BusStatus, QueueUse};
