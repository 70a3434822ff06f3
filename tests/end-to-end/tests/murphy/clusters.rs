//! Clusters of brokers and databases of which one node after the other dies and comes back, under
//! load.
//!
//! Real clusters, two real schedulers, real agents with simulated hypervisors. As on a bad day,
//! what is judged in the end is read from the hypervisors' files. `devstack/clusters` runs the long
//! forms; the short one is part of every run of the tests.

use crate::client::{PATIENCE, RetryingClient};
use crate::day::{DRIVER, flavors};
use crate::faults::Schedulers;
use crate::load::Load;
use crate::verification::{self, Verdict};
use crate::watch::Watch;
use ebbtide_harness::{Deadline, GaleraCluster, PostgresPair, RabbitCluster};
use ebbtide_integration_tests::{Database, Region, RegionOptions};
use ebbtide_runtime::clock::Stopwatch;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const HOSTS: u32 = 6;
const PREEMPTORS: u64 = 6;
const FILLERS: u64 = 2;
/// Evacuations that show that the region works.
const PROGRESS: u64 = 15;

/// Longer than a cluster needs to find out that a node is gone.
const LIMITS: &str = "notice_timeout_seconds = 10\nnotice_attempts = 5\nact_timeout_seconds = 40\n\
     start_timeout_seconds = 40\nhost_down_seconds = 40\nfailed_victim_rest_seconds = 1";

enum Cluster {
    RabbitMq(RabbitCluster),
    Galera(GaleraCluster),
    PostgreSql(PostgresPair),
}

impl Cluster {
    fn name(&self) -> &'static str {
        match self {
            Self::RabbitMq(_) => "RabbitMQ of three, quorum queues",
            Self::Galera(_) => "Galera of three",
            Self::PostgreSql(_) => "PostgreSQL and a standby",
        }
    }

    fn options(&self) -> RegionOptions {
        let (database, database_url, broker_url, bus) = match self {
            Self::RabbitMq(cluster) => (
                Database::Postgres,
                None,
                Some(cluster.urls().join(",")),
                "queue_type = \"quorum\"",
            ),
            Self::Galera(cluster) => (Database::MariaDb, Some(cluster.url()), None, ""),
            Self::PostgreSql(pair) => (Database::Postgres, Some(pair.url()), None, ""),
        };
        RegionOptions {
            database,
            database_url,
            database_options: "lease_seconds = 2\ntimeout_seconds = 10".to_owned(),
            broker_url,
            bus: bus.to_owned(),
            region: LIMITS.to_owned(),
            ..RegionOptions::default()
        }
    }

    /// Ends a node without warning; what a cluster manager does then is done at once.
    async fn kill(&mut self, node: usize) {
        match self {
            Self::RabbitMq(cluster) => cluster.kill(node),
            Self::Galera(cluster) => cluster.kill(node),
            Self::PostgreSql(pair) => {
                pair.kill_primary();
                pair.promote().await.unwrap();
            }
        }
    }

    /// Each queue has a copy on each node.
    async fn verify(&self) {
        let Self::RabbitMq(cluster) = self else {
            return;
        };
        let list = [
            "list_queues",
            "--no-table-headers",
            "name",
            "type",
            "members",
        ];
        let queues = cluster.control(0, &list).await.unwrap();
        let agents = queues.lines().filter(|line| line.contains(".agent.host-"));
        let mut copies = agents.map(|line| line.matches('@').count());
        assert!(copies.clone().count() == HOSTS as usize, "{queues}");
        assert!(copies.all(|nodes| nodes == 3), "{queues}");
    }

    async fn rejoin(&mut self, node: usize) {
        match self {
            Self::RabbitMq(cluster) => cluster.rejoin(node).await.unwrap(),
            Self::Galera(cluster) => cluster.rejoin(node).await.unwrap(),
            Self::PostgreSql(pair) => pair.rejoin().await.unwrap(),
        }
    }
}

/// What the callers noticed in one part of the time.
fn say(cluster: &Cluster, what: &str, took: &Stopwatch, load: &Load) {
    println!(
        "clusters: {}: {what}: {:.1} s, {}",
        cluster.name(),
        took.elapsed().as_secs_f64(),
        load.noticed(),
    );
}

/// Waits until the region has evacuated so many more, and starts schedulers that have ended, as a
/// supervisor does.
async fn progress(client: &mut RetryingClient, schedulers: &mut Schedulers, what: &str) {
    let wanted = verification::evacuated(client).await + PROGRESS;
    let deadline = Deadline::after(PATIENCE);
    loop {
        schedulers.start().await;
        let now = verification::evacuated(client).await;
        if now >= wanted {
            return;
        }
        assert!(
            !deadline.has_passed(),
            "{what}: {now} of {wanted} evacuations after {PATIENCE:?}"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Lets each of the first `nodes` nodes die and come back.
async fn happen(mut cluster: Cluster, nodes: usize) {
    let hosts: Vec<String> = (0..HOSTS).map(|n| format!("host-{n}")).collect();
    let options = RegionOptions {
        hosts: hosts.clone(),
        drivers: hosts
            .iter()
            .map(|host| (host.clone(), DRIVER.to_owned()))
            .collect(),
        ..cluster.options()
    };
    let mut region = Region::prepare(options).await.unwrap();
    let names = ["one", "two"];
    let ready: Vec<PathBuf> = names
        .iter()
        .map(|name| region.dir().join(format!("ready-{name}.json")))
        .collect();
    let mut schedulers = Schedulers {
        dir: region.dir().to_owned(),
        config: region.scheduler_config().unwrap(),
        running: names.iter().map(|n| ((*n).to_owned(), None)).collect(),
        programs: BTreeMap::new(),
    };
    schedulers.start().await;
    for host in &hosts {
        region.start_agent(host).unwrap();
    }
    let mut client = RetryingClient::of(&ready, 0);
    flavors(&mut client).await;
    verification::until_hosts_are_up(&mut client, hosts.len()).await;
    cluster.verify().await;
    let watch = Watch::start(&region, &hosts);
    let load = Load::new(1);
    let trouble = async {
        let took = Stopwatch::start();
        progress(&mut client, &mut schedulers, "before anything").await;
        say(&cluster, "all nodes", &took, &load);
        for node in 0..nodes {
            let took = Stopwatch::start();
            cluster.kill(node).await;
            progress(&mut client, &mut schedulers, "after a node died").await;
            let what = format!("node {} dies", node + 1);
            say(&cluster, &what, &took, &load);
            let took = Stopwatch::start();
            cluster.rejoin(node).await;
            progress(&mut client, &mut schedulers, "after a node came back").await;
            let what = format!("node {} comes back", node + 1);
            say(&cluster, &what, &took, &load);
        }
        load.end();
    };
    tokio::join!(load.run(&ready, PREEMPTORS, FILLERS), trouble);
    schedulers.start().await;
    verification::until_all_is_at_rest(&mut client, hosts.len()).await;
    let seen = watch.end();
    let verdict = Verdict::settled(&mut client, &region, &hosts, &load.ledger, &seen).await;
    println!(
        "clusters: {}: {} evacuations: {verdict}",
        cluster.name(),
        verdict.evacuations
    );
    verdict.insist();
}

/// The shortest of them: no cluster is quicker to start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_the_postgresql_primary_dies_and_its_standby_is_promoted() {
    let pair = PostgresPair::start().await.unwrap();
    happen(Cluster::PostgreSql(pair), 1).await;
}

/// Each server has been the primary.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes; devstack/clusters asks for it"]
async fn nothing_is_lost_when_postgresql_fails_over_and_back() {
    let pair = PostgresPair::start().await.unwrap();
    happen(Cluster::PostgreSql(pair), 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes; devstack/clusters asks for it"]
async fn nothing_is_lost_when_each_rabbitmq_node_dies() {
    let cluster = RabbitCluster::start().await.unwrap();
    happen(Cluster::RabbitMq(cluster), 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes; devstack/clusters asks for it"]
async fn nothing_is_lost_when_each_galera_node_dies() {
    let cluster = GaleraCluster::start().await.unwrap();
    happen(Cluster::Galera(cluster), 3).await;
}
