//! The ledger: rows with versions and owners, shared by all schedulers.

use ebbtide_model::{Reclaim, Timestamp};
use ebbtide_preemption::{Preemption, PreemptionState};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// A scheduler's name, by its place, in one of its lives.
pub(super) type OwnerKey = (usize, u64);

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) owner: OwnerKey,
    pub(super) version: u64,
    pub(super) record: Preemption,
}

/// What came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LedgerWrite {
    /// The row has this version now.
    Updated(u64),
    /// Another scheduler has written the row.
    Lost,
    /// The ledger cannot be written, or did not say that it was.
    Away,
    /// There is such a row already.
    Exists,
    /// Another open row has one of the victims.
    VictimTaken,
    /// Another row answers the request.
    RequestTaken,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Open rows.
    pub(super) rows: BTreeMap<Uuid, Row>,
    /// Which row answers a request.
    pub(super) answers: BTreeMap<String, Uuid>,
    /// Finished ones, kept apart because they are many and nothing happens to them.
    pub(super) finished: BTreeMap<Uuid, Preemption>,
    /// Hosts that an owner has taken back.
    pub(super) reclaims: BTreeMap<usize, Reclaim>,
    /// When each scheduler beat last, and in which life.
    pub(super) beats: Vec<(u64, Timestamp)>,
    /// Usage records by evacuation.
    pub(super) usage: BTreeMap<Uuid, u32>,
    pub(super) away: bool,
    /// A write fails after so many.
    pub(super) fail_after: Option<u32>,
    /// The answer to a write is lost after so many.
    pub(super) lose_after: Option<u32>,
    /// Whether the answer to the last write was lost.
    pub(super) lost: bool,
    /// Broken on purpose: versions and owners are not looked at.
    pub(super) careless: bool,
    /// Broken on purpose: usage is written without its key.
    pub(super) keyless: bool,
}

fn countdown(counter: &mut Option<u32>) -> bool {
    match counter {
        None => false,
        Some(0) => {
            *counter = None;
            true
        }
        Some(n) => {
            *n -= 1;
            false
        }
    }
}

impl Ledger {
    fn fails(&mut self) -> bool {
        self.lost = false;
        countdown(&mut self.fail_after) || self.away
    }

    /// The answer to a write that was done, as its writer receives it.
    fn confirm_write(&mut self, written: LedgerWrite) -> LedgerWrite {
        if countdown(&mut self.lose_after) {
            self.lost = true;
            LedgerWrite::Away
        } else {
            written
        }
    }

    pub(super) fn insert(&mut self, owner: OwnerKey, record: &Preemption) -> LedgerWrite {
        if self.fails() {
            return LedgerWrite::Away;
        }
        if self.rows.contains_key(&record.id) || self.finished.contains_key(&record.id) {
            return LedgerWrite::Exists;
        }
        if self.answers.contains_key(&record.unique_id) {
            return LedgerWrite::RequestTaken;
        }
        let taken = self.victims();
        if record.victims.iter().any(|v| taken.contains(&v.server.0)) {
            return LedgerWrite::VictimTaken;
        }
        let row = Row {
            owner,
            version: 1,
            record: record.clone(),
        };
        self.answers.insert(record.unique_id.clone(), record.id);
        self.rows.insert(record.id, row);
        self.confirm_write(LedgerWrite::Updated(1))
    }

    pub(super) fn update(&mut self, id: Uuid, version: u64, record: &Preemption) -> LedgerWrite {
        self.write(id, version, |row| row.record = record.clone())
    }

    pub(super) fn finish(&mut self, id: Uuid, version: u64, record: &Preemption) -> LedgerWrite {
        if self.fails() {
            return LedgerWrite::Away;
        }
        let careless = self.careless;
        let ours = |row: &Row| careless || row.version == version;
        if !self.rows.get(&id).is_some_and(ours) {
            return LedgerWrite::Lost;
        }
        self.rows.remove(&id);
        // What came to nothing can be planned again.
        if matches!(
            record.state,
            PreemptionState::Refused | PreemptionState::Withdrawn
        ) {
            self.answers.remove(&record.unique_id);
        }
        self.finished.insert(id, record.clone());
        self.confirm_write(LedgerWrite::Updated(version + 1))
    }

    pub(super) fn adopt(
        &mut self,
        id: Uuid,
        version: u64,
        owner: OwnerKey,
        record: &Preemption,
    ) -> LedgerWrite {
        self.write(id, version, |row| {
            row.owner = owner;
            row.record = record.clone();
        })
    }

    fn write(&mut self, id: Uuid, version: u64, change: impl FnOnce(&mut Row)) -> LedgerWrite {
        if self.fails() {
            return LedgerWrite::Away;
        }
        let careless = self.careless;
        match self.rows.get_mut(&id) {
            Some(row) if careless || row.version == version => {
                row.version += 1;
                change(row);
                let version = row.version;
                self.confirm_write(LedgerWrite::Updated(version))
            }
            _ => LedgerWrite::Lost,
        }
    }

    /// The record of a row, open or not.
    pub(super) fn record(&self, id: Uuid) -> Option<&Preemption> {
        let open = self.rows.get(&id).map(|row| &row.record);
        open.or_else(|| self.finished.get(&id))
    }

    /// All records, the finished ones first.
    pub(super) fn records(&self) -> impl Iterator<Item = &Preemption> {
        let open = self.rows.values().map(|row| &row.record);
        self.finished.values().chain(open)
    }

    /// Victims of open rows.
    pub(super) fn victims(&self) -> BTreeSet<Uuid> {
        let open = self.rows.values();
        open.flat_map(|row| row.record.victims.iter().map(|v| v.server.0))
            .collect()
    }

    pub(super) fn record_usage(&mut self, evacuation: Uuid) -> bool {
        if self.fails() {
            return false;
        }
        let count = self.usage.entry(evacuation).or_default();
        if *count == 0 || self.keyless {
            *count += 1;
        }
        true
    }
}
