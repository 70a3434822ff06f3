//! Sends reports and heartbeats to the scheduler, one after the other.
//!
//! One task sends everything, and it reads a heartbeat's list at the moment of sending. So a
//! heartbeat never contradicts a report that was sent before it: a server that was reported as
//! started is in the next heartbeat, unless it has ended since.

use super::fail_points;
use crate::clock::Clock;
use crate::driver::{Driver, DriverError, ServerView};
use crate::protocol::ReportId;
use ebbtide_bus::{Bus, BusError, OutgoingMessage, QueueName};
use ebbtide_model::message::{Body, Heartbeat, HostedServer, HostedState, Message};
use ebbtide_model::{MessageId, ModelError, ServerId};
use ebbtide_telemetry::Span;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{MissedTickBehavior, Sleep};
use uuid::Uuid;

/// Time limit for listing the hypervisor's servers for a heartbeat.
const LIST_LIMIT: Duration = Duration::from_secs(10);
/// Pause after a failed attempt, in addition to the bus's own retries.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Pause if the operator has to change something at the broker.
const REFUSED_PAUSE: Duration = Duration::from_secs(10);

/// Most servers of a host whose facts are in its heartbeats. About 300 bytes each: these make 1 MB
/// of the 4 MiB that a message may have.
const MOST_FACTS: usize = 4096;

/// Minimum time between two heartbeats about changed servers. The first is sent at once. Reports
/// have already answered every command, and a host that ends ten servers a second need not list all
/// its servers ten times.
const BETWEEN_NEWS: Duration = Duration::from_millis(500);

#[derive(Debug, Clone)]
pub(super) struct SenderIdentity {
    pub(super) host: String,
    pub(super) session: Uuid,
    sequence: Arc<AtomicU64>,
}

impl SenderIdentity {
    pub(super) fn new(host: &str, session: Uuid) -> Self {
        Self {
            host: host.to_owned(),
            session,
            sequence: Arc::new(AtomicU64::new(0)),
        }
    }
}

/// Short form of the hypervisor's servers.
pub(super) type Servers = Vec<(ServerId, HostedState)>;

/// The short form, in an order that can be compared.
pub(super) fn in_short(views: &[ServerView]) -> Servers {
    let mut servers: Servers = views.iter().map(|v| (v.server_id, v.state)).collect();
    servers.sort_unstable_by_key(|(server_id, _)| *server_id);
    servers
}

/// Outcome of a report.
#[derive(Debug)]
pub(super) enum PublishResult {
    Confirmed(ReportId),
    Impossible(ReportId, String),
}

/// A report, and the span that ends when the broker has confirmed it.
type TracedReport = (ReportId, Message, Span);

/// The session's end of the publisher.
#[derive(Debug)]
pub(super) struct Publisher {
    reports: mpsc::UnboundedSender<TracedReport>,
    sent: mpsc::UnboundedReceiver<PublishResult>,
    heartbeat: Arc<Notify>,
    last_list: Arc<Mutex<Option<Servers>>>,
    under_way: usize,
}

/// The part that runs in its own task.
pub(super) struct Worker {
    pub(super) bus: Arc<dyn Bus>,
    pub(super) driver: Arc<dyn Driver>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) identity: SenderIdentity,
    pub(super) queue: QueueName,
    pub(super) heartbeat_interval: Duration,
    /// Whether this agent may report for its host: only while it is the consumer of the host's
    /// queue.
    pub(super) may_speak: watch::Receiver<bool>,
    /// The content of the last heartbeat; `None` before the first.
    pub(super) last_list: Arc<Mutex<Option<Servers>>>,
}

impl Publisher {
    /// The publisher, and its work to be spawned.
    pub(super) fn new(worker: Worker) -> (Self, impl Future<Output = ()> + Send + 'static) {
        // Unbounded, but limited by the running evacuations and commands, because the protocol only
        // reports on commands.
        let (reports, to_send) = mpsc::unbounded_channel();
        let (done, sent) = mpsc::unbounded_channel();
        let heartbeat = Arc::new(Notify::new());
        let last_list = Arc::clone(&worker.last_list);
        let work = worker.run(to_send, done, Arc::clone(&heartbeat));
        let publisher = Self {
            reports,
            sent,
            heartbeat,
            last_list,
            under_way: 0,
        };
        (publisher, work)
    }

    pub(super) fn send(&mut self, report: ReportId, message: Message, span: Span) {
        // This fails only if the worker has ended, at the end of the session. The journal has the
        // report then.
        if self.reports.send((report, message, span)).is_ok() {
            self.under_way += 1;
        }
    }

    /// A heartbeat as soon as possible.
    pub(super) fn beat(&self) {
        self.heartbeat.notify_one();
    }

    /// Sends a heartbeat as soon as possible, if the last one had other content.
    pub(super) fn beat_if_news(&self, servers: &Servers) {
        let last_list = self
            .last_list
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if last_list.as_ref().is_some_and(|last| last != servers) {
            self.beat();
        }
    }

    /// The next report that was settled. Safe to cancel.
    pub(super) async fn next(&mut self) -> PublishResult {
        match self.sent.recv().await {
            Some(sent) => {
                self.under_way -= 1;
                sent
            }
            None => std::future::pending().await,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.under_way == 0
    }
}

/// Waits for the end of a pause, if there is one.
async fn wait_for_pause(pause: &mut Option<Pin<Box<Sleep>>>) {
    match pause {
        Some(pause) => pause.await,
        None => std::future::pending().await,
    }
}

impl Worker {
    async fn run(
        mut self,
        mut to_send: mpsc::UnboundedReceiver<TracedReport>,
        done: mpsc::UnboundedSender<PublishResult>,
        heartbeat: Arc<Notify>,
    ) {
        // A caller of the library may set an interval of zero.
        let period = self.heartbeat_interval.max(Duration::from_millis(1));
        let mut interval = tokio::time::interval(period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut quiet = None;
        loop {
            let speaks = *self.may_speak.borrow_and_update();
            tokio::select! {
                changed = self.may_speak.changed() => if changed.is_err() {
                    // The session is gone.
                    return;
                },
                report = to_send.recv(), if speaks => {
                    let Some((report, message, mut span)) = report else { return };
                    let sent = match self.send(&message, &span).await {
                        Ok(()) => PublishResult::Confirmed(report),
                        Err(reason) => {
                            span.fail(|| reason.clone());
                            PublishResult::Impossible(report, reason)
                        }
                    };
                    drop(span);
                    if done.send(sent).is_err() {
                        return;
                    }
                }
                // The first tick fires at once: the heartbeat registers the host.
                _ = interval.tick(), if speaks => self.beat().await,
                () = heartbeat.notified(), if quiet.is_none() && speaks => {
                    interval.reset();
                    self.beat().await;
                    quiet = Some(Box::pin(tokio::time::sleep(BETWEEN_NEWS)));
                }
                () = wait_for_pause(&mut quiet) => quiet = None,
            }
        }
    }

    /// Sends a report until the broker has confirmed it. `Err` only if it can never be sent.
    async fn send(&self, message: &Message, span: &Span) -> Result<(), String> {
        let body = match message.to_bytes() {
            Ok(body) => body,
            Err(error) => return Err(Self::impossible(message, &error)),
        };
        let header = span.context().map(|context| context.to_string());
        let outgoing = OutgoingMessage::cloud_event(message.id.0, body).traced(header);
        loop {
            let error = match self.publish(&outgoing).await {
                Ok(()) => {
                    fail_points::after_report(&message.body);
                    tracing::info!(
                        report = message.body.event_type(), message_id = %message.id,
                        server_id = message.body.server_id().map(tracing::field::display),
                        "reported"
                    );
                    return Ok(());
                }
                Err(error) => error,
            };
            match error {
                BusError::InvalidMessage { .. } => {
                    tracing::error!(code = error.code(), "a report cannot be sent: {error}");
                    return Err(error.to_string());
                }
                // The session ends soon; the next one repeats unconfirmed reports.
                BusError::Closed => std::future::pending().await,
                error => {
                    tracing::warn!(
                        code = error.code(),
                        report = message.body.event_type(),
                        "a report waits: {error}"
                    );
                    let transient = error.is_transient();
                    let pause = if transient {
                        RETRY_PAUSE
                    } else {
                        REFUSED_PAUSE
                    };
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    /// Publishes a message. Declares the scheduler's queue if it does not exist: the agent may
    /// start before the scheduler.
    async fn publish(&self, outgoing: &OutgoingMessage) -> Result<(), BusError> {
        match self.bus.publish(&self.queue, outgoing).await {
            Err(BusError::Unroutable { .. }) => {
                self.bus.declare(&self.queue).await?;
                self.bus.publish(&self.queue, outgoing).await
            }
            other => other,
        }
    }

    fn impossible(message: &Message, error: &ModelError) -> String {
        tracing::error!(
            code = error.code(),
            report = message.body.event_type(),
            "a report cannot be written: {error}"
        );
        error.to_string()
    }

    async fn beat(&self) {
        // Read before the list: a server that is reported as started later than this may be missing
        // in the list.
        let time = self.clock.now();
        let list = tokio::time::timeout(LIST_LIMIT, self.heartbeat()).await;
        let (heartbeat, servers) = match list {
            Ok(Ok(heartbeat)) => heartbeat,
            Ok(Err(error)) => {
                tracing::error!(code = error.code(), "no heartbeat: {error}");
                return;
            }
            Err(_) => {
                tracing::error!(
                    "no heartbeat: the hypervisor did not tell what it has within {LIST_LIMIT:?}"
                );
                return;
            }
        };
        // Each heartbeat has its own identifier, made from host, session and sequence.
        let words = format!("{} heartbeat {}", heartbeat.host, heartbeat.sequence);
        let message = Message {
            id: MessageId(Uuid::new_v5(&heartbeat.session, words.as_bytes())),
            source: format!("/ebbtide/agent/{}", heartbeat.host),
            time,
            body: Body::Heartbeat(heartbeat),
        };
        let published = match message.to_bytes() {
            Ok(body) => {
                let outgoing = OutgoingMessage::cloud_event(message.id.0, body);
                self.publish(&outgoing).await
            }
            Err(error) => {
                Self::impossible(&message, &error);
                return;
            }
        };
        match published {
            Ok(()) => {
                tracing::debug!(message_id = %message.id, "heartbeat");
                *self
                    .last_list
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = Some(servers);
            }
            // No retry: the next heartbeat is newer.
            Err(error) => tracing::warn!(code = error.code(), "a heartbeat was not sent: {error}"),
        }
    }

    async fn heartbeat(&self) -> Result<(Heartbeat, Servers), DriverError> {
        self.driver.health().await?;
        let facts = self.driver.inventory().await?;
        let views = self.driver.list().await?;
        let servers = in_short(&views);
        let with_facts = views.len() <= MOST_FACTS;
        let mut hosted: Vec<HostedServer> = views
            .into_iter()
            .map(|view| HostedServer {
                server_id: view.server_id,
                state: view.state,
                facts: view.facts.filter(|_| with_facts),
            })
            .collect();
        hosted.sort_unstable_by_key(|server| server.server_id);
        let heartbeat = Heartbeat {
            host: self.identity.host.clone(),
            session: self.identity.session,
            sequence: self.identity.sequence.fetch_add(1, Ordering::Relaxed) + 1,
            inventory: facts.inventory,
            traits: facts.traits,
            servers: hosted,
            storage: facts.storage,
        };
        Ok((heartbeat, servers))
    }
}
