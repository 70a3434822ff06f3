//! One supervised AMQP connection, for every client of RabbitMQ in this workspace.
//!
//! The agents' bus and oslo.messaging both use it. What they differ in (errors, pauses, the order
//! of hosts, queues and exchanges) is theirs; what lapin and RabbitMQ force on both is here.
//!
//! Layers, lowest first: [`Dialer`] makes one connection, a [`BrokerSession`]; [`Link`] keeps one
//! alive for ever; [`while_alive`] bounds a step on it.

mod client;
mod dial;
mod fault;
mod link;
mod session;
mod socket;
mod step;
mod strategy;
mod supervise;
mod tls;

pub use client::ClientError;
pub use dial::{Broker, DialFailure, DialProblem, Dialer};
pub use fault::BrokerFault;
pub use link::{Link, LinkEvent, LinkPolicy, LinkState};
pub use session::{BrokerSession, ConnectionPurpose};
pub use step::{ConnectionLost, while_alive};
pub use strategy::{Backoff, HostChoice};
pub use tls::{TlsError, TlsFile, TlsFiles};
