//! When to save without a notice.

use crate::Span;
use ebbtide_lifetime::Lifetime;
use ebbtide_lifetime::plan::checkpoint::{CheckpointOptions, Planner, young_daly_interval};
use std::sync::Arc;

/// Maximum number of steps into which a plan divides the remaining work. Intervals are then precise
/// to about 1 % of it, and a plan takes milliseconds, which matters because plans are made often.
const STEPS: f64 = 120.0;

/// When to save without a notice.
#[derive(Debug, Clone)]
pub enum CheckpointSchedule {
    /// After this much work, always.
    Every(Span),
    /// By the schedule of least expected time for instances with this lifetime model (Kadupitiya et
    /// al., HPDC 2020, equations 9 to 13, corrected reading). The job makes a new plan for the
    /// remaining work, the age and the measured cost whenever it continues and after each
    /// checkpoint.
    Model(Arc<dyn Lifetime>),
    /// Never: the job saves only on a notice.
    Never,
}

impl CheckpointSchedule {
    /// The work until the next checkpoint, with `left` of work remaining on an instance of this
    /// age, if a checkpoint takes `cost` and a restart on another instance takes `restart`. `None`
    /// for no checkpoint before the end.
    #[must_use]
    pub fn interval(
        &self,
        left: Option<Span>,
        age: Span,
        cost: Span,
        restart: Span,
    ) -> Option<Span> {
        match self {
            Self::Never => None,
            Self::Every(interval) => Some(*interval),
            Self::Model(model) => {
                let left = left.map_or_else(
                    // A job of unknown length is planned as if it needed two instances.
                    || (2.0 * model.mean()).min(1e6),
                    Span::hours,
                );
                Some(planned(model.as_ref(), left, age.hours(), cost, restart))
            }
        }
    }
}

fn planned(model: &dyn Lifetime, left: f64, age: f64, cost: Span, restart: Span) -> Span {
    // A checkpoint that takes no time would be written continuously.
    let cost = cost.hours().max(1.0 / 3_600_000.0);
    let step = (left / STEPS).max(cost);
    let options = CheckpointOptions {
        step,
        cost,
        restart: restart.hours(),
        // The job saves its result at its end by itself.
        final_checkpoint: false,
        ..CheckpointOptions::default()
    };
    // The model does not cover an instance beyond its maximum lifetime: the plan treats it as new.
    let age = if model.survival(age) > 0.0 && age < model.maximum() - step {
        age
    } else {
        0.0
    };
    let first = |intervals: Vec<f64>| intervals.first().copied();
    let planned = Planner::new(model, left, age, &options).ok();
    let interval = planned
        .and_then(|planner| first(planner.schedule().intervals))
        // No instance lives for a step and a checkpoint, or the model has no plan: Young's rule
        // needs only a mean.
        .or_else(|| {
            let interval = young_daly_interval(options.cost, model.mean()).ok();
            interval.map(|interval| interval.min(left))
        })
        .unwrap_or(left);
    Span(Span::from_hours(interval).0.max(1))
}
