//! The losses of other checkpoint intervals on the same instances.

use crate::{InstanceWork, Span};

/// Result of a checkpoint interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IntervalResult {
    /// Work that was done and has to be done again.
    pub lost: Span,
    /// Checkpoints that were completed.
    pub checkpoints: u64,
    /// Time spent on writing them.
    pub saving: Span,
    /// The work that the job has at the end of the last life: the starting point of a new instance
    /// if that life was interrupted.
    pub done: Span,
}

/// The result of checkpoints after every `interval` of work that take `cost` each and ignore
/// notices, on instances with these lives. `None` for no checkpoints at all. After an interruption
/// the interval starts again. Restoring takes as long as it took in the lives.
#[must_use]
pub fn outcome(lives: &[InstanceWork], interval: Option<Span>, cost: Span) -> IntervalResult {
    let mut sum = IntervalResult::default();
    let mut saved = Span::ZERO;
    for life in lives {
        let mut left = life.lasted.minus(life.restoring);
        let mut work = saved;
        if let Some(interval) = interval.filter(|interval| interval.plus(cost) > Span::ZERO) {
            let each = interval.plus(cost);
            let complete = left.0 / each.0;
            let times = |span: Span| Span(span.0.saturating_mul(complete));
            left = left.minus(times(each));
            work = work.plus(times(interval));
            saved = work;
            sum.checkpoints = sum.checkpoints.saturating_add(complete);
            sum.saving = sum.saving.plus(times(cost));
        }
        // A checkpoint in progress at the end of the instance saves nothing.
        work = work.plus(interval.map_or(left, |interval| left.min(interval)));
        if life.interrupted() {
            sum.lost = sum.lost.plus(work.minus(saved));
            sum.done = saved;
        } else {
            sum.done = work;
            saved = work;
        }
    }
    sum
}
