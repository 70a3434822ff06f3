//! Whose lives a tenant's advice is computed from: its own as they are, those of others only in batches.
//!
//! The promise: **two answers to one asker about the same lives of its own differ by at least one whole batch of others' lives, or not at
//! all.** A batch has [`BATCH_LIVES`] lives that ended, of [`BATCH_PROJECTS`] projects, [`BATCH_BESIDES_LARGEST`] of them (of two projects) without the project that
//! has most. Batches close on whole hours. What others do after their last batch has closed is not known to the advice: their servers
//! that run count as long as they had lived by then. So there is no moment at which an answer changes because of one life of one
//! other tenant.
//!
//! Old lives are deleted one by one, and that must not be seen either. So batches begin anew with blocks of time that are fixed beforehand ([`Kept`]), and nothing is
//! used that could be deleted. Lives are chosen by when they began, not by when they ended, so short ones are not preferred.

use crate::life::{Followed, Life};
use crate::limits::{
    BATCH_BESIDES_LARGEST, BATCH_LIVES, BATCH_PROJECTS, LEAST_INTERRUPTIONS, MOST_LIVES,
};
use ebbtide_lifetime::{LifetimeError, Observation, Observations};
use ebbtide_model::{Seconds, Timestamp};
use std::collections::BTreeMap;

const HOUR_MS: i64 = 3_600_000;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asker {
    /// Who may see every life anyway: operators and readers.
    Everything,
    /// A tenant of these projects.
    Projects(Vec<String>),
}

impl Asker {
    fn owns(&self, project: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Projects(own) => own.iter().any(|own| own == project),
        }
    }
}

/// How long lives are kept after their end before they are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept(pub Seconds);

impl Kept {
    fn share(self, of: i64) -> i64 {
        (self.0.as_millis() / of).max(HOUR_MS)
    }

    /// Batches begin anew with each block: a sixth of the time, in whole hours, 15 days of 90. A batch that is not full at the end of its block is none.
    fn block_hours(self) -> i64 {
        self.share(6) / HOUR_MS
    }

    /// Blocks that began earlier before now are not looked at any more, so that all that ended in one is still there.
    fn blocks_ms(self) -> i64 {
        self.share(3)
    }

    /// Lives that began earlier before the last batch closed are not used: together with the blocks well within what is kept.
    fn window_ms(self) -> i64 {
        self.share(2)
    }
}

/// Whose lives were used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Every project's, up to now.
    Everybody,
    /// The asker's, and others' in whole batches.
    OwnAndOthers,
    /// The asker's alone: there is no batch of others'.
    Own,
}

impl Whose {
    /// The word for it in the contract.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Everybody => "everybody",
            Self::OwnAndOthers => "own-and-others",
            Self::Own => "own",
        }
    }
}

/// Lives that may be used, the earliest launch first.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// What is known of them.
    pub followed: Vec<Followed>,
    /// Whose they are.
    pub whose: Whose,
    /// How many are the asker's own.
    pub own: usize,
    /// The longest life of the flavor asked about, hours; infinite for none.
    pub maximum: f64,
}

impl Pool {
    /// Takes from `lives` what `asker` may use at `now`, as lives of a flavor with `maximum`; `kept` says how long lives stay before they are deleted.
    #[must_use]
    pub fn of(lives: &[Life], asker: &Asker, now: Timestamp, maximum: f64, kept: Kept) -> Self {
        let (own, others): (Vec<&Life>, Vec<&Life>) =
            lives.iter().partition(|life| asker.owns(&life.project));
        let most = match asker {
            Asker::Everything => 2 * MOST_LIVES,
            Asker::Projects(_) => MOST_LIVES,
        };
        let mut followed = latest(&own, now, maximum, most);
        let own = followed.len();
        let whose = match (asker, closed_at(&others, now, kept)) {
            (Asker::Everything, _) => Whose::Everybody,
            (Asker::Projects(_), None) => Whose::Own,
            (Asker::Projects(_), Some(closed)) => {
                let first = closed.as_millis() - kept.window_ms();
                let within = others.iter().copied();
                let within = within.filter(|life| life.launched.as_millis() >= first);
                let within: Vec<&Life> = within.collect();
                followed.extend(latest(&within, closed, maximum, MOST_LIVES));
                Whose::OwnAndOthers
            }
        };
        // Stable, and equal launches are put in an order that does not tell whose they are.
        followed.sort_by(|a, b| {
            let hours = a.seen.hours.total_cmp(&b.seen.hours);
            a.launched
                .cmp(&b.launched)
                .then(hours)
                .then(a.seen.ended.cmp(&b.seen.ended))
        });
        Self {
            followed,
            whose,
            own,
            maximum,
        }
    }

    /// All of it as observations.
    ///
    /// # Errors
    /// What [`Observations::new`] refuses.
    pub fn observations(&self) -> Result<Observations, LifetimeError> {
        Observations::new(self.followed.iter().map(|one| one.seen), self.maximum)
    }

    /// How many of them the provider ended.
    #[must_use]
    pub fn interruptions(&self) -> usize {
        self.seen().filter(|seen| seen.ended).count()
    }

    /// How long they lived together, hours.
    #[must_use]
    pub fn lived(&self) -> f64 {
        self.seen().map(|seen| seen.hours).sum()
    }

    /// Whether it has what a model needs.
    #[must_use]
    pub fn enough(&self) -> bool {
        self.interruptions() >= LEAST_INTERRUPTIONS
    }

    fn seen(&self) -> impl Iterator<Item = &Observation> {
        self.followed.iter().map(|one| &one.seen)
    }
}

/// The latest `most` of them, as they are known at `now`.
fn latest(lives: &[&Life], now: Timestamp, maximum: f64, most: usize) -> Vec<Followed> {
    let mut followed: Vec<Followed> = lives
        .iter()
        .filter_map(|life| life.at(now, maximum))
        .collect();
    followed.sort_by_key(|one| one.launched);
    let first = followed.len().saturating_sub(most);
    followed.split_off(first)
}

/// The whole hour at which the last batch of others' lives closed; `None` if there is none.
fn closed_at(others: &[&Life], now: Timestamp, kept: Kept) -> Option<Timestamp> {
    // In which hour each ended, counted so that the hour is over at its number.
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
