//! Hosts that operators remove for good, with Nova's databases and the ledger on SQLite and a
//! broker in the process, and on MariaDB with RabbitMQ.

use super::full_host::{FullHost, victim};
use super::{LONG, reader};
use crate::evacuate::PreemptionDriver;
use crate::preemption::PreemptionPolicy;
use crate::reader::CloudReader;
use crate::removals::{HostRemovals, RemovalError};
use ebbtide_bus::{AmqpBus, AmqpConfig, Bus, BusError, OutgoingMessage, QueueName};
use ebbtide_harness::SharedServers;
use ebbtide_model::message::{Body, Heartbeat, Message};
use ebbtide_model::{MessageId, ReclaimDeadline, ReclaimTerms};
use ebbtide_nova::model::Options;
use ebbtide_nova_databases::{CloudDatabases as Nova, NOVA_34};
use ebbtide_runtime::{clock, ids};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

const HOST: &str = "compute1";

/// A full host whose scheduler and agent use this bus, and what removes hosts.
struct OwnedHost {
    full: FullHost,
    bus: Arc<dyn Bus>,
    queue: QueueName,
    removals: HostRemovals,
    reader: CloudReader,
}

impl OwnedHost {
    async fn new(mut full: FullHost, bus: Arc<dyn Bus>) -> Self {
        let facts = full.bench.selector.facts.clone();
        let tasks = full.bench.tasks.clone();
        let policy = PreemptionPolicy::default();
        let scheduler = full.scheduler("s", facts.clone(), Arc::clone(&bus), policy, tasks);
        let preempting = PreemptionDriver::ready(scheduler.await);
        full.bench.selector.preempting = preempting.clone();
        let without_api = Err("there is no API of Nova here".to_owned());
        let removals = HostRemovals::new(&facts, &preempting, without_api);
        let reader = reader(&full.bench.selector).with_removals(removals.clone());
        let queue = full.prefix().agent(HOST).unwrap();
        Self {
            full,
            bus,
            queue,
            removals,
            reader,
        }
    }

    /// Why the host cannot be removed now.
    async fn refusal(&self) -> String {
        let error = self.reader.remove_host(HOST).await.unwrap_err();
        assert!(matches!(error, RemovalError::InUse { .. }), "{error}");
        error.to_string()
    }

    /// The scheduler deletes the queue; the refusals of the agent are forgotten.
    async fn is_removed(&self) {
        let left = self.reader.remove_host(HOST).await.unwrap();
        assert_eq!(left.queue, self.queue.to_string());
        assert_eq!(left.problem, None);
    }

    async fn sql(&self, statement: &str) {
        self.full.bench.nova.cell.sql(statement).await;
        self.full.bench.selector.facts.database.freshen().await;
    }

    /// Nova's rows of that time, for the follower of changes.
    fn soon(&self) -> &'static str {
        match self.full.bench.nova.cell.url.starts_with("mysql") {
            true => "UTC_TIMESTAMP() + INTERVAL 1 MINUTE",
            false => "datetime('now', '+1 minute')",
        }
    }

    async fn delete_servers(&self) {
        let soon = self.soon();
        let set = format!("deleted = id, deleted_at = {soon}, updated_at = {soon}");
        self.sql(&format!("UPDATE instances SET {set}")).await;
        let facts = &self.full.bench.selector.facts;
        for n in 1..=4 {
            facts.write(|cloud| cloud.remove_instance(victim(n)));
        }
    }

    async fn delete_compute_service(&self) {
        let soon = self.soon();
        let set = format!("deleted = id, deleted_at = {soon}, updated_at = {soon}");
        self.sql(&format!("UPDATE compute_nodes SET {set}")).await;
        self.sql(&format!("UPDATE services SET {set} WHERE host = '{HOST}'"))
            .await;
    }

    /// A heartbeat of the agent.
    async fn beat(&self) {
        let id = ids::new();
        let message = Message {
            id: MessageId(id),
            source: format!("/ebbtide/agent/{HOST}"),
            time: clock::now(),
            body: Body::Heartbeat(Heartbeat {
                host: HOST.to_owned(),
                session: ids::new(),
                sequence: 1,
                inventory: BTreeMap::new(),
                traits: BTreeSet::new(),
                servers: Vec::new(),
                storage: None,
            }),
        };
        let outgoing = OutgoingMessage::cloud_event(id, message.to_bytes().unwrap());
        let queue = self.full.prefix().scheduler();
        self.bus.publish(&queue, &outgoing).await.unwrap();
    }

    /// Whether the broker has the agent's queue.
    async fn has_queue(&self, other: &dyn Bus) -> bool {
        let probe = OutgoingMessage::cloud_event(ids::new(), b"{}".to_vec());
        match other.publish(&self.queue, &probe).await {
            Ok(()) => true,
            Err(BusError::Unroutable { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Waits until the agent's reader is gone, for the broker too.
async fn until_unread(bus: &dyn Bus, queue: &QueueName) {
    let unread = async {
        while bus.is_read(queue).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONG, unread).await.expect("no reader");
}

/// `agent` and `other` are connections of their own: the bus declares queues again that it has
/// declared before.
async fn a_removed_host_leaves_nothing(
    mut full: FullHost,
    bus: Arc<dyn Bus>,
    agent: Arc<dyn Bus>,
    other: Arc<dyn Bus>,
) {
    drop(full.take_agent());
    let owned = OwnedHost::new(full, bus).await;
    let reads = agent.consume(&owned.queue, 1).await.unwrap();
    let ledger = owned.full.ledger.clone();
    let terms = ReclaimTerms {
        owner: "maintenance".to_owned(),
        reason: "it is given away".to_owned(),
        deadline: ReclaimDeadline::None,
        max_cost: None,
    };
    let reclaim = ebbtide_model::Reclaim::new(terms, None, clock::now());
    let document = crate::reclaims::ReclaimRecord::new(reclaim).document();
    assert!(ledger.put_reclaim(HOST, None, &document).await.unwrap());

    let why = owned.refusal().await;
    assert!(
        why.contains("servers on it: 4; `openstack server list"),
        "{why}"
    );
    owned.delete_servers().await;
    let why = owned.refusal().await;
    assert!(
        why.contains("first: openstack compute service delete"),
        "{why}"
    );
    owned.reader.readmit_host(HOST).await.expect("Nova has it");
    owned.delete_compute_service().await;
    let why = owned.refusal().await;
    assert!(why.contains("stop the agent, and try again"), "{why}");
    assert!(ledger.reclaim(HOST).await.unwrap().is_some());

    // The scheduler's own look waits for the agent, too, and then does it unasked.
    let mut looked_at = BTreeMap::new();
    owned.removals.look(&mut looked_at).await.unwrap();
    assert!(looked_at[HOST].is_some(), "{looked_at:?}");
    drop(reads);
    until_unread(&*other, &owned.queue).await;
    assert!(owned.has_queue(&*other).await);
    owned.removals.look(&mut looked_at).await.unwrap();
    assert_eq!(looked_at[HOST], None);
    assert!(!owned.has_queue(&*other).await);
    assert!(ledger.reclaim(HOST).await.unwrap().is_none());
    owned.is_removed().await;

    // The agent comes back: it is refused, and its queue goes again when it has gone.
    let reads = agent.consume(&owned.queue, 1).await.unwrap();
    owned.beat().await;
    let evacuations = owned.full.bench.selector.preempting.get().unwrap();
    let refused = async {
        while !evacuations.has_refused_agent(HOST) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let refused = tokio::time::timeout(LONG, refused).await;
    refused.expect("the agent is refused");
    owned.removals.look(&mut looked_at).await.unwrap();
    assert!(looked_at[HOST].is_some(), "{looked_at:?}");
    drop(reads);
    until_unread(&*other, &owned.queue).await;
    owned.removals.look(&mut looked_at).await.unwrap();
    assert!(!owned.has_queue(&*other).await);
    assert!(!evacuations.has_refused_agent(HOST));

    let error = owned.reader.readmit_host(HOST).await.unwrap_err();
    assert!(matches!(error, RemovalError::Unregistered(_)), "{error}");
    let error = owned.reader.remove_host("compute7").await.unwrap_err();
    assert!(matches!(error, RemovalError::NoHost(_)), "{error}");
}

#[tokio::test]
async fn a_host_without_a_compute_service_leaves_nothing() {
    let full = FullHost::new().await;
    let connect = || -> Arc<dyn Bus> { Arc::new(full.broker.connect()) };
    let (bus, agent, other) = (connect(), connect(), connect());
    a_removed_host_leaves_nothing(full, bus, agent, other).await;
}

#[tokio::test]
async fn a_host_without_a_compute_service_leaves_nothing_on_mariadb_and_rabbitmq() {
    let ledger = SharedServers::mariadb().await.expect("a MariaDB server");
    let broker = SharedServers::rabbitmq().await.expect("a RabbitMQ");
    let nova = Nova::mariadb(NOVA_34).await;
    let bench = super::Bench::over(nova, 1, Options::default()).await;
    let full = FullHost::over(bench, ledger.url().to_owned()).await;
    let full = full.with_prefix(broker.prefix());
    let mut buses: Vec<Arc<dyn Bus>> = Vec::new();
    for name in ["scheduler", "agent", "operator"] {
        let config = AmqpConfig::new(vec![broker.url().parse().unwrap()], name);
        buses.push(Arc::new(AmqpBus::connect(config, LONG).await.unwrap()));
    }
    let [bus, agent, other] = buses.try_into().unwrap();
    a_removed_host_leaves_nothing(full, bus, agent, other).await;
}

#[tokio::test]
async fn a_host_with_an_evacuation_under_way_stays() {
    let full = FullHost::new().await;
    let bus: Arc<dyn Bus> = Arc::new(full.broker.connect());
    let plan = full.plan(super::newcomer(1), &[1, 2], 4).await;
    let owned = OwnedHost::new(full, bus).await;
    owned.full.written_by_another(&plan).await;
    let why = owned.refusal().await;
    assert!(
        why.contains("evacuations under way: 2; wait until"),
        "{why}"
    );
}
