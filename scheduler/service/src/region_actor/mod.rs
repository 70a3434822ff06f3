//! The region actor: the one task of this process that owns the region.
//!
//! Inputs that arrive while a transaction is being written wait in the queue and form the next batch: one commit for all of
//! them. Throughput then grows with load, and a single request still has the latency of one commit.
//!
//! Where the database is shared, each batch is a turn ([`ebbtide_store::WriteTurn`]): what other schedulers have written is taken in before anything is
//! decided.

mod batch;
mod fair;
mod task;

use crate::duty::Duty;
use crate::error::ServiceError;
use crate::metrics::Metrics;
use crate::outbox::Outbox;
use crate::plugins::{Engines, ShadowBook};
use crate::task::Tasks;
use ebbtide_model::Timestamp;
use ebbtide_region::{Command, Event, Input, Region, RegionConfig, Reply};
use ebbtide_store::{Store, StoreError};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Inputs that may wait. Beyond that callers wait for their turn to ask.
const QUEUE: usize = 4096;
/// Events that a slow watcher may be behind.
const WATCH_BACKLOG: usize = 16_384;

/// An event with its number and time.
#[derive(Debug, Clone)]
pub struct SequencedEvent {
    /// When the change was made.
    pub at: Timestamp,
    /// Counts up by one.
    pub sequence: u64,
    /// What happened.
    pub event: Event,
}

type Answer<T> = oneshot::Sender<Result<T, ServiceError>>;
type Look = Box<dyn FnOnce(Result<&Region, ServiceError>) + Send>;

enum Work {
    Input(Input, Answer<Reply>),
    Look(Look),
}

/// The way to the region actor. Cheap to clone.
#[derive(Clone)]
pub struct RegionActor {
    work: mpsc::Sender<Work>,
    events: broadcast::Sender<SequencedEvent>,
}

impl RegionActor {
    /// Hands an input to the region and waits until its effects are durable.
    ///
    /// # Errors
    /// The region's refusal, or that the state could not be written.
    pub async fn handle(&self, input: Input) -> Result<Reply, ServiceError> {
        self.submit(input)
            .await?
            .await
            .map_err(|_| ServiceError::Stopping)?
    }

    /// Hands a command to the region; see [`RegionActor::handle`].
    ///
    /// # Errors
    /// See [`RegionActor::handle`].
    pub async fn command(&self, command: Command) -> Result<Reply, ServiceError> {
        self.handle(Input::Command(command)).await
    }

    /// Puts an input into the queue; the answer comes through the receiver. Inputs keep their order.
    pub(crate) async fn submit(
        &self,
        input: Input,
    ) -> Result<oneshot::Receiver<Result<Reply, ServiceError>>, ServiceError> {
        let (answer, answered) = oneshot::channel();
        self.work
            .send(Work::Input(input, answer))
            .await
            .map_err(|_| ServiceError::Stopping)?;
        Ok(answered)
    }

    /// Looks at the region between two batches: everything that is seen is durable.
    ///
    /// # Errors
    /// [`ServiceError::Stopping`].
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Region) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        let (answer, answered) = oneshot::channel();
        let look: Look = Box::new(move |region| {
            // Nobody may be waiting any more; then the answer is for nobody.
            let _ = answer.send(region.map(look));
        });
        self.work
            .send(Work::Look(look))
            .await
            .map_err(|_| ServiceError::Stopping)?;
        answered.await.map_err(|_| ServiceError::Stopping)?
    }

    /// Everything that happens from now on.
    #[must_use]
    pub fn watch(&self) -> broadcast::Receiver<SequencedEvent> {
        self.events.subscribe()
    }
}

/// What the region actor's task has in its hands.
pub(crate) struct Holdings {
    pub(crate) store: Store,
    pub(crate) duty: Duty,
    /// The engine of the moment.
    pub(crate) engines: watch::Receiver<Engines>,
    /// What is compared with what would have been in shadow.
    pub(crate) shadow: ShadowBook,
    pub(crate) region_config: RegionConfig,
    pub(crate) outbox: Outbox,
    pub(crate) metrics: Metrics,
}

/// Reads the region from the database and starts the region actor. `written` is cancelled when it has ended: nothing more is written then.
pub(crate) async fn start(
    holdings: Holdings,
    written: CancellationToken,
    tasks: &Tasks,
) -> Result<RegionActor, ServiceError> {
    let (work, queue) = mpsc::channel(QUEUE);
    let (events, _) = broadcast::channel(WATCH_BACKLOG);
    let region_actor = RegionActor {
        work,
        events: events.clone(),
    };
    let task = task::Task::new(holdings, events, tasks.clone()).await?;
    tasks.spawn("region_actor", async move {
        // Also if it panics.
        let _ended = written.drop_guard();
        Box::pin(task.run(queue)).await;
    });
    Ok(region_actor)
}

pub(crate) fn not_read(error: &StoreError) -> ServiceError {
    if let StoreError::NoSuchMarker { .. } = error {
        return ServiceError::NoSuchMarker(error.to_string());
    }
    ServiceError::NotRead {
        code: error.code(),
        message: error.to_string(),
        passing: error.is_retryable(),
    }
}
