//! Private RabbitMQ, MariaDB, PostgreSQL and Keystone servers, private hypervisors with real
//! guests, and child processes in general, for tests and the devstack.
//!
//! ```no_run
//! # async fn example() -> Result<(), ebbtide_harness::Error> {
//! use ebbtide_harness::{Postgres, RabbitMq, Shared};
//!
//! // A server of one's own, for tests that kill it.
//! let mut broker = RabbitMq::start().await?;
//! broker.kill();
//! broker.restart().await?; // same data, same URL
//!
//! // A database of one's own on a server that is shared with other tests, for all the others.
//! let database = Shared::postgres().await?;
//! println!("{} {}", broker.url(), database.url());
//! # Ok(())
//! # }
//! ```
//!
//! What holds:
//! - **Any number side by side.** Every server has its own directory, its own free loopback ports,
//!   its own name, cookie and epmd; nothing is read from the system's configuration, from the
//!   user's home or from the environment.
//! - **Root or not.** As an ordinary user the servers run as that user. As root they run as the
//!   unprivileged system account (uid 65534 on Debian): PostgreSQL refuses root, and servers with
//!   well-known passwords should not run as root. One exception: if that account cannot reach the
//!   given directory (below /root, for instance), RabbitMQ runs as root, and the databases refuse.
//! - **Nothing is left behind.** Processes end with the value that owns them, and also when the
//!   process that owns the value is killed with SIGKILL: the kernel kills the children (`setpriv
//!   --pdeathsig`) and a small janitor process removes what is on disk. See [`Process`].
//! - **Started means it answers**: a login went through, not only an open port.
//!
//! The programs come from Debian's packages; `devstack/lib/packages.sh` installs them.

mod amqp;
mod cluster;
mod data_directory;
mod error;
mod eventually;
pub mod hypervisor;
mod network;
mod ports;
mod process;
mod programs;
mod server;
mod shared;
mod sql;
mod url;
mod user;

pub use cluster::{GaleraCluster, PostgresPair, RabbitCluster};
pub use data_directory::DirectoryLock;
pub use ebbtide_runtime::clock::Deadline;
pub use error::{Error, Result};
pub use eventually::eventually;
pub use hypervisor::{Hypervisor, TestGuest};
pub use network::{Direction, Network};
pub use ports::free_port;
pub use process::{Process, ProcessCommand, Signal};
pub use server::keystone::{Keystone, KeystoneServer};
pub use server::mariadb::{Maria, MariaDb};
pub use server::postgres::{Postgres, Postgresql};
pub use server::rabbitmq::{Rabbit, RabbitMq};
pub use server::{PrivateServer, ServerKind, ServerSettings};
pub use shared::{
    ENV_AMQP_URL, ENV_MYSQL_URL, ENV_POSTGRES_URL, SharedBroker, SharedDatabase, SharedServers,
};
