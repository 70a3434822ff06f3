//! Rows of schedulers that died or forgot them, and requests that come again.

use super::drive::ActivePreemption;
use super::ledger::{LedgerWrite, Row};
use super::world::{NovaScheduler, NovaWorld};
use crate::Mutation;
use crate::violation::Invariant;
use ebbtide_preemption::{RedeliveryAction, RowOwnership, SILENCE_MILLIS};
use std::collections::VecDeque;
use uuid::Uuid;

impl NovaWorld {
    /// A scheduler sends its heartbeat and adopts rows without a driver.
    pub(super) fn beat(&mut self, who: usize) {
        let scheduler = &self.schedulers[who];
        if !scheduler.is_running() || scheduler.rests || self.ledger.away {
            return;
        }
        let (node, life) = self.schedulers[who].owner();
        if self.ends_for(who, self.ledger.beats[node].0) {
            return;
        }
        self.ledger.beats[node] = (life, self.now);
        self.schedulers[who].beat_at = Some(self.now);
        self.schedulers[who].registered = true;
        self.schedulers[who].leaving = self.ledger.victims();
        let open: Vec<Uuid> = self.ledger.rows.keys().copied().collect();
        for id in open {
            let Some(row) = self.ledger.rows.get(&id) else {
                continue;
            };
            let standing = self.standing(who, id, row.owner);
            let mine = matches!(standing, RowOwnership::Mine { .. });
            let forgets = mine && self.breaks(Mutation::OwnRowForgotten);
            // Broken on purpose: the scheduler takes every row of the other schedulers.
            let takes = !mine && self.ledger.careless;
            let adopts = standing.is_orphan() && !forgets || takes;
            if adopts {
                let row = row.clone();
                let owner = row.owner;
                if self.take_over(who, id, row, None) {
                    self.check_orphan(who, owner);
                }
            }
        }
    }

    /// Whose a row is, for a scheduler that looks.
    fn standing(&self, who: usize, id: Uuid, owner: super::ledger::OwnerKey) -> RowOwnership {
        let scheduler = &self.schedulers[who];
        if owner == scheduler.owner() {
            let has_driver =
                scheduler.driven.contains_key(&id) || scheduler.writing.contains_key(&id);
            return RowOwnership::Mine { has_driver };
        }
        let (node, life) = owner;
        let (seen, at) = self.ledger.beats[node];
        RowOwnership::Of {
            lives: seen == life,
            silent_millis: self.now.millis_since(at),
        }
    }

    /// Another process has this one's name, and is of this life: if that is a later one, this one
    /// ends.
    fn ends_for(&mut self, who: usize, life: u64) -> bool {
        if life <= self.schedulers[who].life || self.breaks(Mutation::SupersededGoesOn) {
            return false;
        }
        let name = self.schedulers[who].name.clone();
        self.log(|_| format!("{name} finds that another one has its name, and ends"));
        self.kill(who);
        self.schedulers[who].replaced = true;
        true
    }

    /// Rows of those who live and say so are left to them.
    fn check_orphan(&mut self, who: usize, owner: super::ledger::OwnerKey) {
        let (now, mine) = (self.now, self.schedulers[who].owner());
        let lives = self.schedulers.iter().any(|s| {
            let beats = s
                .beat_at
                .is_some_and(|at| now.millis_since(at) <= SILENCE_MILLIS);
            // One of which there is a newer one only does not know yet that it has to end.
            let newest = s.life == self.lives[s.node];
            s.owner() == owner && s.works() && beats && newest
        });
        if lives && owner != mine && !self.ledger.careless {
            let what = "a record is taken from a scheduler that lives".to_owned();
            self.fail(Invariant::ExactlyOnce, what);
        }
    }

    /// Makes this scheduler the owner of a row, unless another scheduler was faster. With a caller,
    /// this scheduler also gives the answer.
    pub(super) fn take_over(
        &mut self,
        who: usize,
        id: Uuid,
        row: Row,
        caller: Option<usize>,
    ) -> bool {
        let owner = self.schedulers[who].owner();
        // One that has ended takes nothing, whatever it was in the middle of.
        if self.schedulers[who].replaced
            || row.owner.0 == owner.0 && self.ends_for(who, row.owner.1)
        {
            return false;
        }
        let mut record = row.record;
        let name = self.schedulers[who].name.clone();
        record.adopt(caller.map(|_| name.as_str()));
        let LedgerWrite::Updated(version) = self.ledger.adopt(id, row.version, owner, &record)
        else {
            return false;
        };
        self.log(|_| {
            format!(
                "{name} goes on with a preemption that is {}",
                record.state.as_str()
            )
        });
        let driven = ActivePreemption {
            version,
            record,
            caller,
            doubtful: true,
            adopted_at: caller.is_none().then(|| self.clock(who)),
            pending: VecDeque::new(),
            unwritten: false,
        };
        self.schedulers[who].driven.insert(id, driven);
        true
    }

    /// Continues with the record of a request, if there is one. Only the scheduler that has the
    /// message can answer, so it takes the record over, unless the present owner got the message
    /// later. Returns false if there is no record, or if the record came to nothing.
    pub(super) fn resume(&mut self, who: usize, n: usize, from_another: bool) -> bool {
        let unique = format!("message-{n}");
        let open = self.ledger.rows.iter().rev();
        let mut open = open.filter(|(_, row)| row.record.unique_id == unique);
        let known = open.next().map(|(id, row)| (*id, Some(row.clone())));
        let known = known.or_else(|| {
            let over = self.ledger.finished.iter().rev();
            let mut over = over.filter(|(_, record)| record.unique_id == unique);
            over.next().map(|(id, _)| (*id, None))
        });
        let Some((id, row)) = known else {
            return false;
        };
        let Some(record) = self.ledger.record(id).cloned() else {
            return false;
        };
        let name = self.schedulers[who].name.clone();
        match record.redelivery(&name, from_another) {
            RedeliveryAction::Answer => {
                self.answer_with(who, n, &record);
                return true;
            }
            RedeliveryAction::Nothing => return false,
            RedeliveryAction::LeaveIt => {
                self.requests[n].drop_holder(who);
                return true;
            }
            RedeliveryAction::GoOn => {}
        }
        let mine = Some(name);
        if let Some(driven) = self.schedulers[who].driven.get_mut(&id) {
            // An earlier delivery of the same message waited here: this one is answered.
            let earlier = driven.caller.replace(n);
            driven.adopted_at = None;
            let (version, mut record) = (driven.version, driven.record.clone());
            if let Some(earlier) = earlier {
                self.requests[earlier].drop_holder(who);
            }
            if record.answerer != mine {
                record.answerer = mine;
                let written = self.ledger.update(id, version, &record);
                if let (LedgerWrite::Updated(version), Some(driven)) =
                    (written, self.schedulers[who].driven.get_mut(&id))
                {
                    driven.version = version;
                    driven.record = record;
                }
            }
            return true;
        }
        let taken = row.is_some_and(|row| self.take_over(who, id, row, Some(n)));
        if !taken && !self.schedulers[who].replaced {
            // Another scheduler has just written the row. This scheduler retries in a moment.
            self.schedulers[who].rests = true;
            self.schedulers[who].going_on.push_back((n, from_another));
        }
        true
    }

    /// Requests whose record could not be had are tried again.
    pub(super) fn go_on_again(&mut self, who: usize) -> bool {
        if !self.schedulers[who].works() || self.ledger.away {
            return false;
        }
        let again = std::mem::take(&mut self.schedulers[who].going_on);
        let moved = !again.is_empty();
        for (n, from_another) in again {
            // What it had not acknowledged when it ended is others' now.
            if self.schedulers[who].replaced {
                break;
            }
            if !self.resume(who, n, from_another) {
                self.decide(who, n);
            }
        }
        moved
    }

    /// A scheduler's process dies: what it had not acknowledged goes back to the queue.
    pub(super) fn kill(&mut self, who: usize) {
        let node = self.schedulers[who].node;
        self.lives[node] += 1;
        let life = self.lives[node];
        let scheduler = &mut self.schedulers[who];
        scheduler.driven.clear();
        scheduler.writing.clear();
        scheduler.going_on.clear();
        scheduler.leaving.clear();
        scheduler.dies_in = None;
        scheduler.paused = false;
        scheduler.rests = true;
        scheduler.beat_at = None;
        scheduler.registered = false;
        scheduler.life = life;
        self.redeliver(who);
    }

    /// The operator mistakes a stalled scheduler for a dead one and starts another one under its
    /// name.
    pub(super) fn start_twice(&mut self, who: usize) {
        let (node, skew) = (self.schedulers[who].node, self.schedulers[who].skew);
        self.lives[node] += 1;
        let life = self.lives[node];
        let mut second = NovaScheduler::new(node, life, skew);
        second.registered = false;
        self.schedulers.push(second);
        self.redeliver(who);
    }

    /// The broker gives what a scheduler has not acknowledged to others.
    pub(super) fn redeliver(&mut self, who: usize) {
        for n in 0..self.requests.len() {
            if self.requests[n].holders.contains(&who) {
                self.requests[n].holders.retain(|holder| *holder != who);
                self.requests[n].redelivered = true;
                self.queue.push_back(n);
            }
        }
    }
}
