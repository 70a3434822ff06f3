//! Following one cell: everything once, then only what changed.

use crate::cell::{CellDb, InstanceDetail, ReadInstances, Services};
use crate::error::NovaDbError;
use crate::row::compute::ComputeNode;
use crate::row::instance::Instance;
use crate::row::service::NovaService;
use crate::track::{Mark, Tracker};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How a cell is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowOptions {
    /// How far the clocks of the writers may differ, plus the length of their transactions: the
    /// follower reads again what was written so long ago. Seconds, default 3.
    pub slack_seconds: u32,
    /// Interval between two reads of all heartbeats of services. Between them the follower reads
    /// only services that were disabled, enabled, forced down, made or deleted. Seconds, default 5:
    /// small against `service_down_time`.
    pub heartbeat_seconds: u32,
    /// Age of a heartbeat from which on the follower reads that service at every poll. So a host
    /// that was taken for down is up with its first heartbeat, as it is for nova-scheduler, which
    /// reads the services for each request. Seconds, default 30: half of Nova's
    /// `service_down_time`.
    pub silent_seconds: u32,
    /// Whether instances are followed, too. Default true.
    pub instances: bool,
    /// What is read of instances.
    pub detail: InstanceDetail,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self {
            slack_seconds: 3,
            heartbeat_seconds: 5,
            silent_seconds: 30,
            instances: true,
            detail: InstanceDetail::default(),
        }
    }
}

/// Everything in a cell but the instances, which were handed out in batches.
#[derive(Debug, Clone, Default)]
pub struct CellContent {
    pub compute_nodes: Vec<ComputeNode>,
    pub services: Vec<NovaService>,
    /// How many instances were handed out.
    pub instances: usize,
}

/// What changed. Deleted rows say so in their field `deleted`.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    pub compute_nodes: Vec<ComputeNode>,
    pub services: Vec<NovaService>,
    pub instances: Vec<Instance>,
}

/// Follows one cell. Not to be shared: one caller polls it, and the others wait for the same
/// answer.
#[derive(Debug)]
pub struct Follower {
    cell: CellDb,
    options: FollowOptions,
    computes: Tracker,
    services: Tracker,
    instances: Tracker,
    /// Services that are disabled or forced down: when they come back, nothing in their row says
    /// that they were.
    special: BTreeSet<i64>,
    /// The last heartbeat of each service, microseconds since 1970.
    beats: HashMap<i64, i64>,
    /// Digests of services that were handed out since heartbeats were read.
    handed: HashMap<i64, u64>,
    /// When heartbeats were read, by our clock.
    beats_at: Option<i64>,
    /// Instances on their way out, and what was handed out of them last; without it right after
    /// everything was read.
    leaving: BTreeMap<String, Option<Mark>>,
}

/// More services than these out of order or silent, and heartbeats are read at every poll: the list
/// would be longer than the answer.
const MOST_SPECIAL: usize = 500;
/// Most instances on their way out that are watched; further ones are found when the cell is read
/// anew.
const MOST_LEAVING: usize = 500;

impl Follower {
    /// Will follow a cell.
    #[must_use]
    pub fn new(cell: CellDb, options: FollowOptions) -> Self {
        let tracker = || Tracker::new(options.slack_seconds);
        Self {
            cell,
            options,
            computes: tracker(),
            services: tracker(),
            instances: tracker(),
            special: BTreeSet::new(),
            beats: HashMap::new(),
            handed: HashMap::new(),
            beats_at: None,
            leaving: BTreeMap::new(),
        }
    }

    #[must_use]
    pub fn cell(&self) -> &CellDb {
        &self.cell
    }

    /// Reads everything. `now`: microseconds since 1970, UTC.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn load(
        &mut self,
        now: i64,
        mut batch: impl FnMut(Vec<Instance>) + Send,
    ) -> Result<CellContent, NovaDbError> {
        let (computes, services) =
            tokio::try_join!(self.cell.all_computes(), self.cell.all_services())?;
        let mut marks = Vec::new();
        let mut leaving = BTreeMap::new();
        let mut count = 0;
        if self.options.instances {
            let latest = |marks: &[Mark]| marks.iter().map(|mark| mark.at.min(now)).max();
            count = self
                .cell
                .each_instance(self.options.detail, |seen, instances| {
                    let on_their_way = instances.iter().filter(|i| is_leaving(i));
                    leaving.extend(on_their_way.map(|i| (i.uuid.clone(), None)));
                    // Of a hundred thousand marks only those of the last seconds are ever needed.
                    let slack = i64::from(self.options.slack_seconds) * 1_000_000 + 1_000_000;
                    marks.extend(seen);
                    if let Some(latest) = latest(&marks) {
                        marks.retain(|mark| mark.at >= latest - slack);
                    }
                    batch(instances);
                })
                .await?;
        }
        self.computes.restart(computes.0, now);
        self.special = special(&services.1);
        self.beats = services.1.iter().filter_map(beat).collect();
        self.services.restart(services.0, now);
        self.handed.clear();
        self.beats_at = Some(now);
        self.instances.restart(marks, now);
        self.leaving = leaving;
        Ok(CellContent {
            compute_nodes: computes.1,
            services: services.1,
            instances: count,
        })
    }

    /// Reads what changed since the last time: one round trip a table, and nothing that was handed
    /// out before with the same content. After an error nothing is lost: the next poll reads it.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn poll(&mut self, now: i64) -> Result<Changes, NovaDbError> {
        let trackers = [&self.computes, &self.services, &self.instances];
        let latest = trackers.iter().map(|tracker| tracker.latest()).max();
        let written = latest.unwrap_or_default();
        let special = self.special.iter().copied();
        let mut ids: Vec<i64> = special.chain(self.silent(now)).collect();
        ids.sort_unstable();
        ids.dedup();
        let beats = ids.len() > MOST_SPECIAL
            || self.beats_at.is_none_or(|at| {
                !(0..i64::from(self.options.heartbeat_seconds) * 1_000_000).contains(&(now - at))
            });
        let which = if beats {
            Services::Beats
        } else {
            Services::States(&ids)
        };
        let watch: Vec<String> = self.leaving.keys().take(MOST_LEAVING).cloned().collect();
        let handed: HashMap<i64, u64> = self
            .leaving
            .values()
            .flatten()
            .map(|mark| (mark.id, mark.digest))
            .collect();
        let instances = async {
            if !self.options.instances {
                return Ok(ReadInstances::default());
            }
            let since = self.instances.since();
            self.cell
                .instances_since(since, &watch, self.options.detail, |mark| {
                    self.instances.is_news(mark) && handed.get(&mark.id) != Some(&mark.digest)
                })
                .await
        };
        let (computes, services, instances) = tokio::try_join!(
            self.cell
                .computes_since(self.computes.since(), |mark| self.computes.is_news(mark)),
            self.cell.services_since(self.services.since(), which),
            instances
        )?;
        self.computes.saw(computes.0, now, written);
        self.instances.saw(instances.marks, now, written);
        for (instance, mark) in instances.news.iter().zip(instances.news_marks) {
            if is_leaving(instance) {
                self.leaving.insert(instance.uuid.clone(), Some(mark));
            } else {
                self.leaving.remove(&instance.uuid);
            }
        }
        Ok(Changes {
            compute_nodes: computes.1,
            services: self.take_services(services, beats, now, written),
            instances: instances.news,
        })
    }

    /// Services whose last heartbeat is so old that they may be taken for down.
    fn silent(&self, now: i64) -> impl Iterator<Item = i64> {
        let latest = now - i64::from(self.options.silent_seconds) * 1_000_000;
        let silent = self.beats.iter().filter(move |(_, at)| **at < latest);
        silent.map(|(id, _)| *id)
    }

    fn take_services(
        &mut self,
        rows: Vec<(Mark, NovaService)>,
        beats: bool,
        now: i64,
        written: i64,
    ) -> Vec<NovaService> {
        let mut marks = Vec::with_capacity(rows.len());
        let mut news = Vec::new();
        for (mark, service) in rows {
            if self.services.is_news(&mark) && self.handed.get(&mark.id) != Some(&mark.digest) {
                if is_special(&service) {
                    self.special.insert(service.id);
                } else {
                    self.special.remove(&service.id);
                }
                match beat(&service) {
                    Some((id, at)) => self.beats.insert(id, at),
                    None => self.beats.remove(&service.id),
                };
                self.handed.insert(mark.id, mark.digest);
                news.push(service);
            }
            marks.push(mark);
        }
        if beats {
            // Only a look at all services says since when to look next.
            self.services.saw(marks, now, written);
            self.handed.clear();
            self.beats_at = Some(now);
        }
        news
    }
}

/// The last heartbeat of a service that is not deleted, by its id.
fn beat(service: &NovaService) -> Option<(i64, i64)> {
    let at = service.service.last_seen_up.or(service.service.created_at);
    (!service.deleted).then_some((service.id, at.unwrap_or(0)))
}

fn is_special(service: &NovaService) -> bool {
    !service.deleted && (service.service.disabled || service.service.forced_down)
}

fn special(services: &[NovaService]) -> BTreeSet<i64> {
    services
        .iter()
        .filter(|s| is_special(s))
        .map(|s| s.id)
        .collect()
}

fn is_leaving(instance: &Instance) -> bool {
    !instance.deleted
        && matches!(
            instance.task_state.as_deref(),
            Some("deleting" | "soft-deleting")
        )
}
