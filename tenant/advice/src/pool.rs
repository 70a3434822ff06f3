//! Selects the lives that a tenant's advice may use: all of its own, those of others only in
//! batches.
//!
//! The promise: **two answers to one tenant about the same lives of its own differ by at least one
//! whole batch of others' lives, or not at all.** A batch has [`BATCH_LIVES`] lives that ended, of
//! [`BATCH_PROJECTS`] projects, and [`BATCH_BESIDES_LARGEST`] of them (of two projects) do not
//! belong to the project that has most. Batches close on whole hours. The advice ignores what
//! others do after their last batch has closed: their running servers count as having lived until
//! then. So an answer never changes because of one life of one other tenant.
//!
//! Old lives are deleted one by one, and answers must not reveal that either. So batches start
//! again with blocks of time that are fixed in advance ([`Retention`]), and the pool uses no life
//! that could be deleted. The pool selects lives by their launch, not by their end, so that short
//! ones are not preferred.

use crate::life::{LifeRecord, ObservedLife};
use crate::limits::{
    BATCH_BESIDES_LARGEST, BATCH_LIVES, BATCH_PROJECTS, LEAST_INTERRUPTIONS, MOST_LIVES,
};
use ebbtide_lifetime::{LifetimeError, Observation, Observations};
use ebbtide_model::{Seconds, Timestamp};
use std::collections::BTreeMap;

const HOUR_MS: i64 = 3_600_000;

/// The caller that asks for advice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Viewer {
    /// A caller that may see every life: an operator or a reader.
    Everything,
    /// A tenant of these projects.
    Projects(Vec<String>),
}

impl Viewer {
    fn owns(&self, project: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Projects(own) => own.iter().any(|own| own == project),
        }
    }
}

/// How long lives are kept after their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention(pub Seconds);

impl Retention {
    fn share(self, of: i64) -> i64 {
        (self.0.as_millis() / of).max(HOUR_MS)
    }

    /// Length of a block: batches start again with each block. It is a sixth of the kept time, in
    /// whole hours: 15 of 90 days. An incomplete batch at the end of its block is dropped.
    fn block_hours(self) -> i64 {
        self.share(6) / HOUR_MS
    }

    /// Blocks that began longer ago than this are ignored, so that all lives that ended in a used
    /// block still exist.
    fn blocks_ms(self) -> i64 {
        self.share(3)
    }

    /// Lives that began longer than this before the last batch closed are ignored. Together with
    /// the blocks this stays well within the kept time.
    fn window_ms(self) -> i64 {
        self.share(2)
    }
}

/// Which tenants the used lives belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifeOwners {
    /// All projects, up to now.
    Everybody,
    /// The tenant's own, and others' in whole batches.
    OwnAndOthers,
    /// The tenant's own only: there is no batch of others.
    Own,
}

impl LifeOwners {
    /// Its name in the contract.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Everybody => "everybody",
            Self::OwnAndOthers => "own-and-others",
            Self::Own => "own",
        }
    }
}

/// The selected lives, the earliest launch first.
#[derive(Debug, Clone, PartialEq)]
pub struct LifePool {
    /// The known part of each life.
    pub observed_lives: Vec<ObservedLife>,
    /// Which tenants they belong to.
    pub owners: LifeOwners,
    /// Number of the tenant's own lives.
    pub own: usize,
    /// Maximum lifetime of the flavor of the question, hours; infinite for none.
    pub maximum: f64,
}

impl LifePool {
    /// Selects from `lives` those that `asker` may use at `now`, as lives of a flavor with
    /// `maximum`; `kept` says how long lives stay before they are deleted.
    #[must_use]
    pub fn of(
        lives: &[LifeRecord],
        asker: &Viewer,
        now: Timestamp,
        maximum: f64,
        kept: Retention,
    ) -> Self {
        let (own, others): (Vec<&LifeRecord>, Vec<&LifeRecord>) =
            lives.iter().partition(|life| asker.owns(&life.project));
        let most = match asker {
            Viewer::Everything => 2 * MOST_LIVES,
            Viewer::Projects(_) => MOST_LIVES,
        };
        let mut observed_lives = latest(&own, now, maximum, most);
        let own = observed_lives.len();
        let owners = match (asker, closed_at(&others, now, kept)) {
            (Viewer::Everything, _) => LifeOwners::Everybody,
            (Viewer::Projects(_), None) => LifeOwners::Own,
            (Viewer::Projects(_), Some(closed)) => {
                let first = closed.as_millis() - kept.window_ms();
                let within = others.iter().copied();
                let within = within.filter(|life| life.launched.as_millis() >= first);
                let within: Vec<&LifeRecord> = within.collect();
                observed_lives.extend(latest(&within, closed, maximum, MOST_LIVES));
                LifeOwners::OwnAndOthers
            }
        };
        // A stable order in which equal launches do not reveal their projects.
        observed_lives.sort_by(|a, b| {
            let hours = a.seen.hours.total_cmp(&b.seen.hours);
            a.launched
                .cmp(&b.launched)
                .then(hours)
                .then(a.seen.ended.cmp(&b.seen.ended))
        });
        Self {
            observed_lives,
            owners,
            own,
            maximum,
        }
    }

    /// All lives as observations.
    ///
    /// # Errors
    /// The errors of [`Observations::new`].
    pub fn observations(&self) -> Result<Observations, LifetimeError> {
        Observations::new(self.observed_lives.iter().map(|one| one.seen), self.maximum)
    }

    /// Number of lives that the provider ended.
    #[must_use]
    pub fn interruptions(&self) -> usize {
        self.seen().filter(|seen| seen.ended).count()
    }

    /// Total lifetime, hours.
    #[must_use]
    pub fn total_hours(&self) -> f64 {
        self.seen().map(|seen| seen.hours).sum()
    }

    /// Whether the pool has enough data for a model.
    #[must_use]
    pub fn enough(&self) -> bool {
        self.interruptions() >= LEAST_INTERRUPTIONS
    }

    fn seen(&self) -> impl Iterator<Item = &Observation> {
        self.observed_lives.iter().map(|one| &one.seen)
    }
}

/// The latest `most` lives, as known at `now`.
fn latest(lives: &[&LifeRecord], now: Timestamp, maximum: f64, most: usize) -> Vec<ObservedLife> {
    let mut observed_lives: Vec<ObservedLife> = lives
        .iter()
        .filter_map(|life| life.at(now, maximum))
        .collect();
    observed_lives.sort_by_key(|one| one.launched);
    let first = observed_lives.len().saturating_sub(most);
    observed_lives.split_off(first)
}

/// The whole hour at which the last batch of others' lives closed; `None` if there is none.
fn closed_at(others: &[&LifeRecord], now: Timestamp, kept: Retention) -> Option<Timestamp> {
    // The hour in which each life ended, numbered by the end of the hour.
    let hour = |at: Timestamp| (at.as_millis() + HOUR_MS - 1).div_euclid(HOUR_MS);
    let this_hour = now.as_millis().div_euclid(HOUR_MS);
    let block = |hour: i64| (hour - 1).div_euclid(kept.block_hours());
    let first_ms = now.as_millis() - kept.blocks_ms();
    let mut by_hour: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
    for life in others {
        if let Some((at, _)) = life.ended
            && hour(at) <= this_hour
            && block(hour(at)) * kept.block_hours() * HOUR_MS >= first_ms
        {
            by_hour.entry(hour(at)).or_default().push(&life.project);
        }
    }
    let mut closed = None;
    let mut batch: BTreeMap<&str, usize> = BTreeMap::new();
    let mut present = None;
    for (hour, projects) in by_hour {
        if present.replace(block(hour)) != Some(block(hour)) {
            batch.clear();
        }
        for project in projects {
            *batch.entry(project).or_default() += 1;
        }
        if complete(&batch) {
            closed = Some(Timestamp::from_millis(hour * HOUR_MS));
            batch.clear();
        }
    }
    closed
}

fn complete(batch: &BTreeMap<&str, usize>) -> bool {
    let lives: usize = batch.values().sum();
    let largest = batch.values().max().copied().unwrap_or(0);
    lives >= BATCH_LIVES
        && batch.len() >= BATCH_PROJECTS
        && lives - largest >= BATCH_BESIDES_LARGEST
}
