//! What works cost, and how their budgets are kept: a member is started only if what it is expected
//! to cost is still there, beside what those that run are expected to cost.

use super::{BatchController, BatchDecisions, BatchWorld};
use crate::book::{Fact, HOUR_MS, WorkBook, WorkId, WorkState};
use crate::error::BatchError;
use crate::placement::{Need, TypeView, share};
use ebbtide_model::Money;

impl BatchController {
    /// Notes for attempts whose server has begun an hour at another price.
    pub(super) fn note_prices(
        &mut self,
        now: i64,
        world: &BatchWorld<'_>,
        made: &mut BatchDecisions,
    ) {
        let mut facts = Vec::new();
        for (work, book) in &self.book.works {
            for (member, attempt) in book.running() {
                let paid = (world.paid)(&attempt.node);
                let other = paid.filter(|(_, hourly)| *hourly != attempt.hourly_now());
                let fact = other.map(|(since, hourly)| Fact::Price {
                    stage: member.stage,
                    index: member.index,
                    attempt: attempt.number,
                    since,
                    hourly,
                });
                facts.extend(fact.map(|fact| (*work, fact)));
            }
        }
        for (work, fact) in facts {
            self.note(now, work, fact, made);
        }
    }

    /// Says once that the budget of a work is used up.
    pub(super) fn report_budget(
        &mut self,
        work: WorkId,
        spent: u64,
        budget: u64,
        made: &mut BatchDecisions,
    ) {
        let error = BatchError::Budget {
            id: work.to_string(),
            spent: Money::from_micros(spent).to_string(),
            budget: Money::from_micros(budget).to_string(),
        };
        self.report(work, None, error, made);
    }

    /// Whether a bag by maps may start no task: its budget is used up, or was too small for a task
    /// that was to start. Until the budget is raised that stays so, for servers that are given back
    /// and wanted again would cost their boots.
    pub(super) fn is_bag_broke(&self, now: i64, work: WorkId) -> bool {
        let book = self.book.works.get(&work);
        let used_up = book.is_some_and(|book| book.state(now) == WorkState::OverBudget);
        used_up || self.bags.broke.contains(&work)
    }

    /// What may still be promised of a work's budget, millionths; `None` without a budget.
    pub(super) fn unpromised(&self, now: i64, book: &WorkBook) -> Option<f64> {
        let budget = book.budget? as f64;
        let promised = book.running().map(|(id, attempt)| {
            let done = attempt.from + attempt.ran(now);
            let left = match &book.bag {
                Some(bag) => (bag.work.length_ms(id.index) - done).max(0),
                None => self.length(book, id.stage).after(done).expected,
            };
            left as f64 / HOUR_MS * attempt.hourly_now() as f64 * attempt.share
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
