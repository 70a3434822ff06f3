//! Several schedulers that are active at once: each batch is a turn at the database, in which what
//! the others have written is taken in first.

use super::service::{NotWritten, Replies, is_single_request};
use super::world::RegionWorld;
use crate::Mutation;
use crate::violation::Invariant;
use ebbtide_region::{Effects, InputKind, RegionInput, Speculation};

impl RegionWorld {
    /// A scheduler that answers: the leader, or each of the active schedulers in turn.
    pub(super) fn answers(&mut self) -> Option<usize> {
        if !self.shared {
            return self.leader();
        }
        let all = self.schedulers.len();
        let next = self.last_scheduler + 1;
        let who = (next..next + all).find(|n| self.schedulers[n % all].works())? % all;
        self.last_scheduler = who;
        Some(who)
    }

    /// Takes in what the others have written. False if there is no memory.
    pub(super) fn catch_up(&mut self, who: usize) -> bool {
        if self.schedulers[who].region.is_none() {
            self.restore(who);
            return self.schedulers[who].region.is_some();
        }
        let clock = self.schedulers[who].clock(self.now);
        let scheduler = &mut self.schedulers[who];
        let on_duty = scheduler.epoch.is_some();
        let news = self.database.log.get(scheduler.seen..).unwrap_or_default();
        let mut refused = None;
        for changes in news {
            if let Some(region) = scheduler.region.as_mut()
                && let Err(error) = region.apply_commit(clock, changes)
            {
                refused = Some(error.to_string());
            }
            if on_duty {
                scheduler.follow(changes);
            }
            scheduler.seen += 1;
        }
        if let Some(error) = refused {
            self.fail(
                Invariant::MemoryIsDurable,
                format!("what another scheduler has written cannot be followed: {error}"),
            );
        }
        true
    }

    /// Detects that another scheduler is on duty.
    fn look_at_duty(&mut self, who: usize) {
        let Some(epoch) = self.schedulers[who].epoch else {
            return;
        };
        let lease = &self.database.lease;
        if lease.holder != Some(who) || lease.epoch != epoch {
            self.step_down(who);
        }
    }

    /// Another scheduler is on duty: this one stops sending.
    pub(super) fn step_down(&mut self, who: usize) {
        let scheduler = &mut self.schedulers[who];
        scheduler.epoch = None;
        scheduler.outbox.clear();
        scheduler.confirmed.clear();
        let name = scheduler.name.clone();
        self.log(|_| format!("{name} finds that another one is on duty, and goes on deciding"));
    }

    /// A batch of inputs in a turn. `early`: what can be decided is decided before it, on what this
    /// scheduler knew then.
    pub(super) fn turn<I: RegionInput>(
        &mut self,
        who: usize,
        inputs: Vec<I>,
        early: bool,
    ) -> Result<Replies<I>, NotWritten> {
        if !self.schedulers[who].works() {
            return Err(NotWritten);
        }
        if self.schedulers[who].region.is_none() {
            self.restore(who);
        }
        let clock = self.schedulers[who].clock(self.now);
        let mut speculations: Vec<Option<Speculation>> = vec![None; inputs.len()];
        if early && let Some(region) = self.schedulers[who].region.as_mut() {
            for (speculation, input) in speculations.iter_mut().zip(&inputs) {
                if let InputKind::Placement(create) = input.kind() {
                    *speculation = region.speculate(clock, &mut self.ids, create);
                }
            }
            if let Err(error) = region.end_speculation() {
                self.fail(Invariant::MemoryIsDurable, error.to_string());
                return Err(NotWritten);
            }
        }
        // Now and then it is too far behind, and reads everything anew between the two.
        if early && self.commits.is_multiple_of(7) {
            self.restore(who);
            if !self.breaks(Mutation::SpeculationOutlivesMemory) {
                speculations.fill(None);
            }
        }
        if !self.breaks(Mutation::NewsNotFollowed) && !self.catch_up(who) {
            return Err(NotWritten);
        }
        self.look_at_duty(who);
        let of_duty = inputs.iter().any(|input| input.kind().is_duty());
        if of_duty && self.schedulers[who].epoch.is_none() {
            return Err(NotWritten);
        }
        self.single_request = is_single_request(&inputs);
        let Some(region) = self.schedulers[who].region.as_mut() else {
            return Err(NotWritten);
        };
        let before = region.speculation_counts();
        let mut changes = Vec::new();
        let mut replies = Vec::with_capacity(inputs.len());
        for (input, speculation) in inputs.into_iter().zip(speculations) {
            match region.handle_speculated(clock, &mut self.ids, input, speculation) {
                Ok((reply, Effects { changes: more, .. })) => {
                    changes.extend(more);
                    replies.push(Ok(reply));
                }
                Err(error) => replies.push(Err(error)),
            }
        }
        let after = region.speculation_counts();
        self.valid_decisions += after.valid - before.valid;
        self.conflicts += after.conflicts - before.conflicts;
        if changes.is_empty() {
            return Ok(replies);
        }
        self.break_rules(&mut changes);
        self.commit(who, None, &changes)?;
        Ok(replies)
    }
}
