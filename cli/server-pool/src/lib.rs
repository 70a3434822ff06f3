//! The servers of a Slurm cluster, over one port with two adapters: a standalone region, and an
//! OpenStack with or without the service `preemption`.
//!
//! A server belongs to the pool if it runs one of the cluster's nodes. Its name is the node's name.
//! `ebbtide run` uses the same port for servers that run no node ([`ServerOrder`]).

mod notices;
mod openstack;
mod order;
mod prices;
mod region;

pub use crate::order::{FoundServer, OrderError, OrderedServer, ServerOrder};

use crate::openstack::OpenStackPool;
use crate::region::RegionPool;
use ebbtide_burst::{BurstError, CloudChoice, NodeGroup, PoolServer};
use ebbtide_shell::errors::CliError;
use std::collections::BTreeMap;

/// The pool of a cluster.
#[derive(Debug)]
pub enum ServerPool {
    /// Servers of a standalone region.
    Region(Box<RegionPool>),
    /// Servers of an OpenStack.
    OpenStack(Box<OpenStackPool>),
}

impl ServerPool {
    /// Connects to the cloud. The groups say which nodes the pool has, and of which flavor their
    /// servers are.
    ///
    /// # Errors
    /// The cloud does not answer, or the credentials cannot be used.
    pub async fn connect(cloud: CloudChoice<'_>, groups: Vec<NodeGroup>) -> Result<Self, CliError> {
        Ok(match cloud {
            CloudChoice::Region(own) => {
                Self::Region(Box::new(RegionPool::connect(own, groups).await?))
            }
            CloudChoice::OpenStack(own) => {
                Self::OpenStack(Box::new(OpenStackPool::connect(own, groups).await?))
            }
        })
    }

    /// Whether what servers are created from exists, as far as that can be known before.
    ///
    /// # Errors
    /// [`BurstError::Setting`](ebbtide_burst::BurstError::Setting) with the key of what does not;
    /// those of the cloud.
    pub async fn verify(&self) -> Result<(), CliError> {
        match self {
            // A region says so when a server is created.
            Self::Region(_) => Ok(()),
            Self::OpenStack(pool) => pool.verify().await,
        }
    }

    /// The servers of the cluster's nodes that are not gone.
    ///
    /// # Errors
    /// Those of the cloud, also if it shows a part of the servers only.
    pub async fn servers(&self) -> Result<Vec<PoolServer>, CliError> {
        match self {
            Self::Region(pool) => pool.servers().await,
            Self::OpenStack(pool) => pool.servers().await,
        }
    }

    /// What became of a server that is not listed any more; `None` if the cloud does not know it.
    ///
    /// # Errors
    /// Those of the cloud.
    pub async fn server(&self, id: &str) -> Result<Option<PoolServer>, CliError> {
        match self {
            Self::Region(pool) => pool.server(id).await,
            Self::OpenStack(pool) => pool.server(id).await,
        }
    }

    /// Creates the server of a node and returns its id. An OpenStack decides on a host afterwards:
    /// a server that gets none is shown as failed.
    ///
    /// # Errors
    /// [`BurstError::NoInstance`](ebbtide_burst::BurstError::NoInstance) if there is no place or a
    /// quota is exhausted; those of the cloud.
    pub async fn create(&self, node: &str) -> Result<String, CliError> {
        match self {
            Self::Region(pool) => pool.create(node).await,
            Self::OpenStack(pool) => pool.create(node).await,
        }
    }

    /// Gives a server back: one that has notice does not need the rest of its time, any other is
    /// deleted.
    ///
    /// # Errors
    /// Those of the cloud.
    pub async fn give_back(&self, one: &PoolServer) -> Result<(), CliError> {
        match self {
            Self::Region(pool) => pool.give_back(one).await,
            Self::OpenStack(pool) => pool.give_back(one).await,
        }
    }

    /// Deletes a server. One that is not there any more is no error.
    ///
    /// # Errors
    /// Those of the cloud.
    pub async fn delete(&self, id: &str) -> Result<(), CliError> {
        match self {
            Self::Region(pool) => pool.delete(id).await,
            Self::OpenStack(pool) => pool.delete(id).await,
        }
    }

    /// What an hour of each preemptible flavor costs now, millionths, by the flavor's name; empty
    /// if the cloud has no prices.
    ///
    /// # Errors
    /// Those of the cloud.
    pub async fn prices(&self) -> Result<BTreeMap<String, u64>, CliError> {
        match self {
            Self::Region(pool) => pool.prices().await,
            Self::OpenStack(pool) => pool.prices().await,
        }
    }

    /// What an hour of a preemptible flavor cost at a time, milliseconds since 1970; millionths.
    /// `None` if the cloud has no price of that time.
    ///
    /// # Errors
    /// Those of the cloud.
    pub async fn price_at(&self, flavor: &str, at: i64) -> Result<Option<u64>, CliError> {
        match self {
            Self::Region(pool) => pool.price_at(flavor, at).await,
            Self::OpenStack(pool) => pool.price_at(flavor, at).await,
        }
    }
}

fn group_of<'a>(groups: &'a [NodeGroup], node: &str) -> Result<&'a NodeGroup, BurstError> {
    let own = groups
        .iter()
        .find(|group| group.nodes.iter().any(|one| one == node));
    own.ok_or_else(|| BurstError::NotOurs {
        node: node.to_owned(),
        nodes: names(groups).join(","),
    })
}

/// The nodes of all groups.
fn names(groups: &[NodeGroup]) -> Vec<String> {
    let all = groups.iter().flat_map(|group| group.nodes.iter().cloned());
    all.collect()
}
