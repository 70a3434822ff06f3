//! Three MariaDB nodes with Galera.

use super::{JOINED, Member};
use crate::error::{Error, Result};
use crate::eventually::Pace;
use crate::server::mariadb::{MariaDb, STORAGE};
use crate::server::{PrivateServer, ServerPlace, ServerSettings};
use crate::{ports, programs};

const LIBRARY: &str = "/usr/lib/galera/libgalera_smm.so";
/// Ports of a node beside that for clients: of the group, for missed writes, for all data.
const PORTS: usize = 3;

/// One node.
#[derive(Debug, Clone)]
pub(crate) struct GaleraNode {
    number: usize,
    /// Of the groups of all nodes.
    groups: Vec<u16>,
    /// For missed writes, and for all data.
    incremental: u16,
    whole: u16,
}

/// Three MariaDB nodes that all take writes.
#[derive(Debug)]
pub struct GaleraCluster {
    nodes: Vec<MariaDb>,
}

impl GaleraCluster {
    /// Starts the first node as a new cluster, then the others, which take over its data.
    ///
    /// # Errors
    ///
    /// As [`PrivateServer::start_with`].
    pub async fn start() -> Result<Self> {
        let ports = ports::free_ports(3 * PORTS)?;
        let groups: Vec<u16> = ports.iter().copied().take(3).collect();
        let mut nodes = Vec::new();
        for number in 0..3 {
            let node = GaleraNode {
                number,
                groups: groups.clone(),
                incremental: ports[3 + number],
                whole: ports[6 + number],
            };
            let settings = ServerSettings::of_member(Member::Galera(node));
            let node = PrivateServer::start_with(settings).await?;
            synchronised(&node, number + 1).await?;
            nodes.push(node);
        }
        Ok(Self { nodes })
    }

    /// The URL of all nodes, the first one first.
    #[must_use]
    pub fn url(&self) -> String {
        super::postgres::joined("mysql", self.nodes.iter().map(PrivateServer::port))
    }

    /// Ends a node (0, 1 or 2) without warning. Its data stays.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].kill();
    }

    /// Starts a node again that was killed, and waits until it has what it missed.
    ///
    /// # Errors
    ///
    /// As [`PrivateServer::restart`].
    pub async fn rejoin(&mut self, node: usize) -> Result<()> {
        self.nodes[node].restart().await?;
        synchronised(&self.nodes[node], self.nodes.len()).await
    }
}

/// Waits until a node has all data and sees so many nodes, itself included.
async fn synchronised(node: &MariaDb, nodes: usize) -> Result<()> {
    const STATE: &str = "SELECT GROUP_CONCAT(variable_value ORDER BY variable_name) \
                         FROM information_schema.global_status \
                         WHERE variable_name IN ('wsrep_cluster_size', 'wsrep_local_state_comment')";
    let wanted = format!("{nodes},Synced");
    let mut pace = Pace::until(JOINED);
    loop {
        let seen = match node.value(STATE).await {
            Ok(state) if state == wanted => return Ok(()),
            Ok(state) => state,
            Err(error) => error.to_string(),
        };
        if !pace.rest().await {
            return Err(Error::BadAnswer {
                name: "Galera".to_owned(),
                reason: format!("a node is {seen:?} after {JOINED:?}, not {wanted:?}"),
            });
        }
    }
}

/// What a node is started with: `init` only where there is no cluster yet, because the server
/// refuses statements before it has joined.
pub(crate) async fn arguments(
    place: &ServerPlace,
    node: &GaleraNode,
    init: String,
) -> Result<Vec<String>> {
    let own = node.groups[node.number];
    let all: Vec<String> = node
        .groups
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    let mut arguments = vec![
        "--wsrep-on=ON".to_owned(),
        format!("--wsrep-provider={LIBRARY}"),
        "--wsrep-cluster-name=ebbtide".to_owned(),
        format!("--wsrep-cluster-address=gcomm://{}", all.join(",")),
        format!("--wsrep-node-name=node{}", node.number),
        "--wsrep-node-address=127.0.0.1".to_owned(),
        format!(
            "--wsrep-provider-options=base_host=127.0.0.1;base_port={own};\
             gmcast.listen_addr=tcp://127.0.0.1:{own};ist.recv_addr=127.0.0.1:{port};\
             ist.recv_bind=127.0.0.1:{port};gcache.size=32M",
            port = node.incremental
        ),
        "--wsrep-sst-method=rsync".to_owned(),
        format!("--wsrep-sst-receive-address=127.0.0.1:{}", node.whole),
        "--binlog-format=ROW".to_owned(),
        "--innodb-autoinc-lock-mode=2".to_owned(),
    ];
    if !place.join("data/grastate.dat").exists() {
        if node.number == 0 {
            arguments.extend(["--wsrep-new-cluster".to_owned(), init]);
        }
    } else if let Some(position) = recovered(place).await? {
        arguments.push(format!("--wsrep-start-position={position}"));
    }
    Ok(arguments)
}

/// The last write that a node has which was killed, as Debian's `galera_recovery` finds it: without
/// it the node would take over all data, not only what it missed.
async fn recovered(place: &ServerPlace) -> Result<Option<String>> {
    let recover = place
        .command("mariadbd", programs::find("mariadbd", "mariadb")?)
        .args(["--no-defaults", "--basedir=/usr", "--wsrep-recover"])
        .arg(format!("--datadir={}", place.join("data").display()))
        .arg(format!("--tmpdir={}", place.path().display()))
        .args(["--skip-log-bin", "--bind-address=127.0.0.1"])
        .args(["--socket=mariadb.sock", "--pid-file=mariadb.pid"])
        .args(STORAGE);
    place.run("mariadbd --wsrep-recover", recover).await?;
    let log = place.join("setup.log");
    let said = std::fs::read_to_string(&log).map_err(Error::io("read", &log))?;
    let position = said
        .lines()
        .rev()
        .find_map(|line| line.split_once("Recovered position: "))
        .map(|(_, position)| position.trim().to_owned());
    Ok(position.filter(|position| !position.starts_with("00000000-")))
}
