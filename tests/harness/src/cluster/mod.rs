//! Clusters on one machine: three RabbitMQ nodes, three MariaDB nodes with Galera, and PostgreSQL
//! with a standby. Their nodes are private servers, each with a directory and ports of its own.

mod galera;
mod postgres;
mod rabbitmq;

pub use galera::GaleraCluster;
pub(crate) use galera::{GaleraNode, arguments as galera_arguments};
pub use postgres::PostgresPair;
pub use rabbitmq::RabbitCluster;

use std::time::Duration;

/// How long a node may take until it is a member again. Seconds on an idle machine.
const JOINED: Duration = Duration::from_secs(180);

/// What a server is in its cluster.
#[derive(Debug, Clone)]
pub(crate) enum Member {
    Rabbit {
        /// The port of the epmd of all nodes, which belongs to the cluster: a node that is killed
        /// takes its own along.
        epmd: u16,
        cookie: String,
    },
    Galera(GaleraNode),
    /// A standby of the PostgreSQL on this port.
    Standby {
        primary: u16,
    },
}
