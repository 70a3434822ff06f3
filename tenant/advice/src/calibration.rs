//! Whether advice can be believed: past lives are told their chances by models that knew only what was known before their launch, and what happened is held
//! against it.
//!
//! Lives are taken in order of their launch, in [`BACKTESTS`] groups of the same size. Before each group's first launch a model is chosen
//! from what was known at that moment: whoever was running then counts as running. It tells every life of the group, at its launch, the chance of an
//! interruption within some hours. What happened is counted by Kaplan's and Meier's estimate among those that were told about the same, so that who was
//! stopped by its user counts for as long as it was watched, neither as interrupted nor as spared.

use crate::chance::{Share, interrupted};
use crate::limits::{
    BACKTESTS, LEAST_ANSWERS, LEAST_INTERRUPTIONS, MOST_LIVES_OF_BACKTEST, SUSPICION, WITHIN,
};
use crate::pool::Pool;
use ebbtide_lifetime::{Lifetime, Observation, Observations};
use std::collections::BTreeMap;

/// Those that were told about the same, and what became of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Within how many hours of the launch.
    pub within: f64,
    /// Which chance they were told, on average.
    pub told: f64,
    /// How many they are.
    pub lives: usize,
    /// What share was interrupted.
    pub were: Share,
    /// The variance of what they were told: the models know a bounded number of lives, and would say another thing of others.
    pub variance: f64,
}

impl Row {
    /// Whether what was told is farther from what happened than chance explains: that of what happened and that of what the models were
    /// fitted to.
    #[must_use]
    pub fn off(&self) -> bool {
        let (low, high) = self.were.interval(SUSPICION);
        let own = SUSPICION * SUSPICION * self.variance;
        let share = self.were.share;
        let far = |edge: f64| ((share - edge).powi(2) + own).sqrt();
        self.told < share - far(low) || self.told > share + far(high)
    }
}

/// What a backtest found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Calibration {
    /// Rows by hours, then by what was told, to the nearest tenth.
    pub rows: Vec<Row>,
    /// One row for all that were told something, by hours.
    pub overall: Vec<Row>,
    /// How many lives were told something.
    pub told: usize,
    /// How many were not: too little was known before their launch.
    pub untold: usize,
}

impl Calibration {
    /// Whether nothing is farther off than chance explains; `None` if nobody was told anything.
    #[must_use]
    pub fn agrees(&self) -> Option<bool> {
        let mut all = self.rows.iter().chain(&self.overall).peekable();
        all.peek()?;
        Some(!all.any(Row::off))
    }
}

/// Tells the pool's lives their chances by the models of `teller`, which gets what was known, and says nothing if that is too little for it.
#[must_use]
pub fn backtest(
    pool: &Pool,
    teller: impl Fn(&Observations) -> Option<Box<dyn Lifetime>>,
) -> Calibration {
    let lives = &pool.followed;
    let mut calibration = Calibration::default();
    let mut told: BTreeMap<(usize, u8), Group> = BTreeMap::new();
    let size = lives.len().div_ceil(BACKTESTS).max(1);
    for (number, group) in lives.chunks(size).enumerate() {
        let known = known_before(pool, number * size);
        let model = known.as_ref().and_then(&teller);
        let (Some(known), Some(model)) = (known, model) else {
            calibration.untold += group.len();
            continue;
        };
        calibration.told += group.len();
        for (at, &within) in WITHIN.iter().enumerate() {
            // Who would be told "certainly" is told nothing.
            if within >= pool.maximum {
                continue;
            }
            let chance = model.cdf(within).clamp(0.0, 1.0);
            // The nearest tenth, 0 to 10.
            let tenth = (chance * 10.0).round() as u8;
            // As if the share had been counted. Groups that follow one another know much the same: their errors do not cancel.
            let variance = chance * (1.0 - chance) / known.all().len() as f64;
            let entry = told.entry((at, tenth)).or_default();
            for one in group {
                entry.chances += chance;
                entry.variances += variance;
                entry.seen.push(one.seen);
            }
        }
    }
    for (at, &within) in WITHIN.iter().enumerate() {
        let mut all = Group::default();
        for (_, group) in told.range((at, 0)..=(at, 10)) {
            calibration.rows.extend(group.row(within, pool.maximum));
            all.chances += group.chances;
            all.variances += group.variances;
            all.seen.extend(&group.seen);
        }
        calibration.overall.extend(all.row(within, pool.maximum));
    }
    calibration
}

#[derive(Default)]
struct Group {
    chances: f64,
    variances: f64,
    seen: Vec<Observation>,
}

impl Group {
    fn row(&self, within: f64, maximum: f64) -> Option<Row> {
        if self.seen.len() < LEAST_ANSWERS {
            return None;
        }
        let seen = Observations::new(self.seen.iter().copied(), maximum).ok()?;
        Some(Row {
            within,
            told: self.chances / self.seen.len() as f64,
            variance: self.variances / self.seen.len() as f64,
            lives: self.seen.len(),
            were: interrupted(&seen, 0.0, within)?,
        })
    }
}

/// What was known of the lives before the one at `first` when that one began; `None` if it is too little.
fn known_before(pool: &Pool, first: usize) -> Option<Observations> {
    let then = pool.followed.get(first)?.launched;
    let from = first.saturating_sub(MOST_LIVES_OF_BACKTEST);
    let earlier = pool.followed.get(from..first)?.iter();
    let known = earlier.filter_map(|one| one.before(then));
    let known = Observations::new(known, pool.maximum).ok()?;
    (known.ended() >= LEAST_INTERRUPTIONS).then_some(known)
}
