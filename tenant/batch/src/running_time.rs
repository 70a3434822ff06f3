//! How long a member takes in expectation on a server of some age, and whether the server is kept
//! for it (Kadupitiya et al., HPDC 2020, sections 4.1 to 4.3).

use crate::settings::{ReuseRule, ServerType};
use ebbtide_lifetime::Lifetime;
use ebbtide_lifetime::plan::checkpoint::{CheckpointOptions, Planner};
use ebbtide_lifetime::plan::{RunningTime, as_likely_to_last, keeps, running_time};
use std::collections::BTreeMap;

/// Steps into which a plan with checkpoints divides the work: precise to 2 %, and quick.
const STEPS: f64 = 50.0;
/// Ages and lengths are rounded to such parts of the length, so that answers are found again.
const GRAIN: f64 = 50.0;
/// Answers that are remembered at most.
const REMEMBERED: usize = 20_000;

/// What is asked of a type for a member.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunningTimeQuery {
    /// Work that is left, milliseconds.
    pub length: i64,
    /// How long a checkpoint takes, milliseconds; `None` for a member that cannot be saved.
    pub checkpoint: Option<i64>,
    /// How long a new server takes to come up, milliseconds.
    pub boot: i64,
}

/// Type, age in grains, length in units, checkpoint cost, boot.
type Key = (usize, i64, i64, i64, i64);

/// Expected running times, remembered.
#[derive(Debug, Default)]
pub struct RunningTimes {
    known: BTreeMap<Key, f64>,
}

impl RunningTimes {
    /// The expected time until the member is done, milliseconds, if it starts on a server of this
    /// age; infinite if no server lives long enough.
    pub fn expected(
        &mut self,
        place: usize,
        ty: &ServerType,
        age: i64,
        ask: RunningTimeQuery,
    ) -> f64 {
        let Some(model) = &ty.model else {
            return ask.length as f64;
        };
        let length = rounded(ask.length);
        let grain = (length as f64 / GRAIN).max(1_000.0);
        let grains = (age.max(0) as f64 / grain).round();
        let key = (
            place,
            grains as i64,
            length,
            ask.checkpoint.unwrap_or(-1),
            ask.boot,
        );
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let made = reckon(
            model.as_ref(),
            hours(grains * grain),
            hours(length as f64),
            ask,
        );
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known.insert(key, made);
        made
    }

    /// Whether a server of this age is kept for the member, rather than a new one started.
    pub fn keeps(
        &mut self,
        rule: ReuseRule,
        place: usize,
        ty: &ServerType,
        age: i64,
        ask: RunningTimeQuery,
    ) -> bool {
        let Some(model) = &ty.model else {
            return true;
        };
        let (age_hours, length) = (hours(age.max(0) as f64), hours(ask.length as f64));
        match rule {
            ReuseRule::Always => true,
            // A new server has to come up first.
            ReuseRule::ExpectedTime => {
                let new = self.expected(place, ty, 0, ask) + ask.boot as f64;
                self.expected(place, ty, age, ask) <= new
            }
            ReuseRule::Equation8 => {
                keeps(model.as_ref(), age_hours, length, RunningTime::Literal).unwrap_or(true)
            }
            ReuseRule::Risk => as_likely_to_last(model.as_ref(), age_hours, length).unwrap_or(true),
        }
    }
}

fn hours(ms: f64) -> f64 {
    ms / 3_600_000.0
}

/// Two significant digits: what is learnt of lengths changes by less than that matters.
fn rounded(length: i64) -> i64 {
    let length = length.max(1_000);
    let mut unit = 1;
    while length / unit >= 100 {
        unit *= 10;
    }
    (length + unit / 2) / unit * unit
}

fn reckon(model: &dyn Lifetime, age: f64, length: f64, ask: RunningTimeQuery) -> f64 {
    if model.survival(age) <= 0.0 {
        return f64::INFINITY;
    }
    let made = match ask.checkpoint {
        None => running_time(model, age, length, RunningTime::UntilDone),
        Some(cost) => {
            let cost = hours(cost.max(1) as f64);
            let options = CheckpointOptions {
                step: (length / STEPS).max(cost),
                cost,
                restart: hours(ask.boot as f64),
                final_checkpoint: false,
                ..CheckpointOptions::default()
            };
            Planner::new(model, length, age, &options).map(|made| made.schedule().makespan)
        }
    };
    // A model without an answer (no server lives for a step and a checkpoint) says: never.
    made.map_or(f64::INFINITY, |hours| hours * 3_600_000.0)
}
