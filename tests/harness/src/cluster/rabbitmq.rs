//! Three RabbitMQ nodes.

use super::Member;
use crate::error::Result;
use crate::ports;
use crate::process::Process;
use crate::server::rabbitmq::RabbitMq;
use crate::server::{PrivateServer, ServerSettings};
use ebbtide_runtime::ids;

/// Three RabbitMQ nodes in a cluster.
#[derive(Debug)]
pub struct RabbitCluster {
    nodes: Vec<RabbitMq>,
    /// After the nodes: they are known by it.
    _epmd: Process,
}

impl RabbitCluster {
    /// Starts them, and joins the second and the third to the first.
    ///
    /// # Errors
    ///
    /// As [`PrivateServer::start_with`].
    pub async fn start() -> Result<Self> {
        let epmd = ports::free_port()?;
        let member = Member::Rabbit {
            epmd,
            cookie: ids::short(),
        };
        let settings = ServerSettings::of_member(member);
        // epmd lives in the directory of the first node, which stays when the node is killed.
        let mut first = RabbitMq::prepared(settings.clone()).await?;
        let running = first.start_epmd(epmd).await?;
        first.come_up().await?;
        let seed = first.node_name()?;
        let (second, third) = tokio::try_join!(
            PrivateServer::start_with(settings.clone()),
            PrivateServer::start_with(settings)
        )?;
        for node in [&second, &third] {
            node.control(&["stop_app"]).await?;
            node.control(&["join_cluster", &seed]).await?;
            node.control(&["start_app"]).await?;
        }
        Ok(Self {
            nodes: vec![first, second, third],
            _epmd: running,
        })
    }

    /// The URL of each node.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(PrivateServer::url).collect()
    }

    /// Ends a node (0, 1 or 2) without warning. Its data stays.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].kill();
    }

    /// Starts a node again that was killed.
    ///
    /// # Errors
    ///
    /// As [`PrivateServer::restart`].
    pub async fn rejoin(&mut self, node: usize) -> Result<()> {
        self.nodes[node].restart().await
    }

    /// Runs `rabbitmqctl` on a node.
    ///
    /// # Errors
    ///
    /// As [`RabbitMq::control`].
    pub async fn control(&self, node: usize, arguments: &[&str]) -> Result<String> {
        self.nodes[node].control(arguments).await
    }
}
