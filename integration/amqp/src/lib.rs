//! One supervised AMQP connection, for every client of RabbitMQ in this workspace.
//!
//! The agents' bus and oslo.messaging both use it. What they differ in (names, errors, pauses, the
//! order of hosts) is theirs; what lapin and RabbitMQ force on both is here.

mod fault;
mod tls;

pub use fault::BrokerFault;
pub use tls::{TlsError, TlsFile, TlsFiles};
