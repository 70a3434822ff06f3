//! How budgets of works are kept: a member is started only if what it is expected to cost is still
//! there, beside what those that run are expected to cost.

use super::BatchController;
use crate::book::{HOUR_MS, WorkBook};
use crate::placement::{Need, TypeView, share};

impl BatchController {
    /// What may still be promised of a work's budget, millionths; `None` without a budget.
    pub(super) fn unpromised(&self, now: i64, book: &WorkBook) -> Option<f64> {
        let budget = book.budget? as f64;
        let promised = book.running().map(|(id, attempt)| {
            let length = self.length(book, id.stage);
            let left = length.after(attempt.from + attempt.ran(now)).expected;
            left as f64 / HOUR_MS * attempt.hourly as f64 * attempt.share
        });
        Some(budget - book.spent(now) as f64 - promised.sum::<f64>())
    }

    /// The least that a member is expected to cost, millionths.
    pub(super) fn least_cost(&self, need: &Need, views: &[TypeView]) -> f64 {
        let types = self.types.iter().zip(views);
        let fits = types.filter(|(ty, _)| {
            let room = ty.vcpus >= need.cpus && ty.memory_mb >= need.memory_mb;
            room && !(need.on_demand && ty.preemptible)
        });
        let each = fits.map(|(ty, view)| {
            need.left.expected as f64 / HOUR_MS
                * view.hourly as f64
                * share(ty, need.cpus, need.memory_mb)
        });
        each.min_by(f64::total_cmp).unwrap_or(0.0)
    }
}
