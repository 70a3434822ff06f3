//! The region actor's task.

use super::batch::Batch;
use super::fair_queue::FairQueue;
use super::{ActorDependencies, SequencedEvent, Work, not_read};
use crate::Tasks;
use crate::error::ServiceError;
use crate::fail_points;
use ebbtide_model::{CloudEvent, DecisionId, Timestamp};
use ebbtide_region::Region;
use ebbtide_runtime::clock::{self, ClockWatch, Stopwatch};
use ebbtide_runtime::ids;
use ebbtide_runtime::task::pause;
use ebbtide_store::{CommitChanges, Lease, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};

/// Most inputs in one transaction: enough to amortize the disk access, few enough for a steady
/// latency.
const BATCH: usize = 256;
/// Pause after a failed restore, before the next attempt.
const RESTORE_PAUSE: Duration = Duration::from_millis(500);
/// Time after a write of another scheduler for which that scheduler counts as active. Speculative
/// decisions are useful during this time.
const OTHERS_ACTIVE: Duration = Duration::from_secs(10);

/// The region, and the last commit that it contains.
struct Memory {
    region: Region,
    /// The last commit that the region contains.
    seen: i64,
}

pub(super) struct ActorTask {
    holdings: ActorDependencies,
    /// `None` after a commit that failed, until the database can be read again.
    memory: Option<Memory>,
    /// The lease with which the region was read; `None` if another scheduler is on duty.
    lease: Option<Lease>,
    /// Time since the last write of another scheduler.
    others_silent: Option<Stopwatch>,
    /// Decisions of other schedulers that are still to be published to watchers.
    unpublished_decisions: Vec<DecisionId>,
    events: broadcast::Sender<SequencedEvent>,
    sequence: u64,
    tasks: Tasks,
    watch: ClockWatch,
}

impl ActorTask {
    pub(super) async fn new(
        holdings: ActorDependencies,
        events: broadcast::Sender<SequencedEvent>,
        tasks: Tasks,
    ) -> Result<Self, ServiceError> {
        let mut task = Self {
            holdings,
            memory: None,
            lease: None,
            others_silent: None,
            unpublished_decisions: Vec::new(),
            events,
            sequence: 0,
            tasks,
            watch: ClockWatch::start(),
        };
        task.restore().await?;
        Ok(task)
    }

    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Work>) {
        let mut fair = FairQueue::default();
        let mut new = Vec::with_capacity(BATCH);
        loop {
            if fair.is_empty() {
                // Ends when every sender is gone, so that every accepted input gets an answer.
                if queue.recv_many(&mut new, BATCH).await == 0 {
                    return;
                }
                new.drain(..).for_each(|work| fair.push(work));
            }
            fair.fill(&mut queue);
            let works = fair.batch(BATCH);
            let again = self.deal_with(works, Some((&mut fair, &mut queue))).await;
            // One of them cannot be written at all. Handled one by one, only that one is refused.
            for work in again {
                self.deal_with(vec![work], None).await;
            }
        }
    }

    /// Reads the region from the database, and the outbox if this scheduler is on duty.
    async fn restore(&mut self) -> Result<(), ServiceError> {
        self.memory = None;
        let now = clock::now();
        let holdings = &self.holdings;
        // Taken before the read: a scheduler that comes on duty after it reads once more.
        self.lease = holdings.duty.present();
        // Longer than the longest budget window (30 days); evacuations are few, so one more day
        // costs nothing.
        let since = now.minus(ebbtide_model::Seconds(31 * 24 * 3600));
        let loaded = holdings.store.load_all(since).await;
        let (snapshot, seen) = loaded.map_err(|error| not_read(&error))?;
        if let Some(mark) = &snapshot.restored {
            tracing::warn!(
                code = "EB-REGION-011",
                "the database was restored from a backup (marked at {}): nothing is decided or sent before `ebbtide-manage reconcile --apply`",
                mark.at
            );
        }
        let unsent = match self.lease {
            // What a restored outbox holds was sent since, or would be for nothing.
            Some(_) if snapshot.restored.is_none() => snapshot.outbox.clone(),
            _ => Vec::new(),
        };
        holdings.outbox.replace(unsent);
        let config = holdings.region_config.clone();
        let engine = Arc::clone(&holdings.engines.borrow().deciding);
        let region = Region::restore(config, engine, snapshot, now)?;
        self.memory = Some(Memory { region, seen });
        Ok(())
    }

    /// Replaces the region's engines, because plugins may have changed.
    fn take_engine(&self, memory: &mut Memory) {
        let engines = self.holdings.engines.borrow();
        if !memory.region.decides_with(&engines.deciding) {
            memory.region.set_engine(Arc::clone(&engines.deciding));
        }
        memory.region.set_shadow(engines.shadow.clone());
    }

    /// Applies a change of duty. A scheduler that comes on duty reads the region anew, which also
    /// restarts the agents' time limits.
    async fn look_at_duty(&mut self) {
        let present = self.holdings.duty.present();
        let epoch = |lease: &Option<Lease>| lease.as_ref().map(Lease::epoch);
        if epoch(&present) != epoch(&self.lease) {
            match &present {
                Some(lease) => {
                    tracing::info!(epoch = lease.epoch(), "this scheduler is on duty");
                    self.memory = None;
                }
                None => self.step_down(),
            }
        }
        if self.memory.is_some() {
            return;
        }
        match self.restore().await {
            Ok(()) => tracing::info!("the state was read"),
            Err(error) => {
                tracing::error!(code = error.code(), "{error}");
                pause(self.tasks.stop(), RESTORE_PAUSE).await;
            }
        }
    }

    /// The present time. `None` if the clock was set, because limits in memory are by the former
    /// clock. The task then reads the region anew, as after a restart, and every wait gets new time
    /// from now on.
    fn time(&mut self) -> Option<Timestamp> {
        let (now, set) = self.watch.look();
        match set {
            None => Some(now),
            Some(by_ms) => {
                tracing::warn!(by_ms, "the clock was set; everything is read anew");
                None
            }
        }
    }

    /// Stops sending, because another scheduler is on duty.
    fn step_down(&mut self) {
        tracing::info!("another scheduler is on duty");
        self.lease = None;
        self.holdings.outbox.replace(Vec::new());
    }

    /// Handles one batch: decides, commits, answers. Returns the work to be handled again one by
    /// one. `queue`: work that arrives while this scheduler waits for its turn joins the batch. It
    /// is `None` for a single input that is handled again after its batch failed.
    async fn deal_with(
        &mut self,
        works: Vec<Work>,
        queue: Option<(&mut FairQueue, &mut mpsc::Receiver<Work>)>,
    ) -> Vec<Work> {
        let alone = queue.is_none();
        if self.time().is_none() {
            self.memory = None;
        }
        self.look_at_duty().await;
        let mut batch = Batch::of(works);
        let Some(mut memory) = self.memory.take() else {
            batch.refuse(&database_unavailable());
            return Vec::new();
        };
        self.take_engine(&mut memory);
        let mut ticked = self.lease.is_none() && batch.leave_duties();
        if batch.waiting.is_empty() {
            self.only_look(memory, batch, ticked).await;
            return Vec::new();
        }
        if self.others_are_active() {
            let metrics = &self.holdings.metrics;
            if let Err(error) = batch.speculate(&mut memory.region, clock::now(), metrics) {
                tracing::error!(code = error.code(), "the state is read anew: {error}");
                return batch.take_apart();
            }
        }
        let mut turn = self
            .holdings
            .store
            .begin_write(memory.seen, self.lease.as_ref())
            .await;
        if let Err(error @ StoreError::Behind { .. }) = &turn {
            tracing::info!("{error}");
            if let Err(error) = self.restore().await {
                tracing::error!(code = error.code(), "{error}");
            }
            let Some(anew) = self.memory.take() else {
                batch.refuse(&database_unavailable());
                return Vec::new();
            };
            memory = anew;
            // They were made by the former region and refer to its generations.
            batch.forget_speculations();
            turn = self
                .holdings
                .store
                .begin_write(memory.seen, self.lease.as_ref())
                .await;
        }
        let turn = match turn {
            Ok(turn) => turn,
            Err(error) => {
                // Nothing was decided yet, so the region in memory is still valid.
                self.memory = Some(memory);
                tracing::error!(code = error.code(), "nothing can be written: {error}");
                batch.refuse(&error);
                return Vec::new();
            }
        };
        if self.follow(&mut memory, turn.news()).is_err() {
            turn.give_back().await;
            return batch.take_apart();
        }
        if let Some((fair, queue)) = queue {
            fair.fill(queue);
            let room = BATCH.saturating_sub(batch.waiting.len());
            fair.join(room).into_iter().for_each(|work| batch.add(work));
        }
        if self.lease.is_some() && !turn.on_duty() && self.holdings.store.is_shared() {
            self.holdings.duty.lost();
            self.step_down();
        }
        ticked |= self.lease.is_none() && batch.leave_duties();
        let Some(now) = self.time() else {
            turn.give_back().await;
            return batch.take_apart();
        };
        if ticked {
            memory.region.observe(now);
        }
        let before = memory.region.speculation_counts();
        batch.handle(&mut memory.region, now, &self.holdings.metrics);
        let after = memory.region.speculation_counts();
        self.holdings.metrics.speculated(
            after.valid - before.valid,
            after.conflicts - before.conflicts,
        );
        if batch.changes.is_empty() && batch.settles {
            // A scheduler that was suspended may be outdated and ignore a report. Confirm that it
            // is still on duty, because the broker does not deliver the report again.
            if let Err(error) = turn.confirm().await {
                return self.not_written(&error, batch, alone);
            }
        } else if batch.changes.is_empty() {
            turn.give_back().await;
        } else {
            fail_points::decided(&batch.changes);
            let watch = Stopwatch::start();
            let committed = turn.commit(now, ids::new(), &batch.changes).await;
            self.holdings.metrics.committed(
                batch.changes.len(),
                watch.elapsed(),
                committed.is_ok(),
            );
            match committed {
                Ok(number) => {
                    fail_points::committed(&batch.changes);
                    memory.seen = number;
                }
                Err(error) => return self.not_written(&error, batch, alone),
            }
        }
        self.publish_batch(memory, batch, now);
        self.publish_decisions(now).await;
        Vec::new()
    }

    /// Handles read-only looks, which need no turn but must see everything that is durable.
    async fn only_look(&mut self, mut memory: Memory, batch: Batch, ticked: bool) {
        match self.holdings.store.news(memory.seen).await {
            Ok(news) => {
                if self.follow(&mut memory, &news).is_err() {
                    batch.refuse(&database_unavailable());
                    return;
                }
            }
            Err(error @ StoreError::Behind { .. }) => {
                tracing::info!("{error}");
                if let Err(error) = self.restore().await {
                    tracing::error!(code = error.code(), "{error}");
                }
                let Some(anew) = self.memory.take() else {
                    batch.refuse(&database_unavailable());
                    return;
                };
                memory = anew;
            }
            Err(error) => {
                // The changes of other schedulers are unknown, and "not found" would be a guess.
                self.memory = Some(memory);
                batch.refuse(&error);
                return;
            }
        }
        let now = clock::now();
        if ticked {
            memory.region.observe(now);
        }
        self.publish_batch(memory, batch, now);
        self.publish_decisions(now).await;
    }

    /// Applies what other schedulers have written. If that fails, the caller discards the region.
    fn follow(&mut self, memory: &mut Memory, news: &[CommitChanges]) -> Result<(), ()> {
        if !news.is_empty() {
            self.others_silent = Some(Stopwatch::start());
        }
        let now = clock::now();
        for news in news {
            match memory.region.apply_commit(now, &news.changes) {
                Ok(events) => {
                    memory.seen = news.number;
                    if self.lease.is_some() {
                        self.holdings.outbox.follow(&news.changes);
                    }
                    for event in events {
                        self.emit(now, event);
                    }
                }
                Err(error) => {
                    tracing::error!(
                        code = error.code(),
                        "what another scheduler has written cannot be followed, everything is read anew: {error}"
                    );
                    return Err(());
                }
            }
            if self.events.receiver_count() > 0 {
                self.unpublished_decisions.extend(&news.decisions);
            }
        }
        Ok(())
    }

    /// Publishes decisions of other schedulers to watchers. They must be read from the database
    /// first; this happens outside a turn, because other schedulers wait for its end.
    async fn publish_decisions(&mut self, now: Timestamp) {
        for id in std::mem::take(&mut self.unpublished_decisions) {
            match self.holdings.store.decision(id).await {
                Ok(Some(decision)) => self.emit(now, CloudEvent::Decision(Box::new(decision))),
                Ok(None) => {}
                Err(error) => tracing::warn!(
                    code = error.code(),
                    "those who watch are not told of decision {id}: {error}"
                ),
            }
        }
    }

    fn others_are_active(&self) -> bool {
        let silent = self.others_silent.as_ref();
        silent.is_some_and(|since| since.elapsed() < OTHERS_ACTIVE)
    }

    /// Everything is durable: sends answers, events and messages.
    fn publish_batch(&mut self, memory: Memory, batch: Batch, now: Timestamp) {
        if self.lease.is_some() {
            self.holdings.outbox.follow(&batch.changes);
        }
        let mut batch = batch;
        let compared = std::mem::take(&mut batch.compared);
        self.holdings.shadow.note(now, compared);
        let (events, looks) = batch.answer();
        for event in events {
            self.holdings.metrics.record_event(&event);
            match &event {
                CloudEvent::Ignored(why) => tracing::warn!("not followed: {why}"),
                CloudEvent::Alarm { code, words } => tracing::error!(code, "{words}"),
                _ => {}
            }
            self.emit(now, event);
        }
        looks.into_iter().for_each(|look| look(Ok(&memory.region)));
        self.memory = Some(memory);
    }

    fn emit(&mut self, at: Timestamp, event: CloudEvent) {
        self.sequence += 1;
        // Fails only if there are no watchers.
        let _ = self.events.send(SequencedEvent {
            at,
            sequence: self.sequence,
            event,
        });
    }

    /// Handles a failed commit. The region in memory contains changes that are not durable, so it
    /// is discarded.
    fn not_written(&mut self, error: &StoreError, batch: Batch, alone: bool) -> Vec<Work> {
        tracing::error!(
            code = error.code(),
            "the state could not be written: {error}"
        );
        let fenced = matches!(error, StoreError::Fenced { .. });
        if fenced {
            crate::fail(&self.tasks, ServiceError::Fenced);
        }
        if !alone && !fenced && !error.is_retryable() {
            return batch.take_apart();
        }
        batch.refuse(error);
        Vec::new()
    }
}

/// The error while the database is unavailable: nothing can be decided, because nothing can be
/// stored.
fn database_unavailable() -> StoreError {
    StoreError::Unavailable {
        url: "of this scheduler".to_owned(),
        reason: "the log says why".to_owned(),
    }
}
