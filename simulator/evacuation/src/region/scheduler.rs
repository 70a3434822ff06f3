//! A scheduler of the standalone region: the real region in a shell with a lease, or a stand-by
//! without one.

use ebbtide_model::record::{Change, OutboxMessage};
use ebbtide_model::{EvacuationId, MessageId, Timestamp};
use ebbtide_region::Region;
use std::collections::{BTreeMap, VecDeque};

/// Identifiers of the region count from here.
pub(crate) const IDS: u128 = 0x1d00_0000_0000_4000_8000_0000_0000_0000;

/// A message that the broker has, of which the region has not been told.
pub(crate) type ConfirmedMessage = (MessageId, Option<EvacuationId>);

pub(crate) struct RegionScheduler {
    pub(crate) name: String,
    pub(crate) up: bool,
    /// It stands still: it does nothing, and knows nothing of that.
    pub(crate) paused: bool,
    /// A commit has failed: it rests for a moment before it tries anything again.
    pub(crate) rests: bool,
    /// How far its clock is ahead, in milliseconds.
    pub(crate) skew: i64,
    /// The epoch of the lease that it believes to have.
    pub(crate) epoch: Option<u64>,
    /// `None` without a lease, and after a commit that failed until the database could be read
    /// again.
    pub(crate) region: Option<Region>,
    /// How much of the database's log the region contains.
    pub(crate) seen: usize,
    /// The sender's copy of the outbox, by host.
    pub(crate) outbox: BTreeMap<String, VecDeque<OutboxMessage>>,
    pub(crate) confirmed: VecDeque<ConfirmedMessage>,
}

impl RegionScheduler {
    pub(crate) fn new(name: String, skew: i64) -> Self {
        Self {
            name,
            up: true,
            paused: false,
            rests: false,
            skew,
            epoch: None,
            region: None,
            seen: 0,
            outbox: BTreeMap::new(),
            confirmed: VecDeque::new(),
        }
    }

    pub(crate) fn clock(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_millis(now.as_millis() + self.skew)
    }

    /// It does something.
    pub(crate) fn works(&self) -> bool {
        self.up && !self.paused && !self.rests
    }

    /// It has the lease, as far as it knows: it reads reports and sends messages, and if it is
    /// alone, it decides.
    pub(crate) fn leads(&self) -> bool {
        self.works() && self.epoch.is_some()
    }

    /// Everything in memory is gone.
    pub(crate) fn forget(&mut self) {
        self.epoch = None;
        self.region = None;
        self.outbox.clear();
        self.confirmed.clear();
    }

    /// The sender starts anew from the rows of the database.
    pub(crate) fn replace_outbox(&mut self, rows: &[OutboxMessage]) {
        self.outbox.clear();
        for message in rows {
            let queue = self.outbox.entry(message.host.clone()).or_default();
            queue.push_back(message.clone());
        }
    }

    /// The sender follows what was just made durable.
    pub(crate) fn follow(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Enqueue(message) => {
                    let queue = self.outbox.entry(message.host.clone()).or_default();
                    queue.push_back(message.clone());
                }
                Change::Dequeue(id) => {
                    for queue in self.outbox.values_mut() {
                        queue.retain(|m| m.id != *id);
                    }
                }
                _ => {}
            }
        }
    }
}
