//! The outbox's sender: hands messages whose claim is durable to the bus, in order for each host, until the broker has confirmed them.
//!
//! The table in the database is the truth; what is here is a copy of its rows that are still to be sent. A message may go out twice
//! (the scheduler ends between the broker's confirmation and the row's deletion): agents know messages by what they are about.

use crate::keeper::Keeper;
use crate::metrics::Metrics;
use crate::task::{Tasks, pause};
use ebbtide_bus::{Bus, Outgoing, QueuePrefix};
use ebbtide_model::MessageId;
use ebbtide_model::record::{Change, OutboxMessage};
use ebbtide_region::Input;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How long after a refusal by the bus the same message is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Hosts that are sent to at the same time; the broker confirms them together.
const HOSTS_AT_ONCE: usize = 64;

/// The messages that are still to be sent. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Outbox {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queues: Mutex<Queues>,
    changed: Notify,
}

#[derive(Default)]
struct Queues {
    by_host: BTreeMap<String, VecDeque<OutboxMessage>>,
    /// Hosts for which a task is sending right now.
    busy: BTreeSet<String>,
}

impl Outbox {
    fn lock(&self) -> std::sync::MutexGuard<'_, Queues> {
        // Nothing that could panic is done under the lock.
        self.shared
            .queues
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts anew from the rows of the database.
    pub(crate) fn replace(&self, rows: Vec<OutboxMessage>) {
        let mut queues = self.lock();
        queues.by_host.clear();
        for message in rows {
            queues
                .by_host
                .entry(message.host.clone())
                .or_default()
                .push_back(message);
        }
        drop(queues);
        self.shared.changed.notify_one();
    }

    /// Follows what was just made durable.
    pub(crate) fn follow(&self, changes: &[Change]) {
        let mut added = false;
        let mut queues = self.lock();
        for change in changes {
            match change {
                Change::Enqueue(message) => {
                    added = true;
                    queues
                        .by_host
                        .entry(message.host.clone())
                        .or_default()
                        .push_back(message.clone());
                }
                Change::Dequeue(id) => {
                    queues
                        .by_host
                        .values_mut()
                        .for_each(|queue| queue.retain(|m| m.id != *id));
                }
                _ => {}
            }
        }
        drop(queues);
        if added {
            self.shared.changed.notify_one();
        }
    }

    /// Messages that are still to be sent.
    pub(crate) fn depth(&self) -> usize {
        self.lock().by_host.values().map(VecDeque::len).sum()
    }

    /// Hosts that have messages and nobody who sends them; they are marked as being sent to.
    fn take_hosts(&self) -> Vec<String> {
        let mut queues = self.lock();
        let free = HOSTS_AT_ONCE.saturating_sub(queues.busy.len());
        let hosts: Vec<String> = queues
            .by_host
            .iter()
            .filter(|(host, queue)| !queue.is_empty() && !queues.busy.contains(*host))
            .map(|(host, _)| host.clone())
            .take(free)
            .collect();
        queues.busy.extend(hosts.iter().cloned());
        hosts
    }

    fn first(&self, host: &str) -> Option<OutboxMessage> {
        self.lock()
            .by_host
            .get(host)
            .and_then(|queue| queue.front().cloned())
    }

    fn sent(&self, host: &str, id: MessageId) {
        let mut queues = self.lock();
        if let Some(queue) = queues.by_host.get_mut(host) {
            queue.retain(|m| m.id != id);
            if queue.is_empty() {
                queues.by_host.remove(host);
            }
        }
    }

    fn release(&self, host: &str) {
        self.lock().busy.remove(host);
        self.shared.changed.notify_one();
    }
}

/// What the sender needs.
#[derive(Clone)]
pub(crate) struct Sender {
    pub(crate) outbox: Outbox,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) prefix: QueuePrefix,
    pub(crate) keeper: Keeper,
    pub(crate) metrics: Metrics,
}

/// Starts sending.
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
    /// Sends the messages for one host, one after the other, until there are none.
    async fn send_all(&self, host: &str, tasks: &Tasks) {
        let mut declared = false;
        while let Some(message) = self.outbox.first(host) {
            if tasks.stop().is_cancelled() {
                break;
            }
            match self.send(host, &message, &mut declared).await {
                Ok(()) => {
                    self.outbox.sent(host, message.id);
                    self.metrics.published();
                    let news = Input::Published {
                        id: message.id,
                        evacuation_id: message.evacuation_id,
                    };
                    // If this is not written, the row stays and the message goes out once more after a restart.
                    if let Err(error) = self.keeper.submit(news).await {
                        tracing::debug!(
                            "message {} was confirmed while stopping: {error}",
                            message.id
                        );
                    }
                }
                Err(error) => {
                    self.metrics.publish_failed();
                    tracing::warn!(
                        code = error.code(),
                        host,
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

    async fn send(
        &self,
        host: &str,
        message: &OutboxMessage,
        declared: &mut bool,
    ) -> Result<(), ebbtide_bus::BusError> {
        let queue = self.prefix.agent(host)?;
        if !*declared {
            // The agent may never have been there; its queue keeps the message until it comes.
            self.bus.declare(&queue).await?;
            *declared = true;
        }
        self.bus
            .publish(
                &queue,
                &Outgoing::cloud_event(message.id.0, message.body.clone()),
            )
            .await
    }
}
