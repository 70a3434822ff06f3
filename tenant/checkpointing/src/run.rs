//! One job through one price history.

use crate::availability::{Availability, Period};
use crate::bid_lifetimes::BidLifetimes;
use crate::bill::{TerminatedBy, charge};
use crate::event::{Event, EventKind};
use crate::history::PriceHistory;
use crate::scheme::{Scheme, SchemeAction, SchemeView};
use crate::terms::{AdaptKnowledge, CheckpointTerms};
use ebbtide_model::Money;
use std::borrow::Cow;

/// A price history seen by a bid.
#[derive(Debug, Clone)]
pub struct Market<'a> {
    history: &'a PriceHistory,
    bid: Money,
    availability: Availability,
}

impl<'a> Market<'a> {
    /// The history as `bid` sees it.
    #[must_use]
    pub fn new(history: &'a PriceHistory, bid: Money) -> Self {
        Self {
            history,
            bid,
            availability: Availability::new(history, bid),
        }
    }

    #[must_use]
    pub fn history(&self) -> &'a PriceHistory {
        self.history
    }

    #[must_use]
    pub fn bid(&self) -> Money {
        self.bid
    }

    /// When it can run.
    #[must_use]
    pub fn availability(&self) -> &Availability {
        &self.availability
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointedJob {
    /// Seconds of work.
    pub work_seconds: i64,
    /// When it is handed in.
    pub start: i64,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd {
    /// It is done, at this time.
    Done(i64),
    /// The history ended before the job.
    HistoryEnds,
    /// From its start to the end of the history the price was above the bid.
    NeverRuns,
}

/// What became of a job. Of a job that is done, every second between start and end is in exactly
/// one of `waiting_seconds`, `work_seconds`, `lost_seconds`, `checkpoint_seconds` and
/// `restart_seconds`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobResult {
    /// How it ended.
    pub ending: JobEnd,
    pub cost: Money,
    /// Instance-hours charged.
    pub hours: u64,
    /// Instances launched.
    pub launches: u32,
    /// Instances ended by the provider.
    pub kills: u32,
    /// Checkpoints that were completed.
    pub checkpoints: u32,
    /// Seconds without an instance.
    pub waiting_seconds: i64,
    /// Seconds of work that counted.
    pub work_seconds: i64,
    /// Seconds of work that were lost and done again.
    pub lost_seconds: i64,
    /// Seconds in checkpoints, unfinished ones among them.
    pub checkpoint_seconds: i64,
    /// Seconds in which instances got ready to go on.
    pub restart_seconds: i64,
    /// What was decided and done, in order.
    pub events: Vec<Event>,
}

/// Plays `job` through the market. `lives` is what the scheme knows at its start of the failures of
/// this bid; with [`AdaptKnowledge::Past`] it learns of each later one when it launches again.
#[must_use]
pub fn run(
    market: &Market<'_>,
    scheme: &dyn Scheme,
    terms: &CheckpointTerms,
    lives: &BidLifetimes,
    job: CheckpointedJob,
) -> JobResult {
    let mut player = Player {
        market,
        scheme,
        terms,
        lives: Cow::Borrowed(lives),
        known: job.start,
        saved: 0,
        work: job.work_seconds,
        outcome: JobResult {
            ending: JobEnd::NeverRuns,
            cost: Money::default(),
            hours: 0,
            launches: 0,
            kills: 0,
            checkpoints: 0,
            waiting_seconds: 0,
            work_seconds: 0,
            lost_seconds: 0,
            checkpoint_seconds: 0,
            restart_seconds: 0,
            events: Vec::new(),
        },
        charged: 0,
    };
    player.play(job.start);
    player.outcome.cost = Money::from_micros(player.charged);
    player.outcome
}

/// How the life of one instance ended.
enum End {
    Done(i64),
    Killed(i64),
    Terminated(i64),
    HistoryEnds,
}

struct Player<'a> {
    market: &'a Market<'a>,
    scheme: &'a dyn Scheme,
    terms: &'a CheckpointTerms,
    lives: Cow<'a, BidLifetimes>,
    /// Up to when failures are in `lives`.
    known: i64,
    /// Seconds of work that a new instance need not do again.
    saved: i64,
    work: i64,
    outcome: JobResult,
    /// Millionths.
    charged: u64,
}

impl Player<'_> {
    fn play(&mut self, start: i64) {
        let mut time = start;
        loop {
            let end = self.market.history.end();
            let Some(period) = self.market.availability.from(time) else {
                if self.outcome.launches > 0 {
                    self.outcome.ending = JobEnd::HistoryEnds;
                }
                return;
            };
            let launch = period.from.max(time);
            if launch >= end {
                if self.outcome.launches > 0 {
                    self.outcome.ending = JobEnd::HistoryEnds;
                }
                return;
            }
            self.outcome.waiting_seconds += launch - time;
            if self.outcome.launches > 0 {
                self.happened(EventKind::Launch, launch);
                self.learn(launch);
            }
            let (ended, by) = match self.instance(period, launch) {
                End::Done(at) => {
                    self.outcome.ending = JobEnd::Done(at);
                    self.outcome.work_seconds = self.work;
                    self.bill(launch, at, TerminatedBy::User);
                    return;
                }
                End::HistoryEnds => {
                    self.outcome.ending = JobEnd::HistoryEnds;
                    // The provider charges complete hours as they end. The outcome of the hour in
                    // progress is unknown.
                    self.bill(launch, end, TerminatedBy::Provider);
                    return;
                }
                End::Killed(at) => {
                    self.outcome.kills += 1;
                    (at, TerminatedBy::Provider)
                }
                End::Terminated(at) => (at, TerminatedBy::User),
            };
            self.bill(launch, ended, by);
            time = ended;
        }
    }

    /// Takes in the failures up to `time`.
    fn learn(&mut self, time: i64) {
        if !self.scheme.learns() || self.terms.adapt.knowledge == AdaptKnowledge::Whole {
            return;
        }
        for (from, until) in self.market.availability.ended(self.known, time) {
            self.lives.to_mut().add(until - from);
        }
        self.known = time;
    }

    fn bill(&mut self, launch: i64, end: i64, by: TerminatedBy) {
        let (hours, micros) = charge(self.market.history, launch, end, by);
        self.outcome.hours += hours;
        self.charged = self.charged.saturating_add(micros);
    }

    fn happened(&mut self, kind: EventKind, at: i64) {
        self.outcome.events.push(Event { kind, at });
    }

    /// The time at which the provider ends an instance that was launched in `period`.
    fn killed(&self, period: Period, launch: i64) -> Option<i64> {
        // With a ceiling below the bid, the provider would end the instance right after each
        // launch.
        let ceiling = self.scheme.ceiling(self.market.bid, self.terms)?;
        let ceiling = ceiling.max(self.market.bid);
        if ceiling == self.market.bid {
            return period.until;
        }
        let later = self.market.history.spans();
        let mut above = later.filter(|(_, until, price)| *until > launch && *price > ceiling);
        above.next().map(|(from, _, _)| from.max(launch))
    }

    /// The life of one instance.
    fn instance(&mut self, period: Period, launch: i64) -> End {
        let first = self.outcome.launches == 0;
        self.outcome.launches += 1;
        let kill = self.killed(period, launch);
        let history_end = self.market.history.end();
        // The last moment that the instance sees, and what happens there.
        let limit = kill.map_or(history_end, |kill| kill.min(history_end));
        let cut = move || match kill {
            Some(kill) if kill <= history_end => End::Killed(kill),
            _ => End::HistoryEnds,
        };
        let restart = if first { 0 } else { self.terms.restart_seconds };
        let mut now = launch + restart;
        self.outcome.restart_seconds += restart.min(limit - launch);
        if now > limit {
            return cut();
        }
        let (mut unsaved, mut checkpoint) = (0, None);
        loop {
            let left = self.work - self.saved - unsaved;
            let done = now + left;
            let act = self.scheme.next(&SchemeView {
                history: self.market.history,
                bid: self.market.bid,
                period,
                lives: &self.lives,
                terms: self.terms,
                launch,
                now,
                unsaved,
                left,
                checkpoint,
            });
            // A scheme that answers with the past would turn in a circle; it is taken to mean now.
            let at = act.map_or(i64::MAX, |act| act.at().max(now));
            if done <= at.min(limit) {
                return End::Done(done);
            }
            if at > limit {
                self.outcome.lost_seconds += unsaved + (limit - now).max(0);
                return cut();
            }
            unsaved += at - now;
            if let Some(SchemeAction::Terminate(_)) = act {
                self.happened(EventKind::Terminate, at);
                self.outcome.lost_seconds += unsaved;
                return End::Terminated(at);
            }
            self.happened(EventKind::Checkpoint, at);
            checkpoint = Some(at);
            now = at + self.terms.checkpoint_seconds;
            self.outcome.checkpoint_seconds += now.min(limit) - at;
            if now > limit {
                self.outcome.lost_seconds += unsaved;
                return cut();
            }
            self.outcome.checkpoints += 1;
            self.saved += unsaved;
            unsaved = 0;
        }
    }
}
