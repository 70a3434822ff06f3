//! Works of one member that can be saved: the policies of [`ebbtide_deadline`] decide between a
//! preemptible server, an on-demand one, and waiting.

use super::bid::hourly;
use super::{BatchController, BatchWorld};
use crate::book::{Attempt, LengthEstimate, WorkBook, WorkId, WorkState};
use crate::placement::TypeView;
use crate::settings::millis;
use crate::work::{MemberId, Stage};
use ebbtide_burst::Status;
use ebbtide_deadline::{
    DeadlineJob, Decider, Decision, History, HourPrices, JobFacts, JobServer, JobTerms, PolicyKind,
};
use ebbtide_model::Money;

/// So many works have a decider at most, because a plan takes some 20 MB; others follow the rule of
/// all works.
const MOST_DECIDERS: usize = 16;

/// The only member of such a work.
pub(super) const ONLY: MemberId = MemberId { stage: 0, index: 0 };

impl BatchController {
    /// Decides for each such work that is active.
    pub(super) fn decide_single(&mut self, now: i64, world: &BatchWorld<'_>, views: &[TypeView]) {
        self.decisions.clear();
        let Some(kind) = self.settings.policy.single.policy() else {
            return;
        };
        let works: Vec<WorkId> = self.book.works.keys().copied().collect();
        for id in works {
            let Some(book) = self.book.works.get(&id) else {
                continue;
            };
            if book.state(now) != WorkState::Active {
                self.deciders.remove(&id);
                continue;
            }
            let (Some(stage), Some(deadline)) = (only_stage(book), book.work.deadline) else {
                continue;
            };
            let Some(facts) = self.facts(now, world, id, book, stage) else {
                continue;
            };
            if !self.deciders.contains_key(&id) && self.deciders.len() < MOST_DECIDERS {
                let made = self.decider(book, stage, deadline, views, kind);
                self.deciders.extend(made.map(|decider| (id, decider)));
            }
            if let Some(decider) = self.deciders.get_mut(&id) {
                self.decisions.insert(id, decider.decide(&facts));
            }
        }
    }

    /// A decider; `None` if the work is not for one: its length is not known, one of the two kinds
    /// of servers is missing, or the deadline is too near for more than the rule of other works.
    fn decider(
        &self,
        book: &WorkBook,
        stage: &Stage,
        deadline: u64,
        views: &[TypeView],
        kind: PolicyKind,
    ) -> Option<Decider> {
        stage.length?;
        let price = |preemptible: bool| {
            let types = self.types.iter().zip(views);
            let fits = types.filter(|(ty, _)| {
                ty.preemptible == preemptible
                    && ty.vcpus >= stage.cpus
                    && ty.memory_mb >= stage.memory_mb
            });
            fits.map(|(_, view)| view.hourly).min()
        };
        let (spot, on_demand) = (price(true)?, price(false)?);
        let poll = seconds(millis(self.settings.poll_seconds)) + 1;
        let terms = JobTerms {
            work: seconds(self.length(book, 0).safe),
            deadline,
            changeover: seconds(self.changeover()),
            poll,
            loss_lag: poll,
            prices: HourPrices {
                spot: Money::from_micros(spot.min(on_demand)),
                on_demand: Money::from_micros(on_demand),
            },
        };
        Decider::new(DeadlineJob::new(terms).ok()?, kind, &History::default()).ok()
    }

    /// From the request of a server until the member makes progress on it, milliseconds.
    fn changeover(&self) -> i64 {
        let policy = &self.settings.policy;
        let boot = self.boots.iter().copied().max().unwrap_or(0);
        boot + millis(policy.margin_seconds) + millis(policy.checkpoint_seconds)
    }

    /// What is known now; `None` while the member saves its work before its server goes.
    fn facts(
        &self,
        now: i64,
        world: &BatchWorld<'_>,
        id: WorkId,
        book: &WorkBook,
        stage: &Stage,
    ) -> Option<JobFacts> {
        let member = book.member(ONLY);
        let open = member.open().last();
        let (held, done) = match open {
            None => (JobServer::Nothing, member.saved),
            Some(attempt) => self.held(now, world, id, attempt, member.saved)?,
        };
        let bid = book.work.max_price;
        let mut types = self.types.iter().zip(&self.managers);
        let could = types.any(|(ty, manager)| {
            ty.preemptible
                && ty.vcpus >= stage.cpus
                && ty.memory_mb >= stage.memory_mb
                && manager.may_launch(now)
                && bid.is_none_or(|bid| hourly(ty, world) <= bid.micros())
        });
        Some(JobFacts {
            now: seconds(now - book.submitted),
            done: seconds(done.max(0)),
            held,
            spot_available: could || matches!(held, JobServer::Spot { .. }),
        })
    }

    /// The server of an attempt, and work that need not be done again, milliseconds.
    fn held(
        &self,
        now: i64,
        world: &BatchWorld<'_>,
        id: WorkId,
        attempt: &Attempt,
        saved: i64,
    ) -> Option<(JobServer, i64)> {
        let server = world.burst.instance(&attempt.node)?;
        if server.status == Status::Leaving {
            return None;
        }
        let starting = if attempt.running.is_some() {
            0
        } else {
            seconds(self.changeover())
        };
        if attempt.preemptible {
            // What is not saved goes with the server.
            let left = (world.result)(id, ONLY, attempt.number);
            return Some((JobServer::Spot { starting }, saved.max(left.saved)));
        }
        Some((
            JobServer::OnDemand { starting },
            attempt.from + attempt.ran(now),
        ))
    }
}

/// The stage of a work of one member that can be saved.
fn only_stage(book: &WorkBook) -> Option<&Stage> {
    match book.work.stages.as_slice() {
        [stage] if stage.members.len() == 1 && stage.checkpoint.is_some() => Some(stage),
        _ => None,
    }
}

/// Whole seconds, rounded up.
fn seconds(ms: i64) -> u64 {
    u64::try_from((ms.max(0) + 999) / 1_000).unwrap_or(0)
}

impl BatchController {
    /// Whether an attempt is to save its work and go on elsewhere, by the decision on its work;
    /// `None` if there is none.
    pub(super) fn moves(
        &self,
        work: WorkId,
        attempt: &Attempt,
        left: LengthEstimate,
    ) -> Option<bool> {
        let decision = self.decisions.get(&work)?;
        let done_soon = left.safe <= self.changeover();
        Some(match decision {
            Decision::OnDemand => attempt.preemptible && !done_soon,
            // Back again, once a preemptible server is there for it.
            Decision::Spot => !attempt.preemptible && !done_soon && self.has_idle_preemptible(),
            Decision::Wait => false,
        })
    }

    fn has_idle_preemptible(&self) -> bool {
        let mut types = self.types.iter().zip(&self.managers);
        types.any(|(ty, manager)| {
            let idle = |node: &String| manager.takes_jobs(node) && self.idle.contains_key(node);
            ty.preemptible && ty.nodes.iter().any(idle)
        })
    }
}
