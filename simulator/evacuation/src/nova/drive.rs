//! The loop that drives one record, as the Nova service's does: what is due is decided, then done,
//! then what came of it is written.

use super::ledger::LedgerWrite;
use super::world::NovaWorld;
use crate::fault::FaultKind;
use ebbtide_model::Timestamp;
use ebbtide_preemption::{Preemption, PreemptionAction, PreemptionInput, PreemptionState};
use std::collections::VecDeque;
use uuid::Uuid;

/// A record that a scheduler drives.
#[derive(Debug, Clone)]
pub(super) struct ActivePreemption {
    pub(super) version: u64,
    pub(super) record: Preemption,
    /// The request whose caller waits here.
    pub(super) caller: Option<usize>,
    /// A record without a caller was adopted then.
    pub(super) adopted_at: Option<Timestamp>,
    /// The swap may have been sent before.
    pub(super) doubtful: bool,
    /// What was found to be due and is not done yet.
    pub(super) pending: VecDeque<PreemptionAction>,
    /// The ledger did not say that it has the record as it is: nothing goes on until it does, as in
    /// the Nova service.
    pub(super) unwritten: bool,
}

/// The row is not ours any more, or cannot be written now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stop;

impl NovaWorld {
    /// One record of a scheduler goes one thing further. True if something was done.
    pub(super) fn drive_one(&mut self, who: usize, b: u32) -> bool {
        let count = self.schedulers[who].driven.len().max(1);
        let id = self.schedulers[who]
            .driven
            .keys()
            .nth(b as usize % count)
            .copied();
        id.is_some_and(|id| self.drive(who, id))
    }

    pub(super) fn drive_all(&mut self, who: usize) -> bool {
        let mut moved = self.write_down_again(who);
        moved |= self.go_on_again(who);
        let ids: Vec<Uuid> = self.schedulers[who].driven.keys().copied().collect();
        for id in ids {
            for _ in 0..40 {
                if !self.drive(who, id) {
                    break;
                }
                moved = true;
            }
        }
        moved
    }

    fn drive(&mut self, who: usize, id: Uuid) -> bool {
        if !self.schedulers[who].works() || !self.schedulers[who].driven.contains_key(&id) {
            return false;
        }
        let clock = self.clock(who);
        let policy = self.policy.clone();
        let idle = self.schedulers[who]
            .driven
            .get(&id)
            .is_some_and(|d| d.pending.is_empty());
        if idle {
            if self.are_newcomers_deleted(who, id)
                && self.feed(who, id, &PreemptionInput::NewcomersGone).is_err()
            {
                return false;
            }
            if !self.look_for_return(who, id) {
                return false;
            }
            if self.feed(who, id, &PreemptionInput::Tick).is_err() {
                return false;
            }
            self.look_again(who, id);
            let Some(driven) = self.schedulers[who].driven.get_mut(&id) else {
                return false;
            };
            driven.pending = driven.record.due(clock, &policy).into();
            if driven.pending.is_empty() {
                return driven.record.state.is_final() && self.close(who, id);
            }
        }
        let driven = self.schedulers[who].driven.get_mut(&id);
        let Some(action) = driven.and_then(|d| d.pending.pop_front()) else {
            return false;
        };
        let before = self.schedulers[who]
            .driven
            .get(&id)
            .map(|d| d.record.clone());
        let _ = self.perform(who, id, &action);
        // A thing that leaves everything as it was (an answer that did not come) rests until time
        // passes.
        let after = self.schedulers[who]
            .driven
            .get(&id)
            .map(|d| d.record.clone());
        before != after
    }

    /// Takes in an input and writes the record if it has changed.
    pub(super) fn feed(
        &mut self,
        who: usize,
        id: Uuid,
        input: &PreemptionInput<'_>,
    ) -> Result<(), Stop> {
        self.write_at_last(who, id)?;
        let clock = self.clock(who);
        let policy = self.policy.clone();
        let name = self.schedulers[who].name.clone();
        let Some(driven) = self.schedulers[who].driven.get_mut(&id) else {
            return Err(Stop);
        };
        let before = driven.record.clone();
        if !driven.record.feed(input, clock, &policy) {
            return Ok(());
        }
        let (was, is) = (before.state, driven.record.state);
        let (record, version) = (driven.record.clone(), driven.version);
        if was != is {
            self.log(|s| {
                let why = record.reason.as_ref().map(|why| format!(": {why}"));
                let newcomer = record.newcomers.first().map(|n| s.of(n.instance));
                format!(
                    "{name}: the preemption for {} is {}{}",
                    newcomer.unwrap_or_default(),
                    is.as_str(),
                    why.unwrap_or_default()
                )
            });
        }
        // The next owner reads the allocations from Placement again, so this state alone need not
        // be written.
        if is == PreemptionState::Claimed {
            return Ok(());
        }
        if self.dies_before_writing(who) {
            return Err(Stop);
        }
        let written = self.ledger.record(id).cloned();
        match self.ledger.update(id, version, &record) {
            LedgerWrite::Updated(version) => {
                if let Some(driven) = self.schedulers[who].driven.get_mut(&id) {
                    driven.version = version;
                }
                self.check_row(&written.unwrap_or(before), &record);
                Ok(())
            }
            LedgerWrite::Lost => self.reload(who, id),
            _ => {
                self.note_lost_answer(&written.unwrap_or(before), &record);
                if let Some(driven) = self.schedulers[who].driven.get_mut(&id) {
                    driven.unwritten = true;
                    driven.pending.clear();
                }
                self.schedulers[who].rests = true;
                Err(Stop)
            }
        }
    }

    /// Writes a pending change once the ledger is back. If only the answer was lost, the change is
    /// already written. The scheduler then finds a newer version, which it has written itself.
    fn write_at_last(&mut self, who: usize, id: Uuid) -> Result<(), Stop> {
        let Some(driven) = self.schedulers[who].driven.get(&id) else {
            return Err(Stop);
        };
        if !driven.unwritten {
            return Ok(());
        }
        let (record, version) = (driven.record.clone(), driven.version);
        let written = self.ledger.record(id).cloned();
        match self.ledger.update(id, version, &record) {
            LedgerWrite::Updated(version) => {
                if let Some(driven) = self.schedulers[who].driven.get_mut(&id) {
                    driven.version = version;
                    driven.unwritten = false;
                }
                if let Some(written) = written {
                    self.check_row(&written, &record);
                }
                Ok(())
            }
            LedgerWrite::Lost => self.reload(who, id),
            _ => {
                self.note_lost_answer(&written.unwrap_or_else(|| record.clone()), &record);
                self.schedulers[who].rests = true;
                Err(Stop)
            }
        }
    }

    /// Another process has written the row. If the row still belongs to this scheduler, the written
    /// record replaces the one in memory.
    fn reload(&mut self, who: usize, id: Uuid) -> Result<(), Stop> {
        let owner = self.schedulers[who].owner();
        let row = self.ledger.rows.get(&id).cloned();
        match row {
            Some(row) if row.owner == owner => {
                if let Some(driven) = self.schedulers[who].driven.get_mut(&id) {
                    driven.version = row.version;
                    driven.record = row.record;
                    driven.pending.clear();
                    driven.unwritten = false;
                }
                Ok(())
            }
            _ => {
                self.hand_off(who, id);
                Err(Stop)
            }
        }
    }

    /// Another scheduler continues with the record. The caller that waits here is answered there,
    /// if that scheduler has the message, too.
    fn hand_off(&mut self, who: usize, id: Uuid) {
        if let Some(driven) = self.schedulers[who].driven.remove(&id)
            && let Some(n) = driven.caller
        {
            let name = self.schedulers[who].name.clone();
            self.log(|_| format!("{name}: another scheduler goes on with it"));
            self.schedulers[who].going_on.push_back((n, false));
        }
    }

    /// The answer to a write was lost: it is held against the promises all the same.
    pub(super) fn note_lost_answer(&mut self, before: &Preemption, after: &Preemption) {
        if std::mem::take(&mut self.ledger.lost) {
            self.fault(FaultKind::LedgerSilent, || {
                "the ledger has it, and its answer is lost".to_owned()
            });
            self.check_row(before, after);
        }
    }

    fn look_again(&mut self, who: usize, id: Uuid) {
        let version = self.schedulers[who].driven.get(&id).map(|d| d.version);
        let row = self.ledger.rows.get(&id);
        let same = row.map(|r| r.version) == version || self.ledger.careless;
        if !self.ledger.away && !same {
            let _ = self.reload(who, id);
        }
    }

    /// The end: the victims can be planned with again, and the caller is told.
    fn close(&mut self, who: usize, id: Uuid) -> bool {
        let Some(driven) = self.schedulers[who].driven.get(&id).cloned() else {
            return false;
        };
        let written = self.ledger.record(id).cloned();
        match self.ledger.finish(id, driven.version, &driven.record) {
            LedgerWrite::Updated(_) => {
                if let Some(written) = written {
                    self.check_row(&written, &driven.record);
                }
            }
            LedgerWrite::Lost => {
                self.hand_off(who, id);
                return true;
            }
            _ => {
                let before = written.unwrap_or_else(|| driven.record.clone());
                self.note_lost_answer(&before, &driven.record);
                self.schedulers[who].rests = true;
                return false;
            }
        }
        self.schedulers[who].driven.remove(&id);
        for victim in &driven.record.victims {
            self.schedulers[who].leaving.remove(&victim.server.0);
        }
        if let Some(n) = driven.caller {
            match driven.record.state {
                PreemptionState::Done => self.answer_with(who, n, &driven.record),
                // The request goes on with another plan.
                PreemptionState::Refused => self.decide(who, n),
                _ => self.answer(who, n, None),
            }
        }
        true
    }

    pub(super) fn answer_with(&mut self, who: usize, n: usize, record: &Preemption) {
        let host = record.result.as_u64().and_then(|h| usize::try_from(h).ok());
        self.answer(who, n, host);
    }
}
