//! The book: all work, what became of each member, and what it cost. Append-only on disk; this is
//! the state that follows from it.

mod fact;
mod lengths;

pub use fact::{AttemptEnd, BidDecision, BookEntry, Fact, WorkId};
pub use lengths::LengthEstimate;

use crate::error::BatchError;
use crate::maps::{BagBook, BagWork, is_bag};
use crate::work::{MemberId, Work};
use ebbtide_bag::BagEvent;
use std::collections::BTreeMap;

/// Milliseconds in an hour.
pub(crate) const HOUR_MS: f64 = 3_600_000.0;

/// One attempt at a member.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// Its number, from 1.
    pub number: u32,
    pub node: String,
    /// The type of the node's server.
    pub server_type: String,
    /// Whether the provider may take the server.
    pub preemptible: bool,
    /// What an hour of the server cost when it was started, millionths.
    pub hourly: u64,
    /// Later prices of an hour, millionths, and how long it had run when each began, milliseconds.
    pub prices: Vec<(i64, u64)>,
    /// The part of the server that it has.
    pub share: f64,
    /// Work that was saved before, milliseconds.
    pub from: i64,
    /// When the service started it, milliseconds.
    pub started: i64,
    /// When Slurm started it.
    pub running: Option<i64>,
    /// How long its server was frozen, milliseconds, and since when it is.
    pub frozen: (i64, Option<i64>),
    /// When and how it ended.
    pub end: Option<(i64, AttemptEnd)>,
    /// What followed from prices above the bid, in order.
    pub bid: Vec<OutbidEvent>,
}

/// A price above the bid, and what followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutbidEvent {
    /// When, milliseconds.
    pub at: i64,
    /// What was decided.
    pub decision: BidDecision,
    /// What an hour cost, millionths; `None` if the cloud did not say.
    pub price: Option<u64>,
    /// Number of the newest checkpoint that was complete then; 0 for none.
    pub checkpoint: u64,
}

impl Attempt {
    /// When it was let go because its server's next hour was dearer than the bid, milliseconds.
    #[must_use]
    pub fn let_go(&self) -> Option<i64> {
        let last = self.bid.last();
        let last = last.filter(|look| look.decision == BidDecision::LetGo);
        last.map(|look| look.at)
    }

    /// How long it has run, milliseconds; not while it was frozen.
    #[must_use]
    pub fn ran(&self, now: i64) -> i64 {
        let until = self.end.map_or(now, |(end, _)| end);
        let (frozen, since) = self.frozen;
        let now = since.map_or(0, |since| until.saturating_sub(since).max(0));
        let frozen = frozen.saturating_add(now);
        let ran = |since: i64| until.saturating_sub(since).saturating_sub(frozen);
        self.running.map_or(0, |since| ran(since).max(0))
    }

    /// What its part of the server cost, millionths: each part of its time at the price of the hour
    /// in which it lies.
    #[must_use]
    pub fn cost(&self, now: i64) -> f64 {
        let ran = self.ran(now);
        let first = std::iter::once((0, self.hourly));
        let begins = first.chain(self.prices.iter().copied());
        let ends = self.prices.iter().map(|(begin, _)| *begin).chain([ran]);
        let parts = begins.zip(ends).map(|((begin, hourly), end)| {
            i128::from((end.min(ran) - begin).max(0)) * i128::from(hourly)
        });
        parts.sum::<i128>() as f64 / HOUR_MS * self.share
    }

    /// What its hour costs at the moment, millionths.
    #[must_use]
    pub fn hourly_now(&self) -> u64 {
        self.prices
            .last()
            .map_or(self.hourly, |(_, hourly)| *hourly)
    }
}

/// A member of a work.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Member {
    /// Its attempts, in order.
    pub attempts: Vec<Attempt>,
    /// Whether it is done.
    pub done: bool,
    /// Work that is saved, milliseconds.
    pub saved: i64,
    /// Since when it waits for a server, milliseconds.
    pub ready_since: Option<i64>,
}

impl Member {
    /// Attempts that have not ended: one, or two if a copy runs.
    pub fn open(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(|one| one.end.is_none())
    }

    /// How often it failed by itself.
    #[must_use]
    pub fn failures(&self) -> u32 {
        let failed = |one: &&Attempt| matches!(one.end, Some((_, AttemptEnd::Failed { .. })));
        self.attempts.iter().filter(failed).count() as u32
    }

    /// The exit code of the last attempt that failed by itself.
    #[must_use]
    pub fn last_exit(&self) -> Option<i32> {
        let each = self.attempts.iter().rev();
        each.filter_map(|one| match one.end {
            Some((_, AttemptEnd::Failed { exit })) => Some(exit),
            _ => None,
        })
        .next()
    }

    /// The work of a member that is done, milliseconds: what its last attempt began with and ran.
    #[must_use]
    pub fn length(&self) -> Option<i64> {
        let done = |one: &&Attempt| matches!(one.end, Some((_, AttemptEnd::Done)));
        let last = self.attempts.iter().find(done)?;
        Some(last.from + last.ran(0))
    }
}

/// What a work is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkState {
    /// Some member runs or may run.
    Active,
    /// Its budget is used up: nothing runs until the budget is raised.
    OverBudget,
    /// All members are done.
    Done,
    /// A member failed as often as it may, and nothing else is left to run.
    Failed,
    /// The tenant has cancelled it.
    Cancelled,
}

impl WorkState {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::OverBudget => "over-budget",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing more happens to it.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

/// All that is known of a work.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkBook {
    /// What was handed in.
    pub work: Work,
    /// Of a bag by maps.
    pub bag: Option<BagBook>,
    /// When, milliseconds.
    pub submitted: i64,
    /// The members of each stage.
    pub members: Vec<Vec<Member>>,
    /// The most that may be spent, millionths.
    pub budget: Option<u64>,
    /// Whether the tenant has cancelled it.
    pub cancelled: bool,
    /// When the last member ended, milliseconds.
    pub last_end: Option<i64>,
}

impl WorkBook {
    fn new(document: &serde_json::Value, submitted: i64) -> Result<Self, BatchError> {
        let (work, bag) = if is_bag(document) {
            let work = BagWork::read(document)?;
            let events = Vec::new();
            (work.work.clone(), Some(BagBook { work, events }))
        } else {
            (Work::read(document)?, None)
        };
        let members = work.stages.iter();
        let members = members.map(|stage| vec![Member::default(); stage.members.len()]);
        Ok(Self {
            members: members.collect(),
            budget: work.budget.map(ebbtide_model::Money::micros),
            submitted,
            cancelled: false,
            last_end: None,
            work,
            bag,
        })
    }

    #[must_use]
    pub fn member(&self, id: MemberId) -> &Member {
        &self.members[id.stage][id.index]
    }

    /// Whether a stage is done.
    #[must_use]
    pub fn stage_done(&self, stage: usize) -> bool {
        self.members[stage].iter().all(|one| one.done)
    }

    /// Whether a member has failed as often as it may.
    #[must_use]
    pub fn given_up(&self, id: MemberId) -> bool {
        let one = self.member(id);
        !one.done && one.failures() > self.work.stage(id).retries
    }

    /// Members that may run now and do not: the stages before them are done, and they have not
    /// failed for good.
    pub fn ready(&self) -> impl Iterator<Item = MemberId> {
        self.work.members().filter(|id| {
            let one = self.member(*id);
            let stage = self.work.stage(*id);
            !one.done
                && one.open().next().is_none()
                && !self.given_up(*id)
                && stage.after.iter().all(|before| self.stage_done(*before))
        })
    }

    /// Members with an attempt that has not ended.
    pub fn running(&self) -> impl Iterator<Item = (MemberId, &Attempt)> {
        let all = self.work.members();
        all.flat_map(|id| self.member(id).open().map(move |one| (id, one)))
    }

    /// What was spent on it so far, millionths.
    #[must_use]
    pub fn spent(&self, now: i64) -> u64 {
        let members = self.members.iter().flatten();
        let each = members.flat_map(|one| one.attempts.iter().map(|attempt| attempt.cost(now)));
        each.sum::<f64>().round() as u64
    }

    /// Until when all of it is to be done, milliseconds.
    #[must_use]
    pub fn deadline(&self) -> Option<i64> {
        let seconds = i64::try_from(self.work.deadline?).unwrap_or(i64::MAX / 4_000);
        Some(self.submitted + seconds * 1_000)
    }

    /// Whether all of it was done by its deadline; `None` without a deadline, and while the
    /// deadline lies ahead of an open work.
    #[must_use]
    pub fn deadline_met(&self, now: i64) -> Option<bool> {
        let deadline = self.deadline()?;
        if self.state(now) == WorkState::Done {
            return Some(self.last_end.unwrap_or(now) <= deadline);
        }
        (now > deadline).then_some(false)
    }

    /// What it is doing.
    #[must_use]
    pub fn state(&self, now: i64) -> WorkState {
        let running = self.running().next().is_some();
        if self.members.iter().flatten().all(|one| one.done) {
            return WorkState::Done;
        }
        if self.cancelled {
            return WorkState::Cancelled;
        }
        // The plan of a bag by maps has no part without one of its tasks.
        let failed = if self.bag.is_some() {
            self.work.members().any(|id| self.given_up(id))
        } else {
            self.ready().next().is_none() && !running
        };
        if failed {
            return WorkState::Failed;
        }
        if self.budget.is_some_and(|budget| self.spent(now) >= budget) {
            return WorkState::OverBudget;
        }
        WorkState::Active
    }

    /// How many members are done, run, and wait.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let all = self.members.iter().flatten();
        let (mut done, mut run, mut rest) = (0, 0, 0);
        for one in all {
            if one.done {
                done += 1;
            } else if one.open().next().is_some() {
                run += 1;
            } else {
                rest += 1;
            }
        }
        (done, run, rest)
    }
}

/// All work.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Book {
    /// By number.
    pub works: BTreeMap<WorkId, WorkBook>,
}

impl Book {
    /// Reads a book. Leaves out an incomplete last line, which a crash or a full disk may cause.
    ///
    /// # Errors
    /// [`BatchError::Book`] for any other invalid line.
    pub fn parse(text: &str) -> Result<Self, BatchError> {
        let mut book = Self::default();
        let whole = text.ends_with('\n');
        let count = text.lines().count();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let wrong = |problem: String| BatchError::Book {
                line: at + 1,
                problem,
            };
            match serde_json::from_str::<BookEntry>(line) {
                Ok(entry) => book
                    .apply(&entry)
                    .map_err(|error| wrong(error.to_string()))?,
                Err(_) if at + 1 == count && !whole => break,
                Err(error) => return Err(wrong(error.to_string())),
            }
        }
        Ok(book)
    }

    /// The number of the next work.
    #[must_use]
    pub fn next_id(&self) -> WorkId {
        self.works.last_key_value().map_or(1, |(id, _)| id + 1)
    }

    /// Takes a fact in. What is about a member or an attempt that does not exist changes nothing.
    ///
    /// # Errors
    /// [`BatchError::Work`] for a work that cannot be read.
    pub fn apply(&mut self, entry: &BookEntry) -> Result<(), BatchError> {
        if let Fact::Submitted { document } = &entry.fact {
            let book = WorkBook::new(document, entry.at)?;
            let book = self.works.entry(entry.work).or_insert(book);
            book.note_ready(entry.at);
            return Ok(());
        }
        let Some(book) = self.works.get_mut(&entry.work) else {
            return Ok(());
        };
        match &entry.fact {
            Fact::Cancelled => book.cancelled = true,
            Fact::BudgetSet { budget } => book.budget = *budget,
            Fact::Bag { what } => book.apply_to_bag(entry.at, *what),
            other => book.apply_to_member(entry.at, other),
        }
        book.note_ready(entry.at);
        Ok(())
    }
}

impl WorkBook {
    fn apply_to_member(&mut self, at: i64, fact: &Fact) {
        let Some(id) = fact.member() else { return };
        let stage = self.members.get_mut(id.stage);
        let Some(member) = stage.and_then(|stage| stage.get_mut(id.index)) else {
            return;
        };
        match fact {
            Fact::Started {
                attempt,
                node,
                server_type,
                preemptible,
                hourly,
                share,
                from,
                ..
            } => {
                member.ready_since = None;
                member.attempts.push(Attempt {
                    number: *attempt,
                    node: node.clone(),
                    server_type: server_type.clone(),
                    preemptible: *preemptible,
                    hourly: *hourly,
                    prices: Vec::new(),
                    share: *share,
                    from: *from,
                    started: at,
                    running: None,
                    frozen: (0, None),
                    end: None,
                    bid: Vec::new(),
                });
            }
            Fact::Running { attempt, since, .. } => {
                let mut open = member.attempts.iter_mut();
                if let Some(one) = open.find(|one| one.number == *attempt) {
                    one.running.get_or_insert(*since);
                }
            }
            Fact::Ended {
                attempt,
                end,
                how,
                saved,
                ..
            } => {
                let mut open = member.attempts.iter_mut();
                if let Some(one) = open.find(|one| one.number == *attempt && one.end.is_none()) {
                    one.end = Some(((*end).max(one.running.unwrap_or(*end)), *how));
                    member.saved = member.saved.max(*saved);
                    if *how == AttemptEnd::Done {
                        member.done = true;
                        self.last_end = Some(self.last_end.map_or(*end, |last| last.max(*end)));
                    }
                }
            }
            Fact::Price {
                attempt,
                since,
                hourly,
                ..
            } => {
                let mut open = member.attempts.iter_mut();
                if let Some(one) = open.find(|one| one.number == *attempt) {
                    let ran = one.ran(*since);
                    one.prices.push((ran, *hourly));
                }
            }
            Fact::Bid {
                attempt,
                decision,
                price,
                checkpoint,
                ..
            } => {
                let mut open = member.attempts.iter_mut();
                if let Some(one) = open.find(|one| one.number == *attempt) {
                    one.bid.push(OutbidEvent {
                        at,
                        decision: *decision,
                        price: *price,
                        checkpoint: *checkpoint,
                    });
                }
            }
            Fact::Submitted { .. }
            | Fact::Bag { .. }
            | Fact::Cancelled
            | Fact::BudgetSet { .. } => {}
        }
    }

    fn apply_to_bag(&mut self, at: i64, what: BagEvent) {
        let Some(bag) = &mut self.bag else { return };
        bag.events.push((at, what));
        let (vm, freezes) = match what {
            BagEvent::Hibernated(vm) => (vm, true),
            BagEvent::Resumed(vm) => (vm, false),
            _ => return,
        };
        let node = bag.work.node(vm);
        let members = self.members.iter_mut().flatten();
        let attempts = members.flat_map(|member| &mut member.attempts);
        for one in attempts.filter(|one| one.node == node && one.end.is_none()) {
            if freezes {
                one.frozen.1.get_or_insert(at);
            } else if let Some(since) = one.frozen.1.take() {
                let frozen = at.saturating_sub(since).max(0);
                one.frozen.0 = one.frozen.0.saturating_add(frozen);
            }
        }
    }

    /// Memory of a member, MB.
    #[must_use]
    pub fn memory_mb(&self, id: MemberId) -> u64 {
        let bag = self.bag.as_ref();
        let of_stage = self.work.stage(id).memory_mb;
        bag.map_or(of_stage, |bag| bag.work.bag.tasks()[id.index].memory_mb)
    }

    /// Notes since when members wait.
    fn note_ready(&mut self, at: i64) {
        let ready: Vec<MemberId> = self.ready().collect();
        for id in ready {
            let member = &mut self.members[id.stage][id.index];
            member.ready_since.get_or_insert(at);
        }
    }
}
