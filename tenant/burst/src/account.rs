//! What a server costs: whole milliseconds, at the price of the hour in which they lie.
//!
//! A cloud with a market fixes the price of an hour when the hour begins, and charges only for the
//! time in which a server runs. A server that hibernates or is stopped is not charged for; when it
//! comes back, a new hour begins.

use crate::manager::{PoolServer, Status};
use crate::record::{BurstEvent, BurstRecord, LifeEnd, RecordEntry};

/// Everything known of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceHistory {
    /// Its node.
    pub node: String,
    /// Start of the time that is paid for, milliseconds.
    pub launch: i64,
    /// When and how it ended; `None` while it exists.
    pub end: Option<(i64, LifeEnd)>,
    /// What the first hour costs, millionths.
    pub hourly: u64,
    /// Later prices of an hour, millionths, and since when each counts.
    pub prices: Vec<(i64, u64)>,
    /// When it did not run although it exists, milliseconds; the last may be open.
    pub pauses: Vec<(i64, Option<i64>)>,
    /// The begin of the newest hour whose price was looked up.
    pub(crate) priced: i64,
    /// Whether it had notice.
    pub noticed: bool,
}

/// Milliseconds in an hour.
pub(crate) const HOUR_MS: i64 = 3_600_000;

impl InstanceHistory {
    /// An instance that was launched then, at this price of an hour.
    #[must_use]
    pub fn new(node: String, launch: i64, hourly: u64) -> Self {
        Self {
            node,
            launch,
            end: None,
            hourly,
            prices: Vec::new(),
            pauses: Vec::new(),
            priced: launch,
            noticed: false,
        }
    }

    /// Paid time between `from` and `until`, milliseconds. The region also charges for instances
    /// that never come up.
    #[must_use]
    pub fn paid_ms(&self, from: i64, until: i64) -> i64 {
        let end = self.end.map_or(until, |(end, _)| end.min(until));
        let from = self.launch.max(from);
        let overlap =
            |(since, to): (i64, Option<i64>)| (to.unwrap_or(end).min(end) - since.max(from)).max(0);
        let paused: i64 = self.pauses.iter().copied().map(overlap).sum();
        ((end - from).max(0) - paused).max(0)
    }

    /// Cost of the paid time, millionths: the sum over all prices is exact and is cut to whole
    /// millionths once.
    #[must_use]
    pub fn paid(&self, from: i64, until: i64) -> u64 {
        let mut lines = vec![(i64::MIN, self.hourly)];
        lines.extend(&self.prices);
        let ends = lines.iter().skip(1).map(|(at, _)| *at).chain([i64::MAX]);
        let parts = lines.iter().zip(ends).map(|((since, hourly), to)| {
            let ms = self.paid_ms(from.max(*since), until.min(to));
            i128::from(ms) * i128::from(*hourly)
        });
        let micros = parts.sum::<i128>() / i128::from(HOUR_MS);
        u64::try_from(micros).unwrap_or(u64::MAX)
    }

    /// What its hour costs at the moment, millionths, and since when.
    #[must_use]
    pub fn price(&self) -> (i64, u64) {
        let last = self.prices.last().copied();
        last.unwrap_or((self.launch, self.hourly))
    }

    /// Whether it exists and does not run.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.end.is_none() && matches!(self.pauses.last(), Some((_, None)))
    }

    /// The begins of the hours until `now` whose prices were not looked up, oldest first. Of hours
    /// of this length, counted from the launch or from the end of the last pause.
    #[must_use]
    pub fn unpriced(&self, now: i64, hour: i64) -> Vec<i64> {
        if self.end.is_some() || self.is_paused() || hour <= 0 {
            return Vec::new();
        }
        let resumed = self.pauses.last().and_then(|(_, to)| *to);
        let since = resumed.unwrap_or(self.launch);
        let first = match (self.priced - since).div_euclid(hour) {
            _ if self.priced < since => since,
            hours => since + (hours + 1) * hour,
        };
        let begins = (0..MOST_HOURS).map(|place| first + place * hour);
        begins.take_while(|begin| *begin <= now).collect()
    }
}

impl BurstRecord {
    /// The new facts about these instances, already applied to the record. An instance that the
    /// region no longer lists is gone. `up` says whether the instance's node has ever come up.
    pub fn learn_instances(
        &mut self,
        now: i64,
        instances: &[PoolServer],
        hourly: impl Fn(&PoolServer) -> u64,
        up: impl Fn(&str) -> bool,
    ) -> Vec<RecordEntry> {
        let mut facts = Vec::new();
        for one in instances {
            if let Some(launch) = one.launched_ms
                && !self.lives.contains_key(&one.id)
            {
                let event = BurstEvent::Launched {
                    instance: one.id.clone(),
                    node: one.node.clone(),
                    launch,
                    hourly: hourly(one),
                };
                self.record_event(now, event, &mut facts);
            }
            let paused = self.lives.get(&one.id).map(InstanceHistory::is_paused);
            match (one.status, paused) {
                (Status::Kept, Some(false)) => {
                    let instance = one.id.clone();
                    self.record_event(now, BurstEvent::Paused { instance }, &mut facts);
                }
                (Status::Active | Status::Leaving, Some(true)) => {
                    let pauses = self.lives.get(&one.id).map(|life| &life.pauses);
                    let from = pauses.and_then(|all| all.last()).map_or(now, |one| one.0);
                    let event = BurstEvent::Resumed {
                        instance: one.id.clone(),
                        // A cloud that does not count a new launch is looked at often enough.
                        since: one.launched_ms.filter(|at| *at > from).unwrap_or(now),
                    };
                    self.record_event(now, event, &mut facts);
                }
                _ => {}
            }
            if let (Status::Leaving, Some(deadline)) = (one.status, one.deadline_ms)
                && self.lives.get(&one.id).is_some_and(|life| !life.noticed)
            {
                let event = BurstEvent::Notice {
                    instance: one.id.clone(),
                    deadline,
                };
                self.record_event(now, event, &mut facts);
            }
        }
        let open = self.lives.iter().filter(|(_, life)| life.end.is_none());
        let gone: Vec<(String, bool)> = open
            .filter(|(id, _)| {
                let there = instances.iter().find(|one| one.id == **id);
                there.is_none_or(|one| one.status == Status::Gone)
            })
            .map(|(id, life)| (id.clone(), life.noticed))
            .collect();
        for (id, noticed) in gone {
            let there = instances.iter().find(|one| one.id == id);
            let taken = there.is_some_and(|one| one.taken);
            let how = match (noticed || taken, up(&id)) {
                (true, _) => LifeEnd::Interrupted,
                (false, true) => LifeEnd::Released,
                (false, false) => LifeEnd::NeverUp,
            };
            let end = there.and_then(|one| one.ended_ms).unwrap_or(now);
            let event = BurstEvent::Gone {
                instance: id,
                end,
                how,
            };
            self.record_event(now, event, &mut facts);
        }
        facts
    }

    /// The hours whose prices have to be looked up: the instance, its node, and when the hour
    /// began.
    #[must_use]
    pub fn unpriced(&self, now: i64, hour: i64) -> Vec<(String, String, i64)> {
        let each = self.lives.iter().flat_map(|(id, life)| {
            let begins = life.unpriced(now, hour).into_iter();
            begins.map(|begin| (id.clone(), life.node.clone(), begin))
        });
        each.collect()
    }

    /// Takes in what an hour of an instance costs; `None` if the cloud has no price for it, so that
    /// the one before counts. The fact, if that is another price, already applied.
    pub fn learn_price(
        &mut self,
        now: i64,
        instance: &str,
        since: i64,
        hourly: Option<u64>,
    ) -> Option<RecordEntry> {
        let life = self.lives.get_mut(instance)?;
        life.priced = life.priced.max(since);
        let hourly = hourly.filter(|hourly| *hourly != life.price().1)?;
        let mut facts = Vec::new();
        let event = BurstEvent::Price {
            instance: instance.to_owned(),
            since,
            hourly,
        };
        self.record_event(now, event, &mut facts);
        facts.pop()
    }

    /// Amount spent on instances between `from` and `until`, millionths.
    #[must_use]
    pub fn spent(&self, from: i64, until: i64) -> u64 {
        let each = self.lives.values().map(|life| life.paid(from, until));
        each.fold(0, u64::saturating_add)
    }
}

/// As many hours are priced at a time.
const MOST_HOURS: i64 = 100;

/// Price of `ms` milliseconds, millionths, charged by the millisecond.
pub(crate) fn price(ms: i64, hourly: u64) -> u64 {
    let micros = i128::from(ms.max(0)) * i128::from(hourly) / i128::from(HOUR_MS);
    u64::try_from(micros).unwrap_or(u64::MAX)
}
