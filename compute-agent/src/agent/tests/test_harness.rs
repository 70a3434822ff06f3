//! An agent on an in-process bus with a simulated hypervisor, on a virtual timer, so that tests do
//! not wait in real time.

use crate::agent::{Agent, AgentConfig};
use crate::clock::{Clock, TimerClock};
use crate::driver::simulated::{
    SimulatedDriver, SimulatedSettings, SimulatedState, SimulatedStore,
};
use crate::error::AgentError;
use crate::health::Health;
use crate::testing::SmallDisk;
use async_trait::async_trait;
use ebbtide_bus::{
    Bus, BusError, BusStatus, Delivery, InProcessBroker, InProcessBus, OutgoingMessage, QueueName,
    QueuePrefix, Subscription,
};
use ebbtide_model::message::{Body, Delete, Message, Notice, Spare, Start};
use ebbtide_model::{
    EvacuationId, InterruptionBehaviour, Inventory, MessageId, ResourceClass, Resources, Seconds,
    ServerId, Timestamp,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Generous: with a paused timer, an hour passes at once if nothing else happens.
const PATIENCE: Duration = Duration::from_secs(3_600);

pub(super) fn server(n: u128) -> ServerId {
    ServerId(Uuid::from_u128(0x5e00 + n))
}

pub(super) fn evacuation(n: u128) -> EvacuationId {
    EvacuationId(Uuid::from_u128(0xe000 + n))
}

/// A connection that can go away and come back, as AMQP does.
#[derive(Debug)]
pub(super) struct FlakyBus {
    pub(super) inner: InProcessBus,
    pub(super) down: Arc<AtomicBool>,
}

impl FlakyBus {
    fn check(&self) -> Result<(), BusError> {
        if self.down.load(Ordering::SeqCst) {
            return Err(BusError::Unavailable {
                operation: "reach the broker".to_owned(),
                waited_seconds: 0,
                brokers: "nowhere".to_owned(),
                last_problem: "it is down in this test".to_owned(),
            });
        }
        Ok(())
    }
}

#[async_trait]
impl Bus for FlakyBus {
    async fn declare(&self, queue: &QueueName) -> Result<(), BusError> {
        self.check()?;
        self.inner.declare(queue).await
    }

    async fn publish(&self, queue: &QueueName, message: &OutgoingMessage) -> Result<(), BusError> {
        self.check()?;
        self.inner.publish(queue, message).await
    }

    async fn consume(&self, queue: &QueueName, prefetch: u16) -> Result<Subscription, BusError> {
        self.check()?;
        self.inner.consume(queue, prefetch).await
    }

    async fn consume_alone(
        &self,
        queue: &QueueName,
        prefetch: u16,
    ) -> Result<Subscription, BusError> {
        self.check()?;
        self.inner.consume_alone(queue, prefetch).await
    }

    fn status(&self) -> watch::Receiver<BusStatus> {
        self.inner.status()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

/// A clock that follows the timer and that tests can set.
#[derive(Debug)]
pub(super) struct HostClock {
    timer: TimerClock,
    ahead_ms: AtomicI64,
}

impl HostClock {
    fn new() -> Self {
        Self {
            timer: TimerClock::starting_at(Timestamp::from_millis(1_000_000_000)),
            ahead_ms: AtomicI64::new(0),
        }
    }

    pub(super) fn set(&self, by_ms: i64) {
        self.ahead_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for HostClock {
    fn now(&self) -> Timestamp {
        let ahead = self.ahead_ms.load(Ordering::SeqCst);
        Timestamp::from_millis(self.timer.now().as_millis() + ahead)
    }

    fn steady(&self) -> Duration {
        self.timer.steady()
    }
}

/// One host and its scheduler.
pub(super) struct TestHarness {
    pub(super) broker: InProcessBroker,
    scheduler: InProcessBus,
    reports: Subscription,
    pub(super) dir: tempfile::TempDir,
    pub(super) clock: Arc<HostClock>,
    pub(super) disk: SmallDisk,
    pub(super) config: AgentConfig,
    pub(super) bus: Arc<FlakyBus>,
    pub(super) down: Arc<AtomicBool>,
    pub(super) health: Health,
    running: JoinSet<Result<(), AgentError>>,
    shutdown: CancellationToken,
    next_message: u128,
}

impl TestHarness {
    pub(super) async fn new() -> Self {
        let broker = InProcessBroker::new();
        let scheduler = broker.connect();
        let prefix = QueuePrefix::default();
        let reports = scheduler.consume(&prefix.scheduler(), 100).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let config = AgentConfig::new("host-a", dir.path());
        scheduler
            .declare(&prefix.agent("host-a").unwrap())
            .await
            .unwrap();
        let down = Arc::new(AtomicBool::new(false));
        let bus = Arc::new(FlakyBus {
            inner: broker.connect(),
            down: Arc::clone(&down),
        });
        Self {
            broker,
            scheduler,
            reports,
            clock: Arc::new(HostClock::new()),
            disk: SmallDisk::with_room_for(usize::MAX),
            dir,
            config,
            bus,
            down,
            health: Health::default(),
            running: JoinSet::new(),
            shutdown: CancellationToken::new(),
            next_message: 1,
        }
    }

    pub(super) async fn started() -> Self {
        let mut rig = Self::new().await;
        rig.start_agent();
        rig
    }

    pub(super) fn start_agent(&mut self) {
        let inventory: BTreeMap<_, _> = [
            (ResourceClass::vcpu(), Inventory::of(4)),
            (ResourceClass::disk_gb(), Inventory::of(100)),
        ]
        .into();
        let store = SimulatedStore::open(self.dir.path()).unwrap();
        let clock: Arc<dyn Clock> = Arc::clone(&self.clock) as _;
        let settings = SimulatedSettings::instant(inventory);
        let driver = SimulatedDriver::new(settings, store, Arc::clone(&clock));
        self.bus = Arc::new(FlakyBus {
            inner: self.broker.connect(),
            down: Arc::clone(&self.down),
        });
        self.shutdown = CancellationToken::new();
        let disk = self.disk.clone();
        let bus: Arc<dyn Bus> = Arc::clone(&self.bus) as _;
        let agent = Agent::new(self.config.clone(), bus, Arc::new(driver))
            .with_clock(clock)
            .with_health(self.health.clone())
            .with_storage(move |_| Box::new(disk.clone()));
        self.running.spawn(agent.serve(self.shutdown.clone()));
    }

    /// As SIGKILL: nothing is finished, and the connection is gone.
    pub(super) async fn kill_agent(&mut self) {
        self.running.shutdown().await;
        self.bus.close().await;
    }

    /// As SIGTERM.
    pub(super) async fn stop_agent(&mut self) -> Result<(), AgentError> {
        self.shutdown.cancel();
        self.ended().await
    }

    pub(super) async fn ended(&mut self) -> Result<(), AgentError> {
        let ended = tokio::time::timeout(PATIENCE, self.running.join_next());
        ended
            .await
            .expect("the agent ends")
            .expect("it runs")
            .expect("it does not panic")
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut SimulatedState)) {
        let store = SimulatedStore::open(self.dir.path()).unwrap();
        store.change(change).unwrap();
    }

    pub(super) fn has(&self, n: u128) -> bool {
        let store = SimulatedStore::open(self.dir.path()).unwrap();
        store
            .change(|state| state.servers.contains_key(&server(n)))
            .unwrap()
    }

    // ---- the scheduler's side ----

    pub(super) async fn send(&mut self, body: Body) -> Message {
        let message = Message {
            id: MessageId(Uuid::from_u128(0xc000 + self.next_message)),
            source: "/ebbtide/scheduler".to_owned(),
            time: self.clock.now(),
            body,
        };
        self.next_message += 1;
        self.send_again(&message).await;
        message
    }

    pub(super) async fn send_again(&self, message: &Message) {
        self.send_bytes(message.to_bytes().unwrap()).await;
    }

    pub(super) async fn send_bytes(&self, body: Vec<u8>) {
        let queue = QueuePrefix::default().agent("host-a").unwrap();
        let outgoing = OutgoingMessage::cloud_event(Uuid::from_u128(1), body);
        self.scheduler.publish(&queue, &outgoing).await.unwrap();
    }

    pub(super) async fn order_start(&mut self, n: u128) {
        let mut resources = Resources::new();
        resources.set(ResourceClass::vcpu(), 2).unwrap();
        self.send(Body::Start(Start {
            server_id: server(n),
            name: format!("server-{n}"),
            project_id: "p".to_owned(),
            flavor: "m".to_owned(),
            resources,
            preemptible: true,
            attempt: 0,
            resume: false,
            storage: None,
        }))
        .await;
    }

    /// Starts a server and waits until it runs.
    pub(super) async fn run(&mut self, n: u128) {
        self.order_start(n).await;
        let report = self.report().await;
        assert!(
            matches!(&report, Body::Started(s) if s.server_id == server(n)),
            "{report:?}"
        );
    }

    pub(super) async fn notice(&mut self, n: u128, behaviour: InterruptionBehaviour) -> Message {
        let begin_before = self.clock.now().plus(Seconds(60));
        self.send(Body::Notice(Notice {
            evacuation_id: evacuation(n),
            server_id: server(n),
            behaviour,
            grace_seconds: Seconds(30),
            attempt: 1,
            begin_before,
        }))
        .await
    }

    pub(super) async fn spare(&mut self, n: u128) {
        let (evacuation_id, server_id) = (evacuation(n), server(n));
        self.send(Body::Spare(Spare {
            evacuation_id,
            server_id,
        }))
        .await;
    }

    pub(super) async fn delete(&mut self, n: u128) {
        let server_id = server(n);
        self.send(Body::Delete(Delete {
            server_id,
            storage: None,
        }))
        .await;
    }

    /// The next report of any kind.
    pub(super) async fn next(&mut self) -> Body {
        let delivery = tokio::time::timeout(PATIENCE, self.reports.next());
        let delivery = delivery
            .await
            .expect("a report comes")
            .expect("the bus is open");
        let message = Message::from_bytes(&delivery.body).unwrap();
        assert_eq!(message.source, "/ebbtide/agent/host-a");
        assert_eq!(message.id.0, delivery.message_id);
        delivery.ack().await;
        message.body
    }

    /// The next report that is no heartbeat.
    pub(super) async fn report(&mut self) -> Body {
        loop {
            match self.next().await {
                Body::Heartbeat(_) => {}
                report => return report,
            }
        }
    }

    pub(super) async fn reports_within(&mut self, time: Duration) -> Vec<Body> {
        let mut reports = Vec::new();
        let end = tokio::time::sleep(time);
        tokio::pin!(end);
        loop {
            tokio::select! {
                report = self.report() => reports.push(report),
                () = &mut end => return reports,
            }
        }
    }

    pub(super) async fn dead_letter(&self) -> (Delivery, String) {
        let queue = QueuePrefix::default().dead_letter();
        let mut dead = self.scheduler.consume(&queue, 1).await.unwrap();
        let delivery = tokio::time::timeout(PATIENCE, dead.next()).await;
        let delivery = delivery
            .expect("a dead letter comes")
            .expect("the bus is open");
        let reason = delivery.dead_letter.clone().expect("it has a note").reason;
        (delivery, reason)
    }

    /// What the agent's queue still has, once its agent is gone.
    pub(super) async fn left_in_queue(&self) -> usize {
        let queue = QueuePrefix::default().agent("host-a").unwrap();
        let mut left = self.scheduler.consume(&queue, 100).await.unwrap();
        let mut held = Vec::new();
        while let Ok(Some(delivery)) =
            tokio::time::timeout(Duration::from_millis(1), left.next()).await
        {
            held.push(delivery);
        }
        held.len()
    }
}
