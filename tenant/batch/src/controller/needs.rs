//! Which members need a server, in which order, and which of them need an on-demand one.

use super::single::ONLY;
use super::{BatchController, BatchDecisions, BatchWorld, Mark};
use crate::book::{WorkBook, WorkId, WorkState};
use crate::placement::{Need, TypeView};
use crate::work::MemberId;
use ebbtide_deadline::Decision;
use ebbtide_model::Money;

impl BatchController {
    pub(super) fn needs(
        &mut self,
        now: i64,
        world: &BatchWorld<'_>,
        views: &[TypeView],
        made: &mut BatchDecisions,
    ) -> Vec<Need> {
        let mut all = Vec::new();
        let mut spent = Vec::new();
        self.unaffordable.clear();
        let works = self.book.works.iter();
        for (work, book) in works.filter(|(_, book)| book.bag.is_none()) {
            match book.state(now) {
                WorkState::Active => {
                    let mut needs = self.needs_of(now, *work, book, world);
                    let asked = needs.len();
                    if let Some(mut left) = self.unpromised(now, book) {
                        needs.retain(|need| {
                            left -= self.least_cost(need, views);
                            left >= 0.0
                        });
                    }
                    if needs.is_empty() && asked > 0 && book.running().next().is_none() {
                        self.unaffordable.insert(*work);
                        spent.push((*work, book.spent(now), book.budget.unwrap_or(0)));
                    }
                    all.extend(needs);
                }
                WorkState::OverBudget => {
                    spent.push((*work, book.spent(now), book.budget.unwrap_or(0)));
                }
                WorkState::Done | WorkState::Failed | WorkState::Cancelled => {}
            }
        }
        for (work, spent, budget) in spent {
            self.report_budget(work, spent, budget, made);
        }
        // The least slack first; without a deadline in the order in which work was handed in.
        all.sort_by_key(|need| {
            let slack = need
                .deadline
                .map_or(i64::MAX, |end| end - now - need.left.safe);
            (slack, need.work, need.member)
        });
        all
    }

    fn needs_of(
        &self,
        now: i64,
        work: WorkId,
        book: &WorkBook,
        world: &BatchWorld<'_>,
    ) -> Vec<Need> {
        if let Some(decision) = self.decisions.get(&work) {
            return self.decided(now, work, book, world, *decision);
        }
        let pressed = self.pressed(now, book);
        let mut all = Vec::new();
        for stage in 0..book.work.stages.len() {
            let slots = self.on_demand_slots(&book.work.stages[stage]);
            let running = book
                .running()
                .filter(|(id, one)| id.stage == stage && !one.preemptible);
            let mut free = slots.saturating_sub(running.count());
            let mut on_demand = |need: &mut Need| {
                if pressed && free > 0 {
                    free -= 1;
                    need.on_demand = true;
                }
            };
            let ready = book.ready().filter(|id| id.stage == stage);
            for member in ready.filter(|id| (world.mark)(work, *id) == Mark::None) {
                let mut need = self.need(now, work, book, member);
                on_demand(&mut need);
                all.push(need);
            }
            // Copies of members that a server may take with it.
            for (member, attempt) in book.running().filter(|(id, _)| id.stage == stage) {
                let alone = book.member(member).open().count() == 1;
                let saves = book.work.stage(member).checkpoint.is_some();
                if alone && !saves && attempt.preemptible {
                    let mut need = self.need(now, work, book, member);
                    need.on_demand = false;
                    on_demand(&mut need);
                    all.extend(Some(need).filter(|need| need.on_demand));
                }
            }
        }
        all
    }

    /// What a work of one member needs by the decision on it.
    fn decided(
        &self,
        now: i64,
        work: WorkId,
        book: &WorkBook,
        world: &BatchWorld<'_>,
        decision: Decision,
    ) -> Vec<Need> {
        if (world.mark)(work, ONLY) != Mark::None {
            return Vec::new();
        }
        let mut need = self.need(now, work, book, ONLY);
        match (book.member(ONLY).open().last(), decision) {
            (None, Decision::Wait) => return Vec::new(),
            (None, Decision::Spot) => need.on_demand = false,
            (None, Decision::OnDemand) => need.on_demand = true,
            // The server to which it goes back.
            (Some(attempt), Decision::Spot) if !attempt.preemptible => {
                (need.on_demand, need.only_ask) = (false, true);
            }
            (Some(_), _) => return Vec::new(),
        }
        vec![need]
    }

    fn need(&self, now: i64, work: WorkId, book: &WorkBook, member: MemberId) -> Need {
        let stage = book.work.stage(member);
        let state = book.member(member);
        let waits = state.ready_since.map_or(0, |since| now - since);
        let limit = book
            .work
            .max_wait
            .map(|seconds| seconds.saturating_mul(1_000));
        Need {
            work,
            member,
            cpus: stage.cpus,
            memory_mb: stage.memory_mb,
            left: self.length(book, member.stage).after(state.saved),
            from: state.saved,
            checkpoint: stage.checkpoint.as_ref().map(|one| one.cost_ms()),
            deadline: book.deadline(),
            max_price: book.work.max_price.map(Money::micros),
            only_ask: false,
            on_demand: limit.is_some_and(|limit| u64::try_from(waits).unwrap_or(0) >= limit),
        }
    }
}
