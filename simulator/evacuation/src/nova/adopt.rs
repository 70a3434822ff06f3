//! Rows of schedulers that died, and requests that come again.

use super::drive::Driven;
use super::ledger::{Row, Written};
use super::world::NovaWorld;
use ebbtide_preemption::State;
use std::collections::VecDeque;
use uuid::Uuid;

/// How long a scheduler may be silent before its rows are adopted.
const SILENCE_MILLIS: i64 = 10_000;

impl NovaWorld {
    /// A scheduler says that it lives, and looks after the others.
    pub(super) fn beat(&mut self, who: usize) {
        if !self.schedulers[who].works() || self.ledger.away {
            return;
        }
        let life = self.schedulers[who].life;
        self.ledger.beats[who] = (life, self.now);
        self.schedulers[who].leaving = self.ledger.victims();
        let open: Vec<(Uuid, Row)> = self
            .ledger
            .rows
            .iter()
            .filter(|(_, row)| !row.finished && row.owner != (who, life))
            .map(|(id, row)| (*id, row.clone()))
            .collect();
        for (id, row) in open {
            let (owner, of) = row.owner;
            let (seen, at) = self.ledger.beats[owner];
            let dead = seen != of || self.now.millis_since(at) > SILENCE_MILLIS;
            // Broken on purpose: whoever beats takes what it sees.
            if dead || owner == who || self.ledger.careless {
                self.take_over(who, id, row, None);
            }
        }
    }

    /// Makes a row ours, unless somebody else was faster.
    fn take_over(&mut self, who: usize, id: Uuid, row: Row, caller: Option<usize>) -> bool {
        let life = self.schedulers[who].life;
        let Written::Updated(version) = self.ledger.adopt(id, row.version, (who, life)) else {
            return false;
        };
        let mut record = row.record;
        if record.state == State::Planned {
            // Whether its swap was sent nobody knows.
            record.in_doubt = true;
        }
        let name = self.schedulers[who].name.clone();
        self.tell(|_| {
            format!(
                "{name} goes on with a preemption that is {}",
                record.state.as_str()
            )
        });
        let driven = Driven {
            version,
            record,
            caller,
            adopted_at: caller.is_none().then(|| self.clock(who)),
            pending: VecDeque::new(),
        };
        self.schedulers[who].driven.insert(id, driven);
        true
    }

    /// A request that comes again: if there is a record of it, goes on with that. True if it is dealt with.
    pub(super) fn resume(&mut self, who: usize, n: usize) -> bool {
        let unique = format!("message-{n}");
        let known = self.ledger.rows.iter().rev();
        let known = known
            .filter(|(_, row)| row.record.unique_id == unique)
            .map(|(id, row)| (*id, row.clone()))
            .next();
        let Some((id, row)) = known else {
            return false;
        };
        if row.record.answered {
            let gave_room = !matches!(row.record.state, State::Refused | State::Withdrawn);
            if gave_room {
                let record = row.record;
                self.answer_with(who, n, &record);
                return true;
            }
            return false;
        }
        if let Some(driven) = self.schedulers[who].driven.get_mut(&id) {
            driven.caller = Some(n);
            driven.adopted_at = None;
            return true;
        }
        if !self.take_over(who, id, row, Some(n)) {
            self.requests[n].holders.retain(|holder| *holder != who);
        }
        true
    }

    /// A scheduler's process dies: what it had not acknowledged goes back to the queue.
    pub(super) fn kill(&mut self, who: usize) {
        let scheduler = &mut self.schedulers[who];
        scheduler.driven.clear();
        scheduler.leaving.clear();
        scheduler.dies_in = None;
        scheduler.paused = false;
        scheduler.rests = true;
        scheduler.life += 1;
        self.redeliver(who);
    }

    /// The broker gives what a scheduler has not acknowledged to others.
    pub(super) fn redeliver(&mut self, who: usize) {
        for n in 0..self.requests.len() {
            if self.requests[n].holders.contains(&who) {
                self.requests[n].holders.retain(|holder| *holder != who);
                self.queue.push_back(n);
            }
        }
    }
}
