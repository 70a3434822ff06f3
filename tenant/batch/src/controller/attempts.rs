//! What became of attempts: Slurm's view, the marks, notices.

use super::world::attempt_of;
use super::{AGAIN_MS, AttemptResult, job_name};
use super::{BatchAction, BatchController, BatchDecisions, BatchWorld, Mark, UNSEEN_MS, WAITS_MS};
use crate::book::{Attempt, AttemptEnd, Fact, LengthEstimate, WorkId};
use crate::error::BatchError;
use crate::settings::millis;
use crate::work::MemberId;
use ebbtide_burst::Status;
use ebbtide_burst::slurm::{JobState, SlurmJob};

/// The exit code of a script that has saved its work and made room: EX_TEMPFAIL of `sysexits.h`.
pub const PUT_BACK: i32 = 75;

impl BatchController {
    /// Follows every attempt that has not ended, and ends jobs that nothing needs any more.
    pub(super) fn follow(&mut self, now: i64, world: &BatchWorld<'_>, made: &mut BatchDecisions) {
        let open: Vec<(WorkId, MemberId, Attempt)> = self
            .book
            .works
            .iter()
            .flat_map(|(id, book)| {
                let running = book.running();
                running.map(move |(member, attempt)| (*id, member, attempt.clone()))
            })
            .collect();
        for (work, member, attempt) in open {
            self.follow_one(now, world, work, member, &attempt, made);
        }
        self.stop_strays(now, world, made);
    }

    fn follow_one(
        &mut self,
        now: i64,
        world: &BatchWorld<'_>,
        work: WorkId,
        member: MemberId,
        attempt: &Attempt,
        made: &mut BatchDecisions,
    ) {
        let job = world.job(&job_name(work, member, attempt.number));
        let mark = (world.mark)(work, member);
        if let Some(job) = job
            && attempt.running.is_none()
            && job.start_ms > 0
            && (job.state == JobState::Running
                || job.is_over()
                || job.state == JobState::Completing)
            && !job.nodes.is_empty()
        {
            let fact = Fact::Running {
                stage: member.stage,
                index: member.index,
                attempt: attempt.number,
                since: job.start_ms,
            };
            self.note(now, work, fact, made);
        }
        let Some(how) = self.end_of(now, world, work, member, attempt, job, mark) else {
            let book = self.book.works.get(&work);
            // The executor of a bag by maps says what is ended.
            let ours = book.is_some_and(|book| book.bag.is_none());
            if ours && !self.tend_bid(now, world, (work, member), attempt, job, made) {
                self.tend(now, world, work, member, attempt, job, made);
            }
            return;
        };
        let bag = self
            .book
            .works
            .get(&work)
            .is_some_and(|book| book.bag.is_some());
        let how = match how {
            // Another attempt was faster: a copy on a backup, whose mark is not seen yet.
            AttemptEnd::Failed { exit: 0 } if bag => AttemptEnd::Lost,
            how => how,
        };
        self.bid_points.remove(&(work, member, attempt.number));
        let left = (world.result)(work, member, attempt.number);
        let over = job.filter(|job| job.is_over() && job.end_ms > 0);
        let fact = Fact::Ended {
            stage: member.stage,
            index: member.index,
            attempt: attempt.number,
            end: over.map_or(now, |job| job.end_ms.max(job.start_ms)),
            how,
            saved: left.saved,
        };
        self.note(now, work, fact, made);
        self.report_end(work, member, attempt, how, job, made);
    }

    /// How an attempt ended; `None` if it has not.
    #[expect(clippy::too_many_arguments, reason = "what is known of one attempt")]
    fn end_of(
        &self,
        now: i64,
        world: &BatchWorld<'_>,
        work: WorkId,
        member: MemberId,
        attempt: &Attempt,
        job: Option<&SlurmJob>,
        mark: Mark,
    ) -> Option<AttemptEnd> {
        let is_over = job.is_none_or(SlurmJob::is_over);
        match mark {
            Mark::DoneBy(number) if number == attempt.number => {
                // The job may still be cleaned up; the member is done.
                return Some(AttemptEnd::Done);
            }
            Mark::DoneBy(_) if is_over => return Some(AttemptEnd::Stopped),
            Mark::Unknown => return None,
            Mark::DoneBy(_) | Mark::None => {}
        }
        let Some(job) = job else {
            // Slurm forgets jobs some minutes after their end, and shows new ones at once.
            if now - attempt.started < UNSEEN_MS {
                return None;
            }
            let left = (world.result)(work, member, attempt.number);
            let never = attempt.running.is_none() && left.exit.is_none();
            return Some(if never {
                AttemptEnd::NeverStarted
            } else {
                ended(left)
            });
        };
        if !job.is_over() {
            return None;
        }
        let book = self.book.works.get(&work)?;
        if book.cancelled || job.state_word == "CANCELLED" {
            return Some(AttemptEnd::Stopped);
        }
        let never = job.start_ms == 0 || job.nodes.is_empty();
        let left = (world.result)(work, member, attempt.number);
        if never && left.exit.is_none() {
            return Some(AttemptEnd::NeverStarted);
        }
        Some(ended(left))
    }

    fn report_end(
        &mut self,
        work: WorkId,
        member: MemberId,
        attempt: &Attempt,
        how: AttemptEnd,
        job: Option<&SlurmJob>,
        made: &mut BatchDecisions,
    ) {
        let Some(book) = self.book.works.get(&work) else {
            return;
        };
        let name = book.work.member_name(member);
        match how {
            AttemptEnd::NeverStarted => {
                let problem = job.map_or_else(
                    || "Slurm does not know of it".to_owned(),
                    |job| format!("{}, {}", job.state_word, job.reason),
                );
                made.problems.push(BatchError::NotStarted {
                    member: name,
                    node: attempt.node.clone(),
                    problem,
                });
            }
            AttemptEnd::Failed { exit } if book.given_up(member) => {
                let error = BatchError::Failed {
                    id: work.to_string(),
                    member: name,
                    exit,
                    attempts: book.member(member).attempts.len() as u32,
                };
                self.report(work, Some(member), error, made);
            }
            _ => {}
        }
    }

    /// Looks after an attempt that has not ended: copies that came too late, notices, moves, jobs
    /// that wait in vain.
    #[expect(clippy::too_many_arguments, reason = "what is known of one attempt")]
    fn tend(
        &mut self,
        now: i64,
        world: &BatchWorld<'_>,
        work: WorkId,
        member: MemberId,
        attempt: &Attempt,
        job: Option<&SlurmJob>,
        made: &mut BatchDecisions,
    ) {
        let (Some(job), Some(book)) = (job, self.book.works.get(&work)) else {
            return;
        };
        let id = job.id;
        let over_budget = book.state(now) == crate::book::WorkState::OverBudget;
        let saves = book.work.stage(member).checkpoint.is_some();
        if book.cancelled || book.member(member).done {
            self.send_once(now, BatchAction::Stop { job: id }, made);
            return;
        }
        let waits = now - attempt.started > WAITS_MS;
        if job.state == JobState::Pending && (waits || !self.will_take(world, &attempt.node)) {
            // Its node leaves, or Slurm holds it: it gets another one.
            self.send_once(now, BatchAction::Stop { job: id }, made);
            return;
        }
        if over_budget || world.burst.budget_used_up {
            let save = saves && job.state == JobState::Running;
            let action = if save {
                BatchAction::Save { job: id }
            } else {
                BatchAction::Stop { job: id }
            };
            self.send_once(now, action, made);
            return;
        }
        let estimate = self.length(book, member.stage);
        let ran = job_ran(now, job);
        let left = estimate.after(attempt.from + ran);
        let server = world.burst.instance(&attempt.node);
        let leaving = server.filter(|one| one.status == Status::Leaving);
        if let Some(leaving) = leaving {
            let runs = job.state == JobState::Running;
            // Until the end is known, a member that cannot be saved may still be done in time.
            let until = leaving.deadline_ms;
            let in_time = until.is_some_and(|until| now + left.expected < until);
            let late = until.is_some_and(|until| now + left.expected >= until);
            if saves && runs && !in_time {
                self.send_once(now, BatchAction::Save { job: id }, made);
            } else if !saves && late {
                // It would be lost with its server: it begins again elsewhere at once, and the
                // server is given back early.
                self.send_once(now, BatchAction::Stop { job: id }, made);
            }
            return;
        }
        if !saves || job.state != JobState::Running {
            return;
        }
        if let Some(moves) = self.moves(work, attempt, left) {
            if moves {
                self.send_once(now, BatchAction::Save { job: id }, made);
            }
            return;
        }
        // A member that can be saved moves to an on-demand server, if there is one for it, as soon
        // as what is not saved would not fit there any more.
        if attempt.preemptible {
            let done_soon = left.safe <= millis(self.settings.policy.checkpoint_seconds);
            let slots = self.on_demand_slots(book.work.stage(member));
            let there = book.running().filter(|(_, one)| !one.preemptible);
            if !done_soon && there.count() < slots && self.pressed(now, book) {
                self.send_once(now, BatchAction::Save { job: id }, made);
            }
        }
    }

    /// Whether a node takes members, or is about to.
    fn will_take(&self, world: &BatchWorld<'_>, node: &str) -> bool {
        let active = world
            .burst
            .instance(node)
            .is_some_and(|one| one.status == Status::Active);
        let stays = self.managers.iter().all(|manager| manager.is_staying(node));
        active && stays
    }

    /// Ends jobs of attempts that are over: a copy whose member is done elsewhere, one that Slurm
    /// took after we had given it up.
    fn stop_strays(&mut self, now: i64, world: &BatchWorld<'_>, made: &mut BatchDecisions) {
        for job in world.burst.jobs.iter().filter(|job| !job.is_over()) {
            let Some((work, member, number)) = attempt_of(&job.name) else {
                continue;
            };
            let Some(book) = self.book.works.get(&work) else {
                continue;
            };
            let known = book
                .members
                .get(member.stage)
                .and_then(|stage| stage.get(member.index));
            let Some(known) = known else { continue };
            let open = known.open().any(|one| one.number == number);
            // The script of an attempt that is done ends by itself.
            let mut attempts = known.attempts.iter();
            let ends = attempts.any(|one| {
                let done = |(end, how)| how == AttemptEnd::Done && now - end < AGAIN_MS;
                one.number == number && one.end.is_some_and(done)
            });
            let completing = job.state == JobState::Completing;
            if !open && !ends && !completing {
                self.send_once(now, BatchAction::Stop { job: job.id }, made);
            }
        }
    }

    /// How long a member of a stage works.
    pub(super) fn length(&self, book: &crate::book::WorkBook, stage: usize) -> LengthEstimate {
        let policy = &self.settings.policy;
        let unknown = millis(policy.length_seconds);
        LengthEstimate::of(book, stage, unknown, policy.length_reserve)
    }
}

fn ended(left: AttemptResult) -> AttemptEnd {
    match left.exit {
        None => AttemptEnd::Lost,
        Some(PUT_BACK) => AttemptEnd::PutBack,
        // Its mark would have been there: the disk took none.
        Some(0) => AttemptEnd::Failed { exit: 0 },
        Some(exit) => AttemptEnd::Failed { exit },
    }
}

pub(super) fn job_ran(now: i64, job: &SlurmJob) -> i64 {
    if job.start_ms > 0 && job.runs() {
        (now - job.start_ms).max(0)
    } else {
        0
    }
}
