//! The in-process transport, for the embedded mode: the same contract without a broker.
//!
//! An [`InProcessBroker`] holds the queues; every party (the scheduler, each agent) opens its own
//! [`InProcessBus`] on it, as it would open its own connection to RabbitMQ. Closing one does not
//! disturb the others.
//!
//! Invariant: a message is either in the `ready` map of its queue or in the `outstanding` map of
//! exactly one bus, except for the instant in which one critical section moves it. Locks are taken
//! in the order bus, then queue, and never across an await.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use ebbtide_amqp::ConnectionPurpose;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::bus::DeliverySource;
use crate::delivery::{ReceivedMessage, Settle};
use crate::status::StatusBoard;
use crate::{
    Bus, BusError, BusStatus, DeadLetterNote, Delivery, MAX_DEAD_LETTERS, MAX_DEAD_LETTERS_BYTES,
    OutgoingMessage, QueueName, Subscription, SubscriptionState,
};

/// Readers of one queue at the same time.
const MOST_READERS: u32 = 1 << 20;
/// How long a reader that is about to end may block the next one: a task ends a moment after it is
/// cancelled.
const ENDING: Duration = Duration::from_secs(2);

/// The queues of one process. Cheap to clone; all clones are the same broker.
#[derive(Debug, Clone, Default)]
pub struct InProcessBroker {
    queues: Arc<RwLock<HashMap<QueueName, Arc<Queue>>>>,
}

/// A connection to an [`InProcessBroker`].
#[derive(Debug)]
pub struct InProcessBus {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    broker: InProcessBroker,
    board: StatusBoard,
    closed: CancellationToken,
    outstanding: Mutex<UnsettledDeliveries>,
}

/// The messages that this bus has delivered and that are not settled.
#[derive(Debug, Default)]
struct UnsettledDeliveries {
    next_tag: u64,
    held: HashMap<u64, HeldMessage>,
}

#[derive(Debug)]
struct HeldMessage {
    queue: Arc<Queue>,
    position: u64,
    message: StoredMessage,
    /// Given back together with the message: it is one unit of the subscription's prefetch.
    _permit: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct Queue {
    state: Mutex<QueueState>,
    arrived: Notify,
    /// One permit for each reader; the only one takes all of them.
    readers: Arc<Semaphore>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            arrived: Notify::new(),
            readers: Arc::new(Semaphore::new(MOST_READERS as usize)),
        }
    }
}

/// Keyed by the order of arrival, so that a message that comes back takes its old place.
#[derive(Debug, Default)]
struct QueueState {
    next_position: u64,
    ready: BTreeMap<u64, StoredMessage>,
}

#[derive(Debug, Clone)]
struct StoredMessage {
    message: Arc<OutgoingMessage>,
    dead_letter: Option<Arc<DeadLetterNote>>,
    redelivered: bool,
}

impl InProcessBroker {
    /// An empty broker.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a bus on this broker.
    #[must_use]
    pub fn connect(&self) -> InProcessBus {
        InProcessBus {
            shared: Arc::new(Shared {
                broker: self.clone(),
                board: StatusBoard::new(BusStatus::Connected),
                closed: CancellationToken::new(),
                outstanding: Mutex::new(UnsettledDeliveries::default()),
            }),
        }
    }

    fn declare(&self, name: &QueueName) -> Arc<Queue> {
        if let Some(queue) = self.find(name) {
            return queue;
        }
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(queues.entry(name.clone()).or_default())
    }

    fn find(&self, name: &QueueName) -> Option<Arc<Queue>> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.get(name).map(Arc::clone)
    }
}

impl InProcessBus {
    /// Breaks the connection, as a network failure would: everything that was handed out and not
    /// settled goes back to its queue, and settling it later does nothing. The bus stays usable.
    /// For tests of what is built on top.
    pub fn sever(&self) {
        self.shared.give_everything_back();
    }
}

impl Drop for InProcessBus {
    fn drop(&mut self) {
        self.shared.close();
    }
}

#[async_trait]
impl Bus for InProcessBus {
    async fn declare(&self, queue: &QueueName) -> Result<(), BusError> {
        self.shared.ensure_open()?;
        self.shared.broker.declare(queue);
        Ok(())
    }

    async fn publish(&self, queue: &QueueName, message: &OutgoingMessage) -> Result<(), BusError> {
        self.shared.publish(queue, message, None)
    }

    async fn consume(&self, queue: &QueueName, prefetch: u16) -> Result<Subscription, BusError> {
        let source = self.shared.consume(queue, prefetch, 1).await?;
        Ok(Subscription::new(queue.clone(), Box::new(source)))
    }

    async fn consume_alone(
        &self,
        queue: &QueueName,
        prefetch: u16,
    ) -> Result<Subscription, BusError> {
        let source = self.shared.consume(queue, prefetch, MOST_READERS).await?;
        // There is no connection that could be lost.
        let (_, hold) = watch::channel(SubscriptionState::Held);
        Ok(Subscription::new(queue.clone(), Box::new(source)).alone(hold))
    }

    async fn is_read(&self, queue: &QueueName) -> Result<bool, BusError> {
        self.shared.ensure_open()?;
        let known = self.shared.broker.find(queue);
        let left = known.map(|queue| queue.readers.available_permits());
        Ok(left.is_some_and(|left| left < MOST_READERS as usize))
    }

    async fn delete(&self, queue: &QueueName) -> Result<(), BusError> {
        if self.is_read(queue).await? {
            return Err(BusError::Refused {
                operation: format!("delete queue {queue}"),
                detail: "it has a reader".to_owned(),
            });
        }
        let queues = &self.shared.broker.queues;
        let mut queues = queues.write().unwrap_or_else(PoisonError::into_inner);
        queues.remove(queue);
        Ok(())
    }

    fn status(&self) -> watch::Receiver<BusStatus> {
        self.shared.board.subscribe()
    }

    async fn close(&self) {
        self.shared.close();
    }
}

impl Shared {
    fn ensure_open(&self) -> Result<(), BusError> {
        if self.closed.is_cancelled() {
            return Err(BusError::Closed);
        }
        Ok(())
    }

    /// A reader that takes so many of the queue's readers' permits.
    async fn consume(
        self: &Arc<Self>,
        name: &QueueName,
        prefetch: u16,
        permits: u32,
    ) -> Result<InProcessSource, BusError> {
        self.ensure_open()?;
        if prefetch == 0 {
            return Err(BusError::InvalidPrefetch);
        }
        let queue = self.broker.declare(name);
        let place = Arc::clone(&queue.readers).acquire_many_owned(permits);
        let Ok(Ok(place)) = tokio::time::timeout(ENDING, place).await else {
            return Err(BusError::InUse {
                queue: name.as_str().to_owned(),
                waited_seconds: ENDING.as_secs(),
            });
        };
        Ok(InProcessSource {
            shared: Arc::clone(self),
            queue,
            name: name.clone(),
            permits: Arc::new(Semaphore::new(usize::from(prefetch))),
            _place: place,
        })
    }

    fn close(&self) {
        self.closed.cancel();
        self.give_everything_back();
        self.board
            .set(ConnectionPurpose::Publish, BusStatus::Closed);
    }

    fn publish(
        &self,
        name: &QueueName,
        message: &OutgoingMessage,
        note: Option<DeadLetterNote>,
    ) -> Result<(), BusError> {
        self.ensure_open()?;
        message.validate()?;
        let queue = match note {
            Some(_) => self.broker.declare(name),
            None => self.broker.find(name).ok_or_else(|| BusError::Unroutable {
                queue: name.as_str().to_owned(),
                message_id: message.message_id,
            })?,
        };
        queue.push(StoredMessage {
            message: Arc::new(message.clone()),
            dead_letter: note.map(Arc::new),
            redelivered: false,
        });
        if *name == name.dead_letter() {
            queue.drop_oldest();
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, UnsettledDeliveries> {
        // Every critical section leaves the map valid, so poison has no meaning here.
        self.outstanding
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn give_everything_back(&self) {
        let mut outstanding = self.lock();
        for (_, held) in outstanding.held.drain() {
            held.give_back();
        }
    }

    /// Takes the next message and notes that it is out, in one step.
    fn take(
        &self,
        queue: &Arc<Queue>,
        permit: OwnedSemaphorePermit,
    ) -> Option<(u64, StoredMessage)> {
        let mut outstanding = self.lock();
        // A bus that is closing has given everything back already; nothing may leave after that.
        if self.closed.is_cancelled() {
            return None;
        }
        let (position, message) = queue.lock().ready.pop_first()?;
        let tag = outstanding.next_tag;
        outstanding.next_tag += 1;
        outstanding.held.insert(
            tag,
            HeldMessage {
                queue: Arc::clone(queue),
                position,
                message: message.clone(),
                _permit: permit,
            },
        );
        Some((tag, message))
    }
}

impl HeldMessage {
    fn give_back(mut self) {
        self.message.redelivered = true;
        self.queue.lock().ready.insert(self.position, self.message);
        self.queue.arrived.notify_waiters();
    }
}

impl Queue {
    fn push(&self, message: StoredMessage) {
        let mut state = self.lock();
        let position = state.next_position;
        state.next_position += 1;
        state.ready.insert(position, message);
        drop(state);
        self.arrived.notify_waiters();
    }

    /// Keeps a queue of dead letters within its bounds, as a broker does.
    fn drop_oldest(&self) {
        let mut state = self.lock();
        let size = |stored: &StoredMessage| stored.message.body.len();
        let mut bytes: usize = state.ready.values().map(size).sum();
        while state.ready.len() > MAX_DEAD_LETTERS || bytes > MAX_DEAD_LETTERS_BYTES {
            let Some((_, oldest)) = state.ready.pop_first() else {
                return;
            };
            bytes -= size(&oldest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct InProcessSource {
    shared: Arc<Shared>,
    queue: Arc<Queue>,
    name: QueueName,
    permits: Arc<Semaphore>,
    _place: OwnedSemaphorePermit,
}

impl InProcessSource {
    async fn wait_for_message(&self) -> Option<(u64, StoredMessage)> {
        loop {
            let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
            // Registered before looking, so that an arrival in between is not missed.
            let mut arrived = std::pin::pin!(self.queue.arrived.notified());
            arrived.as_mut().enable();
            if let Some(taken) = self.shared.take(&self.queue, permit) {
                return Some(taken);
            }
            arrived.await;
        }
    }
}

#[async_trait]
impl DeliverySource for InProcessSource {
    async fn next(&mut self) -> Option<Delivery> {
        // Taking a message and returning it happen in one poll: cancelling this future loses
        // nothing.
        let (tag, stored) = tokio::select! {
            biased;
            () = self.shared.closed.cancelled() => return None,
            taken = self.wait_for_message() => taken?,
        };
        let received = ReceivedMessage {
            message_id: Some(stored.message.message_id),
            content_type: stored.message.content_type.clone(),
            body: stored.message.body.clone(),
            user: None,
            redelivered: stored.redelivered,
            dead_letter: stored.dead_letter.as_deref().cloned(),
            traceparent: stored.message.traceparent.clone(),
        };
        let settle = InProcessSettle {
            shared: Arc::clone(&self.shared),
            tag,
            dead_letter_queue: self.name.dead_letter(),
        };
        Some(Delivery::new(self.name.clone(), received, Box::new(settle)))
    }
}

/// A tag that is no longer in the map was severed or closed: then everything here does nothing.
struct InProcessSettle {
    shared: Arc<Shared>,
    tag: u64,
    dead_letter_queue: QueueName,
}

#[async_trait]
impl Settle for InProcessSettle {
    async fn ack(&mut self) {
        self.shared.lock().held.remove(&self.tag);
    }

    fn requeue(&mut self) {
        let mut outstanding = self.shared.lock();
        if let Some(held) = outstanding.held.remove(&self.tag) {
            held.give_back();
        }
    }

    async fn publish_dead_letter(
        &self,
        message: &OutgoingMessage,
        note: &DeadLetterNote,
    ) -> Result<(), BusError> {
        self.shared
            .publish(&self.dead_letter_queue, message, Some(note.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueuePrefix;
    use uuid::Uuid;

    /// Many readers and writers at once, with everything that can happen to a delivery: each
    /// message is acked at least once and at the end nothing is left anywhere.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn nothing_is_lost_when_deliveries_are_dropped_and_connections_severed() {
        const MESSAGES: u128 = 2_000;
        let broker = InProcessBroker::new();
        let queue = QueuePrefix::default().scheduler();
        let writer = broker.connect();
        writer.declare(&queue).await.unwrap();
        let reader = Arc::new(broker.connect());
        let acked = Arc::new(Mutex::new(std::collections::HashSet::new()));

        let mut readers = tokio::task::JoinSet::new();
        for number in 0..4_u128 {
            let (reader, queue, acked) = (Arc::clone(&reader), queue.clone(), Arc::clone(&acked));
            readers.spawn(async move {
                let mut subscription = reader.consume(&queue, 3).await.unwrap();
                while let Some(delivery) = subscription.next().await {
                    let id = delivery.message_id;
                    match (id.as_u128() + number) % 5 {
                        0 if !delivery.redelivered => drop(delivery),
                        1 if !delivery.redelivered => delivery.retry().await,
                        2 if !delivery.redelivered => reader.sever(),
                        _ => {
                            acked.lock().unwrap().insert(id);
                            delivery.ack().await;
                        }
                    }
                }
            });
        }
        for number in 0..MESSAGES {
            let message = OutgoingMessage::cloud_event(Uuid::from_u128(number), b"{}".to_vec());
            writer.publish(&queue, &message).await.unwrap();
        }
        tokio::time::timeout(std::time::Duration::from_secs(60), async {
            while acked.lock().unwrap().len() < MESSAGES as usize {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("every message is acked in the end");
        reader.close().await;
        while readers.join_next().await.is_some() {}
        assert!(reader.shared.lock().held.is_empty());
    }
}
