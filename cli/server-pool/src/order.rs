//! Servers that run no node of a cluster: asked for by name under an id that the caller chooses, so
//! that a caller which is killed before the answer finds the server again.

use crate::ServerPool;
use crate::openstack::OpenStackPool;
use crate::region::RegionPool;
use ebbtide_burst::{OpenStackSettings, PoolServer};
use ebbtide_client::Region;
use ebbtide_model::Money;
use ebbtide_shell::errors::CliError;

/// A server that is asked for.
#[derive(Debug, Clone)]
pub struct ServerOrder {
    /// The caller's id for it, a UUID. In a region it becomes the server's own.
    pub id: String,
    pub name: String,
    /// Its flavor, name or id.
    pub flavor: String,
    /// The most that is paid for an hour; `None` for any price.
    pub max_price: Option<Money>,
}

/// A server that the cloud creates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedServer {
    pub id: String,
    /// What the cloud remarks.
    pub warning: Option<String>,
}

/// Why there is no server.
#[derive(Debug)]
pub enum OrderError {
    /// There is no place, or a quota is exhausted; the cloud's words. Later there may be.
    NoRoom(String),
    /// Each further order would fail in the same way.
    Refused(CliError),
    /// The cloud failed to answer. The server may have been created.
    Unknown(CliError),
}

/// A server that was looked for.
#[derive(Debug, Clone)]
pub struct FoundServer {
    /// The server. Its node is its name.
    pub server: PoolServer,
    /// Its state in the cloud's word, in lower case.
    pub state: String,
    /// Its host; empty if the cloud does not say.
    pub host: String,
    /// The address by which it is reached best; empty if the cloud does not say.
    pub address: String,
}

impl ServerPool {
    /// The servers of a project of a region, whatever runs there.
    #[must_use]
    pub fn of_region(region: Region, project: String, zone: Option<String>) -> Self {
        Self::Region(Box::new(RegionPool::of_project(region, project, zone)))
    }

    /// The servers of a project of an OpenStack, whatever runs there.
    ///
    /// # Errors
    /// As [`ServerPool::connect`].
    pub async fn of_openstack(settings: &OpenStackSettings) -> Result<Self, CliError> {
        let pool = OpenStackPool::connect(settings, Vec::new()).await?;
        Ok(Self::OpenStack(Box::new(pool)))
    }

    /// Creates a server. An OpenStack decides on a host afterwards: a server that gets none is
    /// shown as failed.
    ///
    /// # Errors
    /// [`OrderError`].
    pub async fn order(&self, order: &ServerOrder) -> Result<OrderedServer, OrderError> {
        match self {
            Self::Region(pool) => pool.order(order).await,
            Self::OpenStack(pool) => pool.order(order).await,
        }
    }

    /// A server by its id or the id of its order, also one that is gone; `None` if the cloud does
    /// not know it.
    ///
    /// # Errors
    /// Those of the cloud.
    pub async fn found(&self, id: &str) -> Result<Option<FoundServer>, CliError> {
        match self {
            Self::Region(pool) => pool.found(id).await,
            Self::OpenStack(pool) => pool.found(id).await,
        }
    }

    /// The servers with a name that are not gone.
    ///
    /// # Errors
    /// Those of the cloud.
    pub async fn named(&self, name: &str) -> Result<Vec<FoundServer>, CliError> {
        match self {
            Self::Region(pool) => pool.named(name).await,
            Self::OpenStack(pool) => pool.named(name).await,
        }
    }

    /// Says that a server which has notice does not need the rest of its time.
    ///
    /// # Errors
    /// Those of the cloud.
    pub async fn release(&self, id: &str) -> Result<(), CliError> {
        match self {
            Self::Region(pool) => pool.release(id).await,
            Self::OpenStack(pool) => pool.release(id).await,
        }
    }
}
