//! The keeper: the one task that owns the region.
//!
//! Inputs that arrive while a transaction is being written wait in the queue and form the next batch: one commit for all of
//! them. Throughput then grows with load, and a single request still has the latency of one commit.

use crate::clock::{self, Stopwatch};
use crate::error::ServiceError;
use crate::ids::RandomIds;
use crate::metrics::Metrics;
use crate::outbox::Outbox;
use crate::task::{Tasks, pause};
use ebbtide_engine::Engine;
use ebbtide_model::Timestamp;
use ebbtide_model::record::Change;
use ebbtide_region::{Command, Effects, Event, Input, Region, RegionConfig, RegionError, Reply};
use ebbtide_store::{Lease, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot};

/// Most inputs in one transaction: enough to hide the disk behind, few enough for a steady latency.
const BATCH: usize = 256;
/// Inputs that may wait. Beyond that callers wait for their turn to ask.
const QUEUE: usize = 4096;
/// Events that a slow watcher may be behind.
const WATCH_BACKLOG: usize = 16_384;
/// How long after a failed restore the next is tried.
const RESTORE_PAUSE: Duration = Duration::from_millis(500);

/// An event with its number and time.
#[derive(Debug, Clone)]
pub struct Told {
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

/// The way to the keeper. Cheap to clone.
#[derive(Clone)]
pub struct Keeper {
    work: mpsc::Sender<Work>,
    events: broadcast::Sender<Told>,
}

impl Keeper {
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

    /// Hands a command to the region; see [`Keeper::handle`].
    ///
    /// # Errors
    /// See [`Keeper::handle`].
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
    pub fn watch(&self) -> broadcast::Receiver<Told> {
        self.events.subscribe()
    }
}

/// What the keeper's task has in its hands.
pub(crate) struct Holdings {
    pub(crate) store: Store,
    pub(crate) lease: Lease,
    pub(crate) engine: Arc<Engine>,
    pub(crate) region_config: RegionConfig,
    pub(crate) outbox: Outbox,
    pub(crate) metrics: Metrics,
}

/// Reads the region from the database and starts the keeper.
pub(crate) async fn start(holdings: Holdings, tasks: &Tasks) -> Result<Keeper, ServiceError> {
    let region = restore(&holdings).await?;
    let (work, queue) = mpsc::channel(QUEUE);
    let (events, _) = broadcast::channel(WATCH_BACKLOG);
    let keeper = Keeper {
        work,
        events: events.clone(),
    };
    let task = Task {
        holdings,
        region: Some(region),
        events,
        sequence: 0,
        tasks: tasks.clone(),
    };
    tasks.spawn("keeper", task.run(queue));
    Ok(keeper)
}

async fn restore(holdings: &Holdings) -> Result<Region, ServiceError> {
    let now = clock::now();
    // Budgets look back at most as far as their windows; evacuations are few, so a day more costs nothing.
    let since = now.minus(ebbtide_model::Seconds(31 * 24 * 3600));
    let snapshot = holdings.store.load(since).await.map_err(|e| not_read(&e))?;
    holdings.outbox.replace(snapshot.outbox.clone());
    let config = holdings.region_config.clone();
    Ok(Region::restore(
        config,
        holdings.engine.clone(),
        snapshot,
        now,
    )?)
}

pub(crate) fn not_read(error: &StoreError) -> ServiceError {
    ServiceError::NotRead {
        code: error.code(),
        message: error.to_string(),
        passing: error.is_retryable(),
    }
}

struct Task {
    holdings: Holdings,
    /// `None` after a commit that failed, until the database could be read again.
    region: Option<Region>,
    events: broadcast::Sender<Told>,
    sequence: u64,
    tasks: Tasks,
}

/// Inputs that the region has dealt with and whose changes are not durable yet.
#[derive(Default)]
struct Batch {
    changes: Vec<Change>,
    events: Vec<Event>,
    answers: Vec<Answered>,
    looks: Vec<Look>,
}

/// An input with what the region said to it.
struct Answered {
    input: Input,
    answer: Answer<Reply>,
    reply: Result<Reply, RegionError>,
}

/// Whether a batch is one input that has spoilt a batch before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alone {
    Yes,
    No,
}

impl Task {
    async fn run(mut self, mut queue: mpsc::Receiver<Work>) {
        let mut waiting = Vec::with_capacity(BATCH);
        // Ends when every sender is gone, so that nothing that was accepted is left without an answer.
        while queue.recv_many(&mut waiting, BATCH).await > 0 {
            let works = std::mem::take(&mut waiting);
            let again = self.deal_with(works, Alone::No).await;
            // One of them cannot be written whatever happens; each on its own, only that one is refused.
            for work in again {
                self.deal_with(vec![work], Alone::Yes).await;
            }
        }
    }

    /// One batch: dealt with, made durable, answered. Returns what has to be dealt with again one by one.
    async fn deal_with(&mut self, works: Vec<Work>, alone: Alone) -> Vec<Work> {
        if self.region.is_none() {
            self.restore_again().await;
        }
        let Some(region) = self.region.as_mut() else {
            refuse(works.into_iter());
            return Vec::new();
        };
        let mut batch = Batch::default();
        let now = clock::now();
        for work in works {
            match work {
                Work::Look(look) => batch.looks.push(look),
                Work::Input(input, answer) => take(
                    region,
                    now,
                    input,
                    answer,
                    &mut batch,
                    &self.holdings.metrics,
                ),
            }
        }
        if !batch.changes.is_empty() {
            let watch = Stopwatch::start();
            let committed = self
                .holdings
                .store
                .commit(&self.holdings.lease, &batch.changes)
                .await;
            self.holdings.metrics.committed(
                batch.changes.len(),
                watch.elapsed(),
                committed.is_ok(),
            );
            if let Err(error) = committed {
                return self.not_written(&error, batch, alone);
            }
        }
        self.tell(batch, now);
        Vec::new()
    }

    /// Everything is durable: now everybody may know.
    fn tell(&mut self, batch: Batch, now: Timestamp) {
        let Batch {
            changes,
            events,
            answers,
            looks,
        } = batch;
        self.holdings.outbox.follow(&changes);
        for Answered { answer, reply, .. } in answers {
            // A caller that has gone away does not want its answer.
            let _ = answer.send(reply.map_err(ServiceError::from));
        }
        for event in events {
            self.holdings.metrics.saw(&event);
            if let Event::Ignored(why) = &event {
                tracing::warn!("not followed: {why}");
            }
            self.sequence += 1;
            // Without watchers there is nobody to tell.
            let _ = self.events.send(Told {
                at: now,
                sequence: self.sequence,
                event,
            });
        }
        if let Some(region) = &self.region {
            looks.into_iter().for_each(|look| look(Ok(region)));
        }
    }

    /// The changes did not become durable, so the region in memory is wrong: it is thrown away.
    fn not_written(&mut self, error: &StoreError, batch: Batch, alone: Alone) -> Vec<Work> {
        self.region = None;
        tracing::error!(
            code = error.code(),
            "the state could not be written: {error}"
        );
        let fenced = matches!(error, StoreError::Fenced { .. });
        if fenced {
            self.tasks.fail(ServiceError::Fenced);
        }
        if alone == Alone::No && !fenced && !error.is_retryable() {
            let inputs = batch
                .answers
                .into_iter()
                .map(|a| Work::Input(a.input, a.answer));
            return inputs
                .chain(batch.looks.into_iter().map(Work::Look))
                .collect();
        }
        for look in batch.looks {
            look(Err(ServiceError::NotRead {
                code: error.code(),
                message: error.to_string(),
                passing: error.is_retryable(),
            }));
        }
        for Answered { answer, reply, .. } in batch.answers {
            let told = match reply {
                _ if fenced => Err(ServiceError::Fenced),
                // What the region refused would have been refused anyway.
                Err(refused) => Err(refused.into()),
                Ok(_) => Err(ServiceError::NotWritten {
                    code: error.code(),
                    message: error.to_string(),
                    passing: error.is_retryable(),
                }),
            };
            let _ = answer.send(told);
        }
        Vec::new()
    }

    async fn restore_again(&mut self) {
        match restore(&self.holdings).await {
            Ok(region) => {
                tracing::info!("the state was read again");
                self.region = Some(region);
            }
            Err(error) => {
                tracing::error!(code = error.code(), "{error}");
                pause(self.tasks.stop(), RESTORE_PAUSE).await;
            }
        }
    }
}

fn take(
    region: &mut Region,
    now: Timestamp,
    input: Input,
    answer: Answer<Reply>,
    batch: &mut Batch,
    metrics: &Metrics,
) {
    let decides = matches!(
        input,
        Input::Command(Command::CreateServers(_) | Command::WhatIf(_))
    );
    let watch = Stopwatch::start();
    let outcome = region.handle(now, &mut RandomIds, input.clone());
    if decides {
        metrics.decided(watch.elapsed());
    }
    let reply = outcome.map(|(reply, Effects { changes, events })| {
        batch.changes.extend(changes);
        batch.events.extend(events);
        reply
    });
    batch.answers.push(Answered {
        input,
        answer,
        reply,
    });
}

/// While the database is away nothing can be decided, because nothing could be kept.
fn refuse(waiting: impl Iterator<Item = Work>) {
    let away = || ServiceError::NotRead {
        code: "EB-STORE-001",
        message: "the database is not available; the log says why".to_owned(),
        passing: true,
    };
    for work in waiting {
        match work {
            Work::Input(_, answer) => drop(answer.send(Err(away()))),
            Work::Look(look) => look(Err(away())),
        }
    }
}
