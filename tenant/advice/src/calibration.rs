//! Backtest of the advice: models that know only the data from before a life's launch forecast its
//! interruption, and the backtest compares the forecasts with the outcomes.
//!
//! The backtest takes the lives in order of their launch, in [`BACKTESTS`] groups of the same size.
//! Before the first launch of each group it chooses a model from the data known at that moment;
//! instances that were running then count as running. The model forecasts for every life of the
//! group, at its launch, the chance of an interruption within some hours. The outcomes are
//! estimated with Kaplan and Meier's method among the lives with about the same forecast. A life
//! that its user ended is censored: it counts for as long as it was observed, neither as
//! interrupted nor as not interrupted.

use crate::limits::{
    BACKTESTS, LEAST_ANSWERS, LEAST_INTERRUPTIONS, MOST_LIVES_OF_BACKTEST, SUSPICION, WITHIN,
};
use crate::observed_share::{ObservedShare, interrupted};
use crate::pool::LifePool;
use ebbtide_lifetime::{Lifetime, Observation, Observations};
use std::collections::BTreeMap;

/// Lives that received about the same forecast, and their outcomes.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationRow {
    /// Within how many hours of the launch.
    pub within: f64,
    /// The average forecast.
    pub forecast: f64,
    /// Number of lives.
    pub lives: usize,
    /// The observed share of interruptions.
    pub observed: ObservedShare,
    /// The variance of the forecasts: the models are fitted to a limited number of lives, and other
    /// lives would give other forecasts.
    pub variance: f64,
}

impl CalibrationRow {
    /// Whether chance does not explain the difference between forecast and outcome: both the chance
    /// in the outcomes and that in the lives to which the models were fitted.
    #[must_use]
    pub fn differs(&self) -> bool {
        let (low, high) = self.observed.interval(SUSPICION);
        let own = SUSPICION * SUSPICION * self.variance;
        let share = self.observed.share;
        let far = |edge: f64| ((share - edge).powi(2) + own).sqrt();
        self.forecast < share - far(low) || self.forecast > share + far(high)
    }
}

/// The result of a backtest.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Calibration {
    /// Rows by hours, then by forecast, rounded to the nearest tenth.
    pub rows: Vec<CalibrationRow>,
    /// One row for all lives with a forecast, by hours.
    pub overall: Vec<CalibrationRow>,
    /// Number of lives with a forecast.
    pub forecasts: usize,
    /// Number of lives without a forecast: too little data was available before their launch.
    pub without_forecast: usize,
}

impl Calibration {
    /// Whether chance explains all deviations; `None` if there was no forecast.
    #[must_use]
    pub fn agrees(&self) -> Option<bool> {
        let mut all = self.rows.iter().chain(&self.overall).peekable();
        all.peek()?;
        Some(!all.any(CalibrationRow::differs))
    }
}

/// Forecasts the lives of the pool with the models of `teller`. `teller` receives the data known at
/// that time, and returns nothing if it is too little.
#[must_use]
pub fn backtest(
    pool: &LifePool,
    teller: impl Fn(&Observations) -> Option<Box<dyn Lifetime>>,
) -> Calibration {
    let lives = &pool.observed_lives;
    let mut calibration = Calibration::default();
    let mut forecast: BTreeMap<(usize, u8), Group> = BTreeMap::new();
    let size = lives.len().div_ceil(BACKTESTS).max(1);
    for (number, group) in lives.chunks(size).enumerate() {
        let known = observations_before(pool, number * size);
        let model = known.as_ref().and_then(&teller);
        let (Some(known), Some(model)) = (known, model) else {
            calibration.without_forecast += group.len();
            continue;
        };
        calibration.forecasts += group.len();
        for (at, &within) in WITHIN.iter().enumerate() {
            // A certain end is not a forecast.
            if within >= pool.maximum {
                continue;
            }
            let chance = model.cdf(within).clamp(0.0, 1.0);
            // The nearest tenth, 0 to 10.
            let tenth = (chance * 10.0).round() as u8;
            // Variance of a counted share. Successive groups know almost the same lives, so their
            // errors do not cancel.
            let variance = chance * (1.0 - chance) / known.all().len() as f64;
            let entry = forecast.entry((at, tenth)).or_default();
            for one in group {
                entry.chances += chance;
                entry.variances += variance;
                entry.seen.push(one.seen);
            }
        }
    }
    for (at, &within) in WITHIN.iter().enumerate() {
        let mut all = Group::default();
        for (_, group) in forecast.range((at, 0)..=(at, 10)) {
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
    fn row(&self, within: f64, maximum: f64) -> Option<CalibrationRow> {
        if self.seen.len() < LEAST_ANSWERS {
            return None;
        }
        let seen = Observations::new(self.seen.iter().copied(), maximum).ok()?;
        Some(CalibrationRow {
            within,
            forecast: self.chances / self.seen.len() as f64,
            variance: self.variances / self.seen.len() as f64,
            lives: self.seen.len(),
            observed: interrupted(&seen, 0.0, within)?,
        })
    }
}

/// The data known about earlier lives when the life at `first` began; `None` if it is too little.
fn observations_before(pool: &LifePool, first: usize) -> Option<Observations> {
    let then = pool.observed_lives.get(first)?.launched;
    let from = first.saturating_sub(MOST_LIVES_OF_BACKTEST);
    let earlier = pool.observed_lives.get(from..first)?.iter();
    let known = earlier.filter_map(|one| one.before(then));
    let known = Observations::new(known, pool.maximum).ok()?;
    (known.ended() >= LEAST_INTERRUPTIONS).then_some(known)
}
