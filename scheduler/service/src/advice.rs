//! Advice to tenants: reads lives, computes models on threads that delay no other request, and
//! caches the models.
//!
//! The cost that a tenant can cause is bounded. One model is computed at a time, from a bounded
//! number of lives (`ebbtide_advice::limits`), once in five minutes for each flavor and tenant. One
//! job is planned at a time, with a bounded number of steps.

use crate::cloud::CloudView;
use crate::error::ServiceError;
use ebbtide_advice::life::hours_of;
use ebbtide_advice::{
    Advice, AdviceQuery, FlavorModel, FlavorScope, LifePool, LifeRecord,
    Retention as LifeRetention, Viewer,
};
use ebbtide_model::{Seconds, Server, Timestamp};
use ebbtide_runtime::clock::{self, Stopwatch};
use ebbtide_runtime::task::blocking;
use ebbtide_store::{LifeFilter, MAX_PAGE};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a model is cached. Lives end one by one, so models change slowly.
const FRESH: Duration = Duration::from_secs(300);
/// Most cached models; each takes some hundred kilobytes at most.
const MOST_KEPT: usize = 256;
/// Most pages of lives that are read for a model. That is more than a model uses, because lives of
/// other tenants and of normal servers are among them.
const PAGES: usize = 10;
const DAY_MS: i64 = 86_400_000;

/// The properties of a flavor that advice needs.
#[derive(Debug, Clone)]
pub(crate) struct AdviceFlavor {
    pub(crate) name: String,
    /// The maximum lifetime in hours; infinite for no limit.
    pub(crate) maximum: f64,
}

type Key = (String, Viewer);

/// How a cloud keeps past lives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LifeTimes {
    /// How long lives stay in the database.
    pub(crate) retention: Seconds,
    /// How long after its end a life may become known. A tenant's answer is as of that long ago:
    /// otherwise a life of another tenant could come into an hour that was closed already.
    pub(crate) late: Seconds,
}

/// The advice service. Cheap to clone: all clones share the cache.
#[derive(Clone)]
pub(crate) struct AdviceService {
    cloud: Arc<dyn CloudView>,
    times: LifeTimes,
    cache: Arc<Mutex<BTreeMap<Key, CachedModel>>>,
    models: Arc<Semaphore>,
    plans: Arc<Semaphore>,
}

#[derive(Clone)]
struct CachedModel {
    since: Stopwatch,
    /// If this has changed, the name belongs to another flavor.
    maximum: f64,
    knowledge: Arc<FlavorModel>,
}

impl AdviceService {
    pub(crate) fn new(cloud: Arc<dyn CloudView>, times: LifeTimes) -> Self {
        Self {
            cloud,
            times,
            cache: Arc::default(),
            models: Arc::new(Semaphore::new(1)),
            plans: Arc::new(Semaphore::new(1)),
        }
    }

    /// Answers a question about a flavor.
    pub(crate) async fn advice(
        &self,
        flavor: AdviceFlavor,
        asker: Viewer,
        question: AdviceQuery,
    ) -> Result<Advice, ServiceError> {
        // An invalid question costs nothing.
        question.check()?;
        let knowledge = self.knowledge(flavor, asker).await?;
        let _turn = turn(&self.plans).await?;
        Ok(computed(move || knowledge.advice(&question)).await??)
    }

    async fn knowledge(
        &self,
        flavor: AdviceFlavor,
        asker: Viewer,
    ) -> Result<Arc<FlavorModel>, ServiceError> {
        let key = (flavor.name.clone(), asker.clone());
        if let Some(cached) = self.cached(&key, flavor.maximum) {
            return Ok(cached);
        }
        let _turn = turn(&self.models).await?;
        // The task that had the turn before may have computed it.
        if let Some(cached) = self.cached(&key, flavor.maximum) {
            return Ok(cached);
        }
        let knowledge = Arc::new(self.made(&flavor, asker).await?);
        self.insert(
            key,
            CachedModel {
                since: Stopwatch::start(),
                maximum: flavor.maximum,
                knowledge: Arc::clone(&knowledge),
            },
        );
        Ok(knowledge)
    }

    fn cached(&self, key: &Key, maximum: f64) -> Option<Arc<FlavorModel>> {
        let all = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = all.get(key)?;
        let same = cached.maximum.total_cmp(&maximum).is_eq();
        (same && cached.since.elapsed() < FRESH).then(|| Arc::clone(&cached.knowledge))
    }

    fn insert(&self, key: Key, new: CachedModel) {
        let mut all = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, cached| cached.since.elapsed() < FRESH);
        if all.len() >= MOST_KEPT {
            let oldest = all.iter().max_by_key(|(_, cached)| cached.since.elapsed());
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                all.remove(&oldest);
            }
        }
        all.insert(key, new);
    }

    async fn made(
        &self,
        flavor: &AdviceFlavor,
        asker: Viewer,
    ) -> Result<FlavorModel, ServiceError> {
        let now = match asker {
            Viewer::Everything => clock::now(),
            Viewer::Projects(_) => clock::now().minus(self.times.late),
        };
        let (maximum, retention) = (flavor.maximum, LifeRetention(self.times.retention));
        let lives = self.lives(Some(&flavor.name), now).await?;
        let who = asker.clone();
        let pool = computed(move || LifePool::of(&lives, &who, now, maximum, retention)).await?;
        let (pool, scope) = if pool.enough() {
            (pool, FlavorScope::Flavor)
        } else {
            let lives = self.lives(None, now).await?;
            let pool =
                computed(move || LifePool::of(&lives, &asker, now, maximum, retention)).await?;
            (pool, FlavorScope::AllPreemptible)
        };
        Ok(computed(move || FlavorModel::of(pool, scope)).await??)
    }

    /// Lives of preemptible servers, of one flavor or of all: ended ones and present ones.
    async fn lives(
        &self,
        flavor: Option<&str>,
        now: Timestamp,
    ) -> Result<Vec<LifeRecord>, ServiceError> {
        let mut lives = Vec::new();
        let mut filter = LifeFilter {
            flavor: flavor.map(str::to_owned),
            ..LifeFilter::default()
        };
        let mut earliest = None;
        for _ in 0..PAGES {
            let page = self.cloud.lives(&filter).await?;
            lives.extend(
                page.iter()
                    .filter(|life| life.preemptible)
                    .map(LifeRecord::from),
            );
            earliest = page.last().map(|last| last.launched_at);
            filter.marker = page.last().map(ebbtide_model::PastLife::key);
            if page.len() < MAX_PAGE as usize {
                earliest = None;
                break;
            }
        }
        if let Some(earliest) = earliest {
            // The first day that is read incompletely is left out as a whole, so that the edge does
            // not move with every new life.
            let day = earliest.as_millis().div_euclid(DAY_MS) + 1;
            lives.retain(|life| life.launched.as_millis() >= day * DAY_MS);
        }
        let running = self.cloud.running_lives(flavor).await?;
        lives.extend(running.iter().map(|life| life.record(now)));
        Ok(lives)
    }
}

/// The present life of a preemptible server.
#[derive(Debug, Clone)]
pub(crate) struct RunningLife {
    project_id: String,
    began: Timestamp,
    max_lifetime: Option<Seconds>,
}

impl RunningLife {
    /// `None` for a normal server.
    pub(crate) fn new(server: &Server, began: Timestamp) -> Option<Self> {
        let properties = server.flavor.properties().ok()?;
        properties.preemptible.then(|| Self {
            project_id: server.project_id.clone(),
            began,
            max_lifetime: properties.max_lifetime,
        })
    }

    fn record(&self, now: Timestamp) -> LifeRecord {
        LifeRecord {
            project: self.project_id.clone(),
            // It may have begun after the clock was read.
            launched: self.began.min(now),
            ended: None,
            limit: hours_of(self.max_lifetime),
        }
    }
}

async fn turn(turns: &Semaphore) -> Result<tokio::sync::SemaphorePermit<'_>, ServiceError> {
    turns.acquire().await.map_err(|_| ServiceError::Stopping)
}

/// Computes on a blocking thread, away from the threads that serve requests. It fails only if the
/// runtime ends or the work panics.
async fn computed<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ServiceError> {
    blocking(work).await.map_err(|error| {
        tracing::error!("advice was broken off: {error}");
        ServiceError::Stopping
    })
}
