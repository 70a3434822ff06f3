//! The region actor: the single task of this process that owns the region.
//!
//! Inputs that arrive during a transaction wait in the queue and form the next batch, with one
//! commit for all of them. So throughput grows with load, and a single request has the latency of
//! one commit.
//!
//! On a shared database each batch is a turn ([`ebbtide_store::WriteTransaction`]): the actor first
//! applies what other schedulers have written, and then decides.

mod batch;
mod fair_queue;
mod queued;
mod task;

use crate::Tasks;
use crate::error::ServiceError;
use crate::lease::HeldLease;
use crate::metrics::Metrics;
use crate::outbox::Outbox;
use crate::plugins::Engines;
use ebbtide_live_plugins::ShadowBook;
use ebbtide_model::{CloudEvent, Decision, PlacementRequest, Timestamp};
use ebbtide_region::{Region, RegionConfig, RegionInput};
use ebbtide_runtime::clock::{self, Stopwatch};
use ebbtide_store::{Store, StoreError};
use queued::{Call, QueuedInput, RandomIds};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Inputs that may wait in the queue. Further callers wait until there is space.
const QUEUE: usize = 4096;
/// Number of events that a slow watcher may lag behind.
const WATCH_BACKLOG: usize = 16_384;

/// An event with its number and time.
#[derive(Debug, Clone)]
pub struct SequencedEvent {
    /// When the change was made.
    pub at: Timestamp,
    /// Sequence number, which increases by one.
    pub sequence: u64,
    /// What happened.
    pub event: CloudEvent,
}

type Answer<T> = oneshot::Sender<Result<T, ServiceError>>;
type Look = Box<dyn FnOnce(Result<&Region, ServiceError>) + Send>;

enum Work {
    Input(Box<dyn QueuedInput>),
    Look(Look),
    /// A look that decides, as a request for so many instances of the project would.
    Question(String, usize, Look),
}

/// Handle of the region actor. Cheap to clone.
#[derive(Clone)]
pub struct RegionActor {
    work: mpsc::Sender<Work>,
    events: broadcast::Sender<SequencedEvent>,
    metrics: Metrics,
}

impl RegionActor {
    /// Sends an input to the region and waits until its effects are durable.
    ///
    /// # Errors
    /// The region's refusal, or a failure to write the state.
    pub async fn handle<I: RegionInput>(&self, input: I) -> Result<I::Reply, ServiceError> {
        self.submit(input)
            .await?
            .await
            .map_err(|_| ServiceError::Stopping)?
    }

    /// Puts an input into the queue; the receiver gets the answer. Inputs keep their order.
    pub(crate) async fn submit<I: RegionInput>(
        &self,
        input: I,
    ) -> Result<oneshot::Receiver<Result<I::Reply, ServiceError>>, ServiceError> {
        let (answer, answered) = oneshot::channel();
        self.work
            .send(Work::Input(Box::new(Call {
                input,
                answer,
                trace: ebbtide_telemetry::current(),
            })))
            .await
            .map_err(|_| ServiceError::Stopping)?;
        Ok(answered)
    }

    /// Reads from the region between two batches, so that everything it sees is durable.
    ///
    /// # Errors
    /// [`ServiceError::Stopping`].
    pub async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Region) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        let (answer, answered) = oneshot::channel();
        let look: Look = Box::new(move |region| {
            // The caller may have gone away; it then needs no answer.
            let _ = answer.send(region.map(look));
        });
        self.work
            .send(Work::Look(look))
            .await
            .map_err(|_| ServiceError::Stopping)?;
        answered.await.map_err(|_| ServiceError::Stopping)?
    }

    /// The decision about a request, which changes nothing. It writes nothing either: schedulers on
    /// one database do not wait for one another. It waits as a request for servers of its project
    /// does, because it takes as long to decide.
    ///
    /// # Errors
    /// The region's refusal, or [`ServiceError::Stopping`].
    pub async fn what_if(&self, request: PlacementRequest) -> Result<Decision, ServiceError> {
        let (answer, answered) = oneshot::channel();
        let (project, instances) = (request.project_id.clone(), request.server_ids.len().max(1));
        let metrics = self.metrics.clone();
        let look: Look = Box::new(move |region| {
            let decision = region.and_then(|region| {
                let watch = Stopwatch::start();
                let decision = region.what_if(clock::now(), &mut RandomIds, &request);
                // Its decision is not stored: there is nothing to link to.
                metrics.decided(watch.elapsed(), None, None);
                Ok(decision?)
            });
            // The caller may have gone away; it then needs no answer.
            let _ = answer.send(decision);
        });
        self.work
            .send(Work::Question(project, instances, look))
            .await
            .map_err(|_| ServiceError::Stopping)?;
        answered.await.map_err(|_| ServiceError::Stopping)?
    }

    /// All events from now on.
    #[must_use]
    pub fn watch(&self) -> broadcast::Receiver<SequencedEvent> {
        self.events.subscribe()
    }
}

/// The dependencies of the region actor's task.
pub(crate) struct ActorDependencies {
    pub(crate) store: Store,
    pub(crate) duty: HeldLease,
    /// The engines in use at the moment.
    pub(crate) engines: watch::Receiver<Engines>,
    /// Collects the comparisons with the shadow engine.
    pub(crate) shadow: ShadowBook,
    pub(crate) region_config: RegionConfig,
    pub(crate) outbox: Outbox,
    pub(crate) metrics: Metrics,
}

/// Reads the region from the database and starts the region actor. The actor cancels `written` when
/// it has ended and writes nothing more.
pub(crate) async fn start(
    holdings: ActorDependencies,
    written: CancellationToken,
    tasks: &Tasks,
) -> Result<RegionActor, ServiceError> {
    let (work, queue) = mpsc::channel(QUEUE);
    let (events, _) = broadcast::channel(WATCH_BACKLOG);
    let region_actor = RegionActor {
        work,
        events: events.clone(),
        metrics: holdings.metrics.clone(),
    };
    let task = task::ActorTask::new(holdings, events, tasks.clone()).await?;
    tasks.spawn("region_actor", async move {
        // The guard also applies if the task panics.
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
