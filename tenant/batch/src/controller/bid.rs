//! Works with a bid (`max_price`): the checkpoint scheme ACC, live.
//!
//! Near the end of each paid hour of its server a member looks at the price twice: at t_cd it saves
//! its work and goes on if the price is above the bid, at t_td it is let go if the price is still
//! above and that checkpoint is complete. What is decided at the two points is
//! [`ebbtide_checkpointing::decide`], by which the simulator decides too. A server that no other
//! member needs is given back before its hour ends; the member waits until the price is within the
//! bid.
//!
//! - A member that cannot be saved is never let go: its work would be lost, which is the paper's
//!   "still above" strictly read. What bounds the price of its server is the type's `max_price`.
//! - A price that the cloud does not say lets no member go. A member saves its work at t_cd all the
//!   same, which costs little.

use super::attempts::job_ran;
use super::{BatchAction, BatchController, BatchDecisions, BatchWorld};
use crate::book::{Attempt, BidDecision, Book, Fact, WorkId, WorkState};
use crate::settings::{ServerType, millis};
use crate::work::{MemberId, Stage};
use ebbtide_burst::slurm::{JobState, SlurmJob};
use ebbtide_burst::{PoolServer, Status};
use ebbtide_checkpointing::{AccReading, DecisionPoint, EventKind, PaidHours, decide};
use ebbtide_model::Money;
use std::collections::BTreeMap;

/// A script that has just begun does not know the signal to save yet.
const YOUNG_MS: i64 = 2_000;

/// What is known of an attempt at a decision point.
struct AtPoint {
    point: DecisionPoint,
    /// When it was.
    at: i64,
    /// What an hour costs; `None` if the cloud has not said so since.
    price: Option<Money>,
    bid: Money,
    /// The member can be saved.
    saves: bool,
    /// The member runs.
    runs: bool,
}

impl BatchController {
    /// Whether a decision point was passed since prices were asked for at `asked`: the price counts
    /// that the cloud says afterwards.
    #[must_use]
    pub fn wants_prices(&self, now: i64, asked: i64, servers: &[PoolServer]) -> bool {
        self.book.works.values().any(|book| {
            let bids = book.work.max_price.is_some() && !book.state(now).is_over();
            let mut open = book.running().filter(|(_, one)| bids && one.preemptible);
            open.any(|(member, attempt)| {
                let mut servers = servers.iter();
                let server = servers.find(|one| one.node == attempt.node && is_up(one));
                let launched = server.and_then(|one| one.launched_ms);
                let hours = self.paid_hours(book.work.stage(member));
                let passed = launched.and_then(|launched| hours.passed(launched, now));
                passed.is_some_and(|(_, at)| at > asked)
            })
        })
    }

    /// Looks at the price for an attempt whose work has a bid. Whether the attempt is let go: then
    /// nothing else is done about it.
    pub(super) fn tend_bid(
        &mut self,
        now: i64,
        world: &BatchWorld<'_>,
        (work, member): (WorkId, MemberId),
        attempt: &Attempt,
        job: Option<&SlurmJob>,
        made: &mut BatchDecisions,
    ) -> bool {
        let Some(job) = job else { return false };
        let Some(seen) = self.at_point(now, world, (work, member), attempt, job) else {
            return false;
        };
        if attempt.let_go().is_some() {
            self.let_go_now(now, &seen, job, made);
            return true;
        }
        let key = (work, member, attempt.number);
        let left = (world.result)(work, member, attempt.number).checkpoint;
        let t_cd = match seen.point {
            DecisionPoint::Checkpoint => seen.at,
            DecisionPoint::Terminate => seen.at - self.t_c(work, member),
        };
        // The checkpoint of this hour, if one was asked for, and whether it is complete.
        let asked = attempt.bid.last().filter(|look| look.at >= t_cd);
        let saved = asked.is_some_and(|look| left > look.checkpoint);
        if seen.point == DecisionPoint::Checkpoint && asked.is_some() {
            if !saved {
                self.send_once(now, BatchAction::Checkpoint { job: job.id }, made);
            }
            return false;
        }
        let handled = self.bid_points.get(&key).is_some_and(|at| *at >= seen.at);
        let young = seen.runs && job_ran(now, job) < YOUNG_MS;
        if handled || (young && seen.point == DecisionPoint::Checkpoint) {
            return false;
        }
        let safe = saved || !seen.runs;
        let decided = match (seen.price, seen.point) {
            (Some(price), point) => decide(point, price, seen.bid, safe, AccReading::Strict),
            (None, DecisionPoint::Checkpoint) => (!safe).then_some(EventKind::Checkpoint),
            // The cloud is asked again at the next look.
            (None, DecisionPoint::Terminate) => return false,
        };
        self.bid_points.insert(key, seen.at);
        let decision = match decided {
            Some(EventKind::Checkpoint) if seen.saves => BidDecision::Checkpoint,
            Some(EventKind::Terminate) => BidDecision::LetGo,
            _ => return false,
        };
        let fact = Fact::Bid {
            stage: member.stage,
            index: member.index,
            attempt: attempt.number,
            decision,
            price: seen.price.map(Money::micros),
            checkpoint: left,
        };
        self.note(now, work, fact, made);
        match decision {
            BidDecision::Checkpoint => {
                self.send_once(now, BatchAction::Checkpoint { job: job.id }, made);
                false
            }
            BidDecision::LetGo => {
                self.let_go.insert(attempt.node.clone(), now);
                self.let_go_now(now, &seen, job, made);
                true
            }
        }
    }

    /// What is known of an attempt at the decision point that was passed last; `None` before the
    /// first of an hour, and if its bid does not matter now.
    fn at_point(
        &self,
        now: i64,
        world: &BatchWorld<'_>,
        (work, member): (WorkId, MemberId),
        attempt: &Attempt,
        job: &SlurmJob,
    ) -> Option<AtPoint> {
        let book = self.book.works.get(&work)?;
        let bid = book.work.max_price.filter(|_| attempt.preemptible)?;
        let active = book.state(now) == WorkState::Active && !book.member(member).done;
        if !active || world.burst.budget_used_up {
            return None;
        }
        let server = world
            .burst
            .instance(&attempt.node)
            .filter(|one| is_up(one))?;
        let launched = server.launched_ms?;
        let stage = book.work.stage(member);
        let passed = self.paid_hours(stage).passed(launched, now);
        // What was begun is brought to its end in the next hour, too.
        let late = || attempt.let_go().map(|at| (DecisionPoint::Terminate, at));
        let (point, at) = passed.or_else(late)?;
        let price = self.type_of(&attempt.node).map(|ty| hourly(ty, world));
        let price = price.filter(|_| world.prices_at >= at);
        Some(AtPoint {
            point,
            at,
            price: price.map(Money::from_micros),
            bid,
            saves: stage.checkpoint.is_some(),
            runs: job.state == JobState::Running || attempt.running.is_some(),
        })
    }

    fn let_go_now(&mut self, now: i64, seen: &AtPoint, job: &SlurmJob, made: &mut BatchDecisions) {
        // What it has done since its checkpoint is saved as well.
        let action = if seen.saves && job.state == JobState::Running {
            BatchAction::Save { job: job.id }
        } else {
            BatchAction::Stop { job: job.id }
        };
        self.send_once(now, action, made);
    }

    /// t_c of a member: what the tenant says, at least what the operator allows for.
    fn t_c(&self, work: WorkId, member: MemberId) -> i64 {
        let book = self.book.works.get(&work);
        book.map_or(0, |book| {
            self.paid_hours(book.work.stage(member)).checkpoint
        })
    }

    /// The hours of a server as a member of a stage sees them. t_w has to suffice for the member to
    /// save what it did since t_cd and end, and for the server to be given back.
    fn paid_hours(&self, stage: &Stage) -> PaidHours {
        let policy = &self.settings.policy;
        let allowed = millis(policy.checkpoint_seconds);
        let cost = stage
            .checkpoint
            .as_ref()
            .map(|one| one.cost_ms().max(allowed));
        let cost = cost.unwrap_or(0);
        PaidHours {
            length: millis(policy.hour_seconds).max(1),
            checkpoint: cost,
            terminate: cost + millis(policy.margin_seconds),
        }
    }

    /// Whether a server was left by its last attempt because its next hour is too dear.
    pub(super) fn is_let_go(&self, server: &PoolServer) -> bool {
        let left = self.let_go.get(&server.node);
        left.is_some_and(|at| server.launched_ms.is_none_or(|launched| launched <= *at))
    }
}

/// What an hour of a type costs now, millionths: what the cloud says, or what the operator does.
pub(super) fn hourly(ty: &ServerType, world: &BatchWorld<'_>) -> u64 {
    let said = world.prices.get(&ty.flavor).copied();
    said.filter(|price| *price > 0).unwrap_or(ty.price)
}

/// The nodes that their last attempts left because of their bids, and when, by the book.
pub(super) fn let_go(book: &Book) -> BTreeMap<String, i64> {
    let attempts = book
        .works
        .values()
        .flat_map(|work| work.members.iter().flatten());
    let mut last: BTreeMap<&str, &Attempt> = BTreeMap::new();
    for attempt in attempts.flat_map(|member| &member.attempts) {
        let known = last.entry(&attempt.node).or_insert(attempt);
        if attempt.started >= known.started {
            *known = attempt;
        }
    }
    let left = |(node, attempt): (&str, &Attempt)| Some((node.to_owned(), attempt.let_go()?));
    last.into_iter().filter_map(left).collect()
}

fn is_up(server: &PoolServer) -> bool {
    server.status == Status::Active
}
