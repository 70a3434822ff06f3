//! The ledger: rows with versions and owners, shared by all schedulers.

use ebbtide_model::Timestamp;
use ebbtide_preemption::Preemption;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// A scheduler in one of its lives.
pub(super) type Owner = (usize, u64);

/// A row.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) owner: Owner,
    pub(super) version: u64,
    pub(super) record: Preemption,
    pub(super) finished: bool,
}

/// What came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// The row has this version now.
    Updated(u64),
    /// Somebody else has written it.
    Lost,
    /// The ledger cannot be written.
    Away,
    /// Another open row has one of the victims.
    VictimTaken,
}

/// The ledger.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) rows: BTreeMap<Uuid, Row>,
    /// When each scheduler beat last, and in which life.
    pub(super) beats: Vec<(u64, Timestamp)>,
    /// Usage records by evacuation.
    pub(super) usage: BTreeMap<Uuid, u32>,
    pub(super) away: bool,
    /// A write fails after so many.
    pub(super) fail_after: Option<u32>,
    /// Broken on purpose: versions and owners are not looked at.
    pub(super) careless: bool,
    /// Broken on purpose: usage is written without its key.
    pub(super) keyless: bool,
}

impl Ledger {
    fn fails(&mut self) -> bool {
        let now = match &mut self.fail_after {
            None => false,
            Some(0) => {
                self.fail_after = None;
                true
            }
            Some(n) => {
                *n -= 1;
                false
            }
        };
        now || self.away
    }

    pub(super) fn insert(&mut self, owner: Owner, record: &Preemption) -> Written {
        if self.fails() {
            return Written::Away;
        }
        let taken = self.victims();
        if record.victims.iter().any(|v| taken.contains(&v.server.0)) {
            return Written::VictimTaken;
        }
        let row = Row {
            owner,
            version: 1,
            record: record.clone(),
            finished: false,
        };
        self.rows.insert(record.id, row);
        Written::Updated(1)
    }

    pub(super) fn update(&mut self, id: Uuid, version: u64, record: &Preemption) -> Written {
        self.write(id, version, |row| row.record = record.clone())
    }

    pub(super) fn finish(&mut self, id: Uuid, version: u64, record: &Preemption) -> Written {
        self.write(id, version, |row| {
            row.record = record.clone();
            row.finished = true;
        })
    }

    pub(super) fn adopt(&mut self, id: Uuid, version: u64, owner: Owner) -> Written {
        self.write(id, version, |row| row.owner = owner)
    }

    fn write(&mut self, id: Uuid, version: u64, change: impl FnOnce(&mut Row)) -> Written {
        if self.fails() {
            return Written::Away;
        }
        let careless = self.careless;
        match self.rows.get_mut(&id) {
            Some(row) if careless || (row.version == version && !row.finished) => {
                row.version += 1;
                change(row);
                Written::Updated(row.version)
            }
            _ => Written::Lost,
        }
    }

    /// Victims of open rows.
    pub(super) fn victims(&self) -> BTreeSet<Uuid> {
        let open = self.rows.values().filter(|row| !row.finished);
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
