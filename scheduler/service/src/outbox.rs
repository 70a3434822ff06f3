//! Publisher of the outbox: sends messages whose claim is durable, in order for each host, until
//! the broker has confirmed them.
//!
//! The table in the database is the truth; this is a copy of the rows that are still to be sent. A
//! message may be sent twice, if the scheduler ends between the broker's confirmation and the
//! deletion of the row. Agents identify messages by their contents.

use crate::Tasks;
use crate::error::ServiceError;
use crate::fail_points;
use crate::metrics::Metrics;
use crate::region_actor::RegionActor;
use crate::traces::message_name;
use ebbtide_bus::{Bus, BusError, OutgoingMessage, QueuePrefix};
use ebbtide_model::MessageId;
use ebbtide_model::message::Message;
use ebbtide_model::record::{Change, OutboxMessage};
use ebbtide_region::OutboxConfirmation;
use ebbtide_runtime::task::pause;
use ebbtide_telemetry::{Span, SpanKind, TraceContext};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Pause after the bus has refused a message, before the next attempt.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Hosts that are served at the same time; the broker confirms their messages together.
const HOSTS_AT_ONCE: usize = 64;

/// The messages still to be sent. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Outbox {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queues: Mutex<Queues>,
    changed: Notify,
}

/// The time to add, send or remove a message does not depend on the number of hosts or of messages
/// for other hosts: with a slow or unavailable broker there may be a hundred thousand.
#[derive(Default)]
struct Queues {
    by_host: HashMap<Arc<str>, HostQueue>,
    /// The host of each message.
    host_of: HashMap<MessageId, Arc<str>>,
    /// Hosts with messages and without a sending task, the longest waiting first.
    ready: VecDeque<Arc<str>>,
    /// Number of hosts with a sending task.
    busy: usize,
}

/// The messages for one host, in the order of delivery. The queue is removed when it is empty and
/// has no sending task.
#[derive(Default)]
struct HostQueue {
    messages: VecDeque<Arc<OutboxMessage>>,
    busy: bool,
}

impl Queues {
    fn push(&mut self, message: OutboxMessage) {
        let host: Arc<str> = message.host.as_str().into();
        self.host_of.insert(message.id, Arc::clone(&host));
        let queue = self.by_host.entry(Arc::clone(&host)).or_default();
        if queue.messages.is_empty() && !queue.busy {
            self.ready.push_back(host);
        }
        queue.messages.push_back(Arc::new(message));
    }

    /// Removes a message, if it is still here. A queue that becomes empty in this way stays until
    /// its turn.
    fn remove(&mut self, id: MessageId) {
        let Some(host) = self.host_of.remove(&id) else {
            return;
        };
        if let Some(queue) = self.by_host.get_mut(&host) {
            // Nearly always the first one.
            if let Some(at) = queue.messages.iter().position(|m| m.id == id) {
                queue.messages.remove(at);
            }
        }
    }
}

impl Outbox {
    fn lock(&self) -> std::sync::MutexGuard<'_, Queues> {
        // No code under the lock can panic.
        self.shared
            .queues
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the contents by the rows of the database. Sending tasks continue with the new
    /// contents.
    pub(crate) fn replace(&self, rows: Vec<OutboxMessage>) {
        let mut queues = self.lock();
        queues.host_of.clear();
        queues.by_host.values_mut().for_each(|q| q.messages.clear());
        queues.by_host.retain(|_, queue| queue.busy);
        queues.ready.clear();
        for message in rows {
            queues.push(message);
        }
        drop(queues);
        self.shared.changed.notify_one();
    }

    /// Applies changes that have just become durable.
    pub(crate) fn follow(&self, changes: &[Change]) {
        let mut added = false;
        let mut queues = self.lock();
        for change in changes {
            match change {
                Change::Enqueue(message) => {
                    added = true;
                    queues.push(message.clone());
                }
                Change::Dequeue(id) => queues.remove(*id),
                _ => {}
            }
        }
        drop(queues);
        if added {
            self.shared.changed.notify_one();
        }
    }

    /// Number of messages still to be sent.
    pub(crate) fn depth(&self) -> usize {
        self.lock().host_of.len()
    }

    /// Hosts with messages and without a sending task; marks them as busy.
    fn take_hosts(&self) -> Vec<Arc<str>> {
        let mut queues = self.lock();
        let mut hosts = Vec::new();
        while queues.busy < HOSTS_AT_ONCE
            && let Some(host) = queues.ready.pop_front()
        {
            // A host whose queue was emptied and filled again is in `ready` twice; one task for
            // each host keeps the order.
            if let Some(queue) = queues.by_host.get_mut(&host)
                && !queue.busy
            {
                queue.busy = true;
                queues.busy += 1;
                hosts.push(host);
            }
        }
        hosts
    }

    fn first(&self, host: &str) -> Option<Arc<OutboxMessage>> {
        self.lock().by_host.get(host)?.messages.front().cloned()
    }

    fn sent(&self, id: MessageId) {
        self.lock().remove(id);
    }

    fn release(&self, host: &Arc<str>) {
        let mut queues = self.lock();
        queues.busy -= 1;
        if let Some(queue) = queues.by_host.get_mut(host) {
            queue.busy = false;
            if queue.messages.is_empty() {
                queues.by_host.remove(host);
            } else {
                // A message arrived after the task had found the queue empty, or the task had to
                // stop.
                queues.ready.push_back(Arc::clone(host));
            }
        }
        drop(queues);
        self.shared.changed.notify_one();
    }
}

/// The state of the publisher.
#[derive(Clone)]
pub(crate) struct Sender {
    pub(crate) outbox: Outbox,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) prefix: QueuePrefix,
    pub(crate) region_actor: RegionActor,
    pub(crate) metrics: Metrics,
}

/// Starts the publisher.
pub(crate) fn start(sender: Sender, tasks: &Tasks) {
    let workers = tasks.clone();
    tasks.spawn("outbox", async move {
        loop {
            for host in sender.outbox.take_hosts() {
                let (worker, stop) = (sender.clone(), workers.clone());
                workers.spawn(
                    "outbox-host",
                    async move { worker.send_all(&host, &stop).await },
                );
            }
            tokio::select! {
                () = sender.outbox.shared.changed.notified() => {}
                () = workers.stop().cancelled() => return,
            }
        }
    });
}

impl Sender {
    /// Sends the messages for one host, one after the other, until there are none left.
    async fn send_all(&self, host: &Arc<str>, tasks: &Tasks) {
        while let Some(message) = self.outbox.first(host) {
            if tasks.stop().is_cancelled() {
                break;
            }
            fail_points::sending(&message);
            match self.send(host, &message).await {
                Ok(()) => {
                    fail_points::confirmed(&message);
                    self.outbox.sent(message.id);
                    self.metrics.published();
                    if !self.confirm(&message, tasks).await {
                        break;
                    }
                }
                Err(error) => {
                    self.metrics.publish_failed();
                    tracing::warn!(
                        code = error.code(),
                        %host,
                        "message {} not sent yet: {error}",
                        message.id
                    );
                    if !pause(tasks.stop(), RETRY_PAUSE).await {
                        break;
                    }
                }
            }
        }
        self.outbox.release(host);
    }

    /// Lets the region actor write that the broker has confirmed a message. Does not wait for it,
    /// so that the confirmations of several messages are one commit. False if the scheduler stops:
    /// the row stays, and the next scheduler sends the message once more.
    async fn confirm(&self, message: &OutboxMessage, tasks: &Tasks) -> bool {
        let confirmation = OutboxConfirmation {
            id: message.id,
            evacuation_id: message.evacuation_id,
        };
        let Ok(answered) = self.region_actor.submit(confirmation).await else {
            return false;
        };
        let (actor, stop) = (self.region_actor.clone(), tasks.clone());
        tasks.spawn("outbox-confirmation", async move {
            let mut written = answered.await;
            // The region in memory outlives a write that did not begin. Nothing reads the row anew
            // then, and it would stay for as long as this scheduler is on duty.
            while let Ok(Err(error)) = &written
                && is_worth_repeating(error)
                && pause(stop.stop(), RETRY_PAUSE).await
            {
                let id = confirmation.id;
                tracing::warn!(
                    code = error.code(),
                    "message {id} is sent, not noted: {error}"
                );
                let Ok(answered) = actor.submit(confirmation).await else {
                    return;
                };
                written = answered.await;
            }
        });
        true
    }

    async fn send(&self, host: &str, message: &OutboxMessage) -> Result<(), BusError> {
        let queue = self.prefix.agent(host)?;
        let mut span = span_of(message);
        let header = span.context().map(|context| context.to_string());
        let outgoing =
            OutgoingMessage::cloud_event(message.id.0, message.body.clone()).traced(header);
        let sent = match self.bus.publish(&queue, &outgoing).await {
            // The agent has never run, because it declares its queue when it starts. The queue
            // keeps the message until then.
            Err(BusError::Unroutable { .. }) => {
                self.bus.declare(&queue).await?;
                self.bus.publish(&queue, &outgoing).await
            }
            outcome => outcome,
        };
        sent.inspect_err(|error| span.fail(|| error.to_string()))
    }
}

/// False if the row is not this scheduler's concern any more: the scheduler that comes on duty,
/// which may be this one, reads it and sends the message once more.
fn is_worth_repeating(error: &ServiceError) -> bool {
    matches!(
        error,
        ServiceError::NotWritten { .. } | ServiceError::NotRead { .. }
    )
}

/// The span of one attempt to send a message, if the message belongs to a trace.
fn span_of(message: &OutboxMessage) -> Span {
    let trace = TraceContext::of_event(&message.body);
    let Some(Ok(read)) = trace.map(|_| Message::from_bytes(&message.body)) else {
        return Span::default();
    };
    let mut span = Span::part(message_name(&read.body), SpanKind::Producer, trace);
    span.set("ebbtide.host", || message.host.clone());
    if let Some(server) = read.body.server_id() {
        span.set("ebbtide.server_id", || server.to_string());
    }
    span
}
