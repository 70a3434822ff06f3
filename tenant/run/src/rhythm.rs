//! When to save as long as nothing happens.

use crate::Span;
use ebbtide_lifetime::Lifetime;
use ebbtide_lifetime::plan::checkpoint::{Options, Planner, young_daly_interval};
use std::sync::Arc;

/// Into how many steps the work that is left is divided for a plan at most: intervals are right to a per cent of it, and the plan is made within
/// milliseconds, since it is made anew so often.
const STEPS: f64 = 120.0;

/// When to save as long as nothing happens.
#[derive(Debug, Clone)]
pub enum Rhythm {
    /// After so much work, always.
    Every(Span),
    /// By the schedule of least expected time for instances that live like this (Kadupitiya et al., HPDC 2020, equations 9 to 13,
    /// corrected reading), made anew for the work that is left, the age and the measured cost, whenever the job goes on and after each checkpoint.
    Model(Arc<dyn Lifetime>),
    /// Never: only a notice saves work.
    Never,
}

impl Rhythm {
    /// The work until the next checkpoint, with `left` of work to do on an instance of this age, if a checkpoint takes `cost` and going on
    /// elsewhere `restart`. `None` for no checkpoint before the end.
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
                    // Of a job of unknown length: as if it would need two instances.
                    || (2.0 * model.mean()).min(1e6),
                    Span::hours,
                );
                Some(planned(model.as_ref(), left, age.hours(), cost, restart))
            }
        }
    }
}

fn planned(model: &dyn Lifetime, left: f64, age: f64, cost: Span, restart: Span) -> Span {
    // A checkpoint that takes no time would be written all the time.
    let cost = cost.hours().max(1.0 / 3_600_000.0);
    let step = (left / STEPS).max(cost);
    let options = Options {
        step,
        cost,
        restart: restart.hours(),
        // The end of the job saves its result by itself.
        final_checkpoint: false,
        ..Options::default()
    };
    // An instance beyond its maximum lifetime is one that the model does not know: as if it were new.
    let age = if model.survival(age) > 0.0 && age < model.maximum() - step {
        age
    } else {
        0.0
    };
    let first = |intervals: Vec<f64>| intervals.first().copied();
    let planned = Planner::new(model, left, age, &options).ok();
    let interval = planned
        .and_then(|planner| first(planner.schedule().intervals))
        // No instance lives for a step and a checkpoint, or the model has no plan: Young's rule needs a mean only.
        .or_else(|| {
            let interval = young_daly_interval(options.cost, model.mean()).ok();
            interval.map(|interval| interval.min(left))
        })
        .unwrap_or(left);
    Span(Span::from_hours(interval).0.max(1))
}
