//! One supervised AMQP connection, for every client of RabbitMQ in this workspace.
//!
//! The agents' bus and oslo.messaging both use it. What they differ in (errors, pauses, the order
//! of hosts, queues and exchanges) is theirs; what lapin and RabbitMQ force on both is here.
//!
//! Layers, lowest first: [`Dialer`] makes one connection, a [`BrokerSession`]; [`Link`] keeps one
//! alive for ever; [`Publisher`] publishes on whatever session the link has now, and
//! [`while_alive`] bounds any other step on one.

mod client;
mod confirm;
mod dial;
mod fault;
mod link;
mod publisher;
mod session;
mod socket;
mod step;
mod strategy;
mod supervise;
mod tls;

pub use client::ClientError;
pub use confirm::{ConfirmChannel, PublishOutcome};
pub use dial::{Broker, DialFailure, DialProblem, Dialer};
pub use fault::BrokerFault;
pub use link::{Link, LinkEvent, LinkPolicy, LinkState};
pub use publisher::{Publication, Publisher};
pub use session::{BrokerSession, ConnectionPurpose};
pub use step::{ConnectionLost, StepError, while_alive};
pub use strategy::{Backoff, HostChoice};
pub use tls::{TlsError, TlsFile, TlsFiles};
