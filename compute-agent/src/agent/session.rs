//! One run of the protocol: from reading the journal until shutdown, or until the journal cannot be
//! written.
//!
//! Every event becomes an [`AgentInput`]. The session executes every [`AgentEffect`], the journal
//! first.

use super::drive::{ActionResult, drive};
use super::fail_points;
use super::publisher::{PublishResult, Publisher, SenderIdentity, Worker, in_short};
use super::steps::ClockWatch;
use super::traces::Traces;
use super::{Agent, AgentConfig};
use crate::clock::Clock;
use crate::driver::{Driver, DriverError, ServerView};
use crate::error::AgentError;
use crate::health::HostHealth;
use crate::journal::{Journal, Storage};
use crate::protocol::{AgentCore, AgentEffect, AgentInput, DeliveryTag, JournalRecord};
use ebbtide_bus::{Bus, BusError, BusStatus, Delivery, QueueName, Subscription, SubscriptionState};
use ebbtide_model::message::Message;
use ebbtide_runtime::clock;
use ebbtide_runtime::task::{self, TaskSet};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// Maximum time between two reads of the clock while a deadline is pending: if the clock is set
/// forward, the agent notices deadlines at most this late.
const MAX_SLEEP: Duration = Duration::from_secs(5);
/// How long the hypervisor may take to list its servers.
const LIST_LIMIT: Duration = Duration::from_secs(10);
/// Pause before the agent subscribes to its queue again.
const CONSUME_PAUSE: Duration = Duration::from_secs(1);

/// Why a session ended.
#[derive(Debug)]
pub(super) enum SessionEnd {
    Shutdown,
    JournalBroken(AgentError),
}

type Views = Result<Vec<ServerView>, DriverError>;

pub(super) struct AgentSession {
    config: AgentConfig,
    bus: Arc<dyn Bus>,
    driver: Arc<dyn Driver>,
    clock: Arc<dyn Clock>,
    steps: ClockWatch,
    /// State of the connections to the broker.
    status: watch::Receiver<BusStatus>,
    queue: QueueName,
    journal: Arc<Mutex<Journal>>,
    core: AgentCore,
    /// The first effects of the restored protocol.
    first: Vec<AgentEffect>,
    deliveries: HashMap<DeliveryTag, Delivery>,
    traces: Traces,
    next_token: u64,
    publisher: Publisher,
    /// The publisher's work; ends with the session.
    _worker: TaskSet<()>,
    calls: TaskSet<ActionResult>,
    looks: TaskSet<Views>,
    dead_letters: TaskSet<()>,
    subscribing: TaskSet<Result<Subscription, BusError>>,
    subscription: Option<Subscription>,
    /// State of the claim on the queue.
    hold: Option<watch::Receiver<SubscriptionState>>,
    /// Tells the publisher whether it may report for the host: only the consumer of the host's
    /// queue may.
    speaks: watch::Sender<bool>,
    /// The agent is stopping and begins nothing new.
    stopping: bool,
    health: HostHealth,
}

impl AgentSession {
    pub(super) async fn open(
        agent: &Agent,
        storage: Box<dyn Storage>,
        identity: SenderIdentity,
    ) -> Result<Self, AgentError> {
        let config = agent.config.clone();
        let queue = config.queue_prefix.agent(&config.host)?;
        let host = config.host.clone();
        let (mut journal, mut records) =
            in_background(move || Journal::open(storage, &host)).await?;
        let (steps, set) = ClockWatch::open(Arc::clone(&agent.clock), &config.state_dir);
        if let Some(by_ms) = set {
            tracing::warn!(
                by_ms,
                "the host's clock was set while the agent was down; grace periods end when they would have ended"
            );
            steps.note_before(by_ms);
            records = records.into_iter().map(|r| r.by_clock_set(by_ms)).collect();
            let moved = records.clone();
            journal = in_background(move || journal.replace(&moved).map(|()| journal)).await?;
        }
        steps.note();
        let now = agent.clock.now();
        let remembered = records.len();
        let (core, first) = AgentCore::restore(&config.host, config.policy.clone(), records, now);
        tracing::info!(remembered, "the journal has been read");
        let (speaks, may_speak) = watch::channel(false);
        let (publisher, work) = Publisher::new(Worker {
            may_speak,
            bus: Arc::clone(&agent.bus),
            driver: Arc::clone(&agent.driver),
            clock: Arc::clone(&agent.clock),
            identity,
            queue: config.queue_prefix.scheduler(),
            heartbeat_interval: config.heartbeat_interval,
            last_list: Arc::default(),
        });
        let mut worker = TaskSet::new("publisher");
        worker.spawn(work);
        let status = agent.bus.status();
        let health = agent
            .health
            .open(&config.host, config.poll_interval, status.clone());
        Ok(Self {
            bus: Arc::clone(&agent.bus),
            driver: Arc::clone(&agent.driver),
            clock: Arc::clone(&agent.clock),
            steps,
            status,
            config,
            queue,
            journal: Arc::new(Mutex::new(journal)),
            core,
            first,
            deliveries: HashMap::new(),
            traces: Traces::default(),
            next_token: 1,
            publisher,
            _worker: worker,
            calls: TaskSet::new("driver"),
            looks: TaskSet::new("look"),
            dead_letters: TaskSet::new("dead-letter"),
            subscribing: TaskSet::new("subscribe"),
            subscription: None,
            hold: None,
            speaks,
            stopping: false,
            health,
        })
    }

    /// Works until `shutdown`, or until the journal cannot be written.
    ///
    /// # Errors
    /// Errors that waiting does not resolve.
    pub(super) async fn run(
        mut self,
        shutdown: &CancellationToken,
    ) -> Result<SessionEnd, AgentError> {
        self.subscribe(Duration::ZERO);
        let period = self.config.poll_interval.max(Duration::from_millis(1));
        let mut poll = tokio::time::interval(period);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let first = std::mem::take(&mut self.first);
        let mut broken = self.perform(first).await.err();
        let mut give_up: Option<Instant> = None;
        loop {
            if let Some(error) = broken {
                return Ok(SessionEnd::JournalBroken(error));
            }
            if self.stopping && self.calls.is_empty() && self.publisher.is_idle() {
                return Ok(SessionEnd::Shutdown);
            }
            self.health.beat(self.core.remembered_count());
            let sleep = self.sleep();
            // The core acts on confirmations of the broker only while commands can arrive: a spare
            // may be waiting for the report that was just confirmed.
            let listens = self.stopping || listens(&self.status.borrow());
            let input = tokio::select! {
                () = shutdown.cancelled(), if !self.stopping => {
                    tracing::info!("asked to end: taking no more commands");
                    self.stopping = true;
                    self.health.ending();
                    // Unsettled deliveries return to the queue when the session ends.
                    self.subscription = None;
                    give_up = Some(self.patience_ends());
                    continue;
                }
                () = until(give_up) => {
                    tracing::warn!("ending with calls or reports under way; they are repeated after the next start");
                    return Ok(SessionEnd::Shutdown);
                }
                () = changed_hold(&mut self.hold) => {
                    self.look_at_hold();
                    continue;
                }
                delivery = next_delivery(&mut self.subscription) => match delivery {
                    Some(delivery) => self.receive(delivery),
                    None => {
                        // The owner of the bus has closed it.
                        self.subscription = None;
                        self.subscribe(CONSUME_PAUSE);
                        continue;
                    }
                },
                opened = self.subscribing.next() => {
                    if matches!(opened, Err(BusError::Closed)) && shutdown.is_cancelled() {
                        return Ok(SessionEnd::Shutdown);
                    }
                    self.subscribed(opened)?;
                    continue;
                }
                answer = self.calls.next() => Some(self.handle_result(answer)),
                () = wait_for_change(&mut self.status), if !listens => continue,
                sent = self.publisher.next(), if listens => Some(match sent {
                    PublishResult::Confirmed(report) => {
                        self.health.reported();
                        AgentInput::Published(report)
                    }
                    PublishResult::Impossible(report, reason) => AgentInput::Unpublishable { report, reason },
                }),
                () = self.dead_letters.next() => continue,
                _ = poll.tick(), if !self.stopping => {
                    self.look();
                    continue;
                }
                views = self.looks.next() => self.handle_views(views),
                () = sleep_for(sleep) => Some(AgentInput::Tick),
            };
            let (now, set) = self.steps.look();
            let first = set.map(|by_ms| {
                self.steps.note_before(by_ms);
                AgentInput::ClockSet { by_ms }
            });
            for input in first.into_iter().chain(input) {
                if broken.is_some() {
                    break;
                }
                let effects = self.core.handle(now, input);
                broken = self.perform(effects).await.err();
            }
            // If the journal failed, the next session detects the step again.
            if set.is_some() && broken.is_none() {
                self.steps.note();
            }
        }
    }

    fn patience_ends(&self) -> Instant {
        clock::timer() + self.config.shutdown_grace
    }

    /// How long the protocol can sleep; `None` if nothing waits for time.
    fn sleep(&self) -> Option<Duration> {
        let at = self.core.next_wakeup().filter(|_| !self.stopping)?;
        let millis = at.millis_since(self.clock.now()).unsigned_abs();
        Some(Duration::from_millis(millis).min(MAX_SLEEP))
    }

    // ---- what comes in ----

    fn subscribe(&mut self, pause: Duration) {
        let (bus, queue) = (Arc::clone(&self.bus), self.queue.clone());
        let prefetch = self.config.prefetch;
        // In its own task, because it takes long while the broker is unavailable.
        self.subscribing.spawn(async move {
            tokio::time::sleep(pause).await;
            bus.consume_alone(&queue, prefetch).await
        });
    }

    /// An agent that does not consume the commands of its host must not report for it.
    fn look_at_hold(&mut self) {
        let hold = self.hold.as_mut().map(|hold| *hold.borrow_and_update());
        if hold == Some(SubscriptionState::Taken) && *self.speaks.borrow() {
            tracing::error!(
                code = "EB-BUS-014", queue = %self.queue,
                "another process has taken the queue of this host's commands: nothing is reported until it is gone. Two agents have one \
                 host name"
            );
        }
        // A transport without rivals says nothing of them.
        self.health
            .consumes(matches!(hold, None | Some(SubscriptionState::Held)));
        self.speaks.send_if_modified(|speaks| {
            let may = hold != Some(SubscriptionState::Taken)
                && (hold != Some(SubscriptionState::Waiting) || *speaks);
            let news = *speaks != may;
            *speaks = may;
            news
        });
    }

    fn subscribed(&mut self, opened: Result<Subscription, BusError>) -> Result<(), AgentError> {
        match opened {
            _ if self.stopping => {}
            Ok(subscription) => {
                tracing::info!(queue = %self.queue, "taking commands");
                self.hold = subscription.hold();
                self.subscription = Some(subscription);
                self.look_at_hold();
            }
            Err(error) if error.is_transient() => {
                tracing::warn!(code = error.code(), "commands cannot be read yet: {error}");
                self.subscribe(CONSUME_PAUSE);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn receive(&mut self, delivery: Delivery) -> Option<AgentInput> {
        match Message::from_bytes(&delivery.body) {
            Ok(message) => {
                tracing::info!(
                    command = message.body.event_type(), message_id = %message.id,
                    server_id = message.body.server_id().map(tracing::field::display),
                    redelivered = delivery.redelivered, "received"
                );
                fail_points::read(&message.body);
                self.health.command();
                let token = DeliveryTag(self.next_token);
                self.next_token += 1;
                self.traces
                    .received(token, &delivery, &message, &self.config.host);
                self.deliveries.insert(token, delivery);
                Some(AgentInput::Command { token, message })
            }
            Err(error) => {
                let reason = format!("{}: {error}", error.code());
                self.dead_letter(delivery, reason);
                None
            }
        }
    }

    fn dead_letter(&mut self, delivery: Delivery, reason: String) {
        self.dead_letters.spawn(async move {
            // The bus logs the dead letter and the reason.
            if let Err(error) = delivery.dead_letter(&reason).await {
                tracing::warn!(
                    code = error.code(),
                    "a message that cannot be used comes again, because it could not be moved: {error}"
                );
            }
        });
    }

    fn handle_result(&mut self, answer: ActionResult) -> AgentInput {
        let ActionResult {
            action,
            server_id,
            words,
            result,
        } = answer;
        fail_points::after_result(&result);
        self.health.called(result.is_ok());
        self.traces.answered(action, server_id, &result);
        match &result {
            Ok(done) => tracing::debug!(%server_id, action = words, ?done, "the hypervisor did it"),
            Err(error) => {
                tracing::warn!(%server_id, action = words, code = error.code(), "{error}");
            }
        }
        AgentInput::ActionDone { action, result }
    }

    /// Looks at the servers, if no look is under way.
    fn look(&mut self) {
        if self.looks.is_empty() {
            let driver = Arc::clone(&self.driver);
            self.looks.spawn(async move {
                let late = DriverError::TimedOut {
                    what: "list its servers",
                    seconds: LIST_LIMIT.as_secs(),
                };
                let list = tokio::time::timeout(LIST_LIMIT, driver.list());
                list.await.unwrap_or(Err(late))
            });
        }
    }

    fn handle_views(&mut self, views: Views) -> Option<AgentInput> {
        self.health.listed(views.as_ref().err());
        match views {
            Ok(views) => {
                self.publisher.beat_if_news(&in_short(&views));
                self.core
                    .is_watching()
                    .then_some(AgentInput::Observed(views))
            }
            Err(error) => {
                tracing::warn!(code = error.code(), "the servers cannot be seen: {error}");
                None
            }
        }
    }

    // ---- what goes out ----

    /// Executes the protocol's effects. `Err` if the journal could not be written; then none was
    /// executed.
    async fn perform(&mut self, effects: Vec<AgentEffect>) -> Result<(), AgentError> {
        let (records, effects): (Vec<AgentEffect>, Vec<AgentEffect>) = effects
            .into_iter()
            .partition(|effect| matches!(effect, AgentEffect::Journal(_)));
        let records = records.into_iter().filter_map(|effect| match effect {
            AgentEffect::Journal(record) => Some(record),
            _ => None,
        });
        self.write(records.collect()).await?;
        for effect in effects {
            match effect {
                // Written above.
                AgentEffect::Journal(_) => {}
                // The next agent repeats the call; the journal contains its purpose.
                AgentEffect::Drive { .. } if self.stopping => {}
                AgentEffect::Drive {
                    action,
                    server_id,
                    what,
                } => {
                    tracing::info!(%server_id, action = what.words(), "asking the hypervisor");
                    self.traces.calls(action, server_id, &what);
                    let driver = Arc::clone(&self.driver);
                    let limit = self.config.action_timeout;
                    let host = || self.config.host.clone();
                    let fence = self.config.fence.clone().map(|fence| (fence, host()));
                    self.calls.spawn(drive(
                        driver,
                        action,
                        server_id,
                        what,
                        fence,
                        limit,
                        Arc::clone(&self.clock),
                    ));
                }
                AgentEffect::Publish { report, message } => {
                    let span = self.traces.report(&message.body);
                    self.publisher.send(report, message, span);
                }
                AgentEffect::Ack(token) => {
                    self.traces.settled(token);
                    if let Some(delivery) = self.deliveries.remove(&token) {
                        fail_points::acknowledge(delivery).await;
                    }
                }
                AgentEffect::DeadLetter(token, reason) => {
                    self.traces.settled(token);
                    if let Some(delivery) = self.deliveries.remove(&token) {
                        self.dead_letter(delivery, reason);
                    }
                }
                AgentEffect::ServersChanged => self.publisher.beat(),
            }
        }
        Ok(())
    }

    async fn write(&self, records: Vec<JournalRecord>) -> Result<(), AgentError> {
        if records.is_empty() {
            return Ok(());
        }
        let journal = Arc::clone(&self.journal);
        // A panic under the lock leaves the journal as a failed write does; the next write repairs
        // it.
        let replace = journal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_mostly_garbage(self.core.remembered_count());
        // The protocol's records include the ones to be written now.
        let records = if replace {
            self.core.records()
        } else {
            records
        };
        in_background(move || {
            let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
            let written = if replace {
                journal.replace(&records)
            } else {
                journal.append(&records)
            };
            written.inspect(|()| fail_points::after_journal(&records))
        })
        .await
    }
}

fn listens(status: &BusStatus) -> bool {
    matches!(status, BusStatus::Connected | BusStatus::Blocked { .. })
}

async fn wait_for_change(status: &mut watch::Receiver<BusStatus>) {
    if status.changed().await.is_err() {
        // The bus is closed, and this session ends soon.
        std::future::pending::<()>().await;
    }
}

async fn changed_hold(hold: &mut Option<watch::Receiver<SubscriptionState>>) {
    let gone = match hold {
        Some(hold) => hold.changed().await.is_err(),
        None => true,
    };
    if gone {
        // The value does not change any more.
        std::future::pending::<()>().await;
    }
}

async fn next_delivery(subscription: &mut Option<Subscription>) -> Option<Delivery> {
    match subscription {
        Some(subscription) => subscription.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_for(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Runs blocking disk work outside the async threads.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AgentError> + Send + 'static,
) -> Result<T, AgentError> {
    match task::blocking(work).await {
        Ok(result) => result,
        Err(panic) => Err(AgentError::Io {
            what: "work on the journal in",
            path: "the background".into(),
            source: std::io::Error::other(panic),
        }),
    }
}
