//! One node of the cloud: where it is on its way from asked for to gone, and what comes next.

use super::{AGAIN_MS, Action, Instance, Manager, OURS, SOON_MS, Status, World};
use crate::error::BurstError;
use crate::slurm::Node;
use ebbtide_elastic::{Event, ServerId, State};
use std::collections::BTreeSet;

/// A server of the partition that has a node.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    /// Its number.
    pub(super) server: ServerId,
    /// Since when it has the node.
    pub(super) since: i64,
    /// Its instance, once the region has shown one.
    pub(super) instance: Option<String>,
    /// Since when it has notice, and what was done about it.
    pub(super) notice: Option<Notice>,
}

/// A notice that was told.
#[derive(Debug, Clone, Default)]
pub(super) struct Notice {
    /// When it was seen.
    pub(super) seen: i64,
    /// Jobs that were told to save their work.
    pub(super) signalled: BTreeSet<u32>,
}

impl Slot {
    /// One that was just asked for.
    pub(super) fn asked(server: ServerId, now: i64) -> Self {
        Self {
            server,
            since: now,
            instance: None,
            notice: None,
        }
    }

    /// All times that it remembers.
    pub(super) fn times(&mut self) -> impl Iterator<Item = &mut i64> {
        let seen = self.notice.as_mut().map(|notice| &mut notice.seen);
        [&mut self.since].into_iter().chain(seen)
    }
}

impl Manager {
    /// What is to be done about a node.
    pub(super) fn one(
        &mut self,
        now: i64,
        node: &Node,
        instance: Option<&Instance>,
        world: &World<'_>,
    ) -> Result<(), BurstError> {
        let Some(slot) = self.slots.get_mut(&node.name) else {
            self.nobody(now, node, instance, world);
            return Ok(());
        };
        if let Some(one) = instance.filter(|one| one.status.is_there()) {
            slot.instance.get_or_insert_with(|| one.id.clone());
        }
        match self.state(&node.name) {
            Some(State::Provisioning) => self.coming(now, node, instance, world),
            Some(State::Active | State::Draining | State::Leaving) => {
                self.there(now, node, instance, world)
            }
            Some(State::Releasing) => self.going(now, node, instance, world),
            // The partition's controller has given it up.
            None => {
                self.slots.remove(&node.name);
                Ok(())
            }
        }
    }

    /// Nodes that have come up since the look before. They are told as of then: if looks are far apart, as when slurmctld was away, who is up now is not given up as one that takes
    /// too long.
    pub(super) fn came_up(
        &mut self,
        before: i64,
        now: i64,
        world: &World<'_>,
    ) -> Result<(), BurstError> {
        for name in self.names.clone() {
            let node = world.nodes.iter().find(|node| node.name == name);
            let instance = world.instance(&name);
            let (Some(node), Some(one), Some(slot)) = (node, instance, self.slots.get(&name))
            else {
                continue;
            };
            let server = slot.server;
            let up = node.is_up() && one.status == Status::Active;
            if up && self.state(&name) == Some(State::Provisioning) {
                self.seen_up.insert(one.id.clone());
                self.tell(before, Event::Up(server), world)?;
                self.say(now, AGAIN_MS, Action::Open { node: name });
                self.label(now, node, one)?;
            }
        }
        Ok(())
    }

    /// Takes in all nodes whose instances are there and that nobody here has asked for, before anything is asked for: they count against K.
    pub(super) fn take_in(&mut self, now: i64, world: &World<'_>) {
        for name in self.names.clone() {
            let node = world.nodes.iter().find(|node| node.name == name);
            let instance = world.instance(&name).filter(|one| one.status.is_there());
            if let (Some(node), Some(_)) = (node, instance)
                && !self.slots.contains_key(&name)
            {
                self.adopt(now, node, instance);
            }
        }
    }

    /// Takes in a node with an instance that is there already: Slurm has asked for it, or another controller has.
    fn adopt(&mut self, now: i64, node: &Node, instance: Option<&Instance>) {
        let up = node.is_up() && instance.is_some_and(|one| one.status != Status::Coming);
        // It is one of those that were wanted and had no node yet, if there is such a one.
        let server = if self.waiting.is_empty() {
            self.controller.adopt(self.micros(now), up)
        } else {
            self.waiting.remove(0)
        };
        let mut slot = Slot::asked(server, now);
        slot.instance = instance.map(|one| one.id.clone());
        if up {
            self.seen_up.extend(slot.instance.clone());
        }
        self.slots.insert(node.name.clone(), slot);
    }

    /// Nobody has asked for this node, and the region has nothing that could run it.
    fn nobody(&mut self, now: i64, node: &Node, instance: Option<&Instance>, world: &World<'_>) {
        if let Some(one) = instance
            && matches!(one.status, Status::Failed | Status::Kept)
        {
            self.delete(now, one);
        }
        let name = node.name.clone();
        if node.is_stopping() {
            // Slurm forgets that a node is drained when it gives it back, and would start it for the next job as soon as it is away.
            if !node.is_drained() {
                self.say(now, SOON_MS, Action::Rest { node: name });
            }
            return;
        }
        if node.is_starting() {
            // Slurm has just asked by itself; the instance shows in a moment, or Slurm's ResumeTimeout ends it.
            return;
        }
        if node.is_off() && !node.is_down() {
            if !node.is_drained() {
                self.say(now, SOON_MS, Action::Rest { node: name });
            }
            // What comes up next here is new.
            match self.ages.label(0.0, String::new()) {
                Ok(label) => self.tell_label(now, node, label),
                Err(error) => self.troubles.push(error),
            }
            return;
        }
        if !node.is_down() {
            self.lost(now, node, world, "no instance");
        }
        if world.jobs_on(&node.name).next().is_none() {
            self.power_down(now, node);
        }
    }

    /// It was asked for and is not up.
    fn coming(
        &mut self,
        now: i64,
        node: &Node,
        instance: Option<&Instance>,
        world: &World<'_>,
    ) -> Result<(), BurstError> {
        let Some(slot) = self.slots.get(&node.name).cloned() else {
            return Ok(());
        };
        let name = node.name.clone();
        match instance.map(|one| (one, one.status)) {
            Some((_, Status::Leaving)) => return self.tell(now, Event::Notice(slot.server), world),
            Some((one, Status::Failed | Status::Kept)) => {
                self.troubles.push(BurstError::NoInstance {
                    node: name,
                    problem: one.reason.clone(),
                });
                self.quiet_until = now + self.launch_again_ms;
                self.delete(now, one);
                return self.gave_up(now, node, &slot, world);
            }
            _ => {}
        }
        // Slurm has given up waiting, or the resume program has said that there is nothing.
        if node.is_down() && now > slot.since + SOON_MS {
            match instance {
                Some(one) => {
                    self.troubles.push(BurstError::NeverUp {
                        node: name,
                        instance: one.id.clone(),
                    });
                    self.delete(now, one);
                }
                None => self.troubles.push(BurstError::NoInstance {
                    node: name,
                    // As our resume program has said it, or Slurm.
                    problem: node.reason.trim_start_matches("ebbtide-burst: ").to_owned(),
                }),
            }
            self.quiet_until = now + self.launch_again_ms;
            return self.gave_up(now, node, &slot, world);
        }
        let vanished = slot.instance.is_some() && instance.is_none_or(|one| !one.status.is_there());
        if vanished {
            self.lost(now, node, world, "its instance is gone");
            return self.gave_up(now, node, &slot, world);
        }
        if instance.is_none() && node.is_off() && !node.is_stopping() {
            let over = self.controller.census().all() > self.controller.policy().budget();
            if world.budget_used_up || over {
                // Slurm never heard of it; meanwhile the money is spent, or Slurm has started others by itself.
                self.slots.remove(&name);
                return self.tell(now, Event::Gone(slot.server), world);
            }
            self.say(now, AGAIN_MS, Action::PowerUp { node: name });
        }
        Ok(())
    }

    fn gave_up(
        &mut self,
        now: i64,
        node: &Node,
        slot: &Slot,
        world: &World<'_>,
    ) -> Result<(), BurstError> {
        self.power_down(now, node);
        self.is_gone(now, node, slot.server, world)
    }

    /// A server is of no use any more. As long as the region has an instance for it, or Slurm waits for one, it counts: else there were more than K while one is deleted, it would
    /// be taken in again as one that comes, and a node would wait for ResumeTimeout if giving it back was said in vain.
    fn is_gone(
        &mut self,
        now: i64,
        node: &Node,
        server: ServerId,
        world: &World<'_>,
    ) -> Result<(), BurstError> {
        let there = world.instance(&node.name);
        if node.is_starting() || there.is_some_and(|one| one.status.is_there()) {
            self.tell(now, Event::Notice(server), world)?;
            if self.state(&node.name) == Some(State::Leaving) {
                self.tell(now, Event::Drained(server), world)?;
            }
            return Ok(());
        }
        self.slots.remove(&node.name);
        self.tell(now, Event::Gone(server), world)
    }

    /// It is up, or was.
    fn there(
        &mut self,
        now: i64,
        node: &Node,
        instance: Option<&Instance>,
        world: &World<'_>,
    ) -> Result<(), BurstError> {
        let Some(slot) = self.slots.get(&node.name).cloned() else {
            return Ok(());
        };
        let alive = instance.filter(|one| matches!(one.status, Status::Active | Status::Leaving));
        let Some(one) = alive else {
            // It is gone: Slurm is told, and does not have to find out.
            if let Some(one) = instance.filter(|one| one.status != Status::Going) {
                self.delete(now, one);
            }
            self.lost(now, node, world, "its instance is gone");
            return self.is_gone(now, node, slot.server, world);
        };
        if node.is_off() || node.is_stopping() || node.is_down() {
            // Slurm has given the node back by itself, or its slurmd does not answer any more.
            self.displace(node, world);
            self.delete(now, one);
            return self.gave_up(now, node, &slot, world);
        }
        if one.status == Status::Leaving {
            return self.leave(now, node, one, world);
        }
        self.label(now, node, one)?;
        match self.state(&node.name) {
            // Of those drained by somebody else nothing is known here: an operator may look at one.
            Some(State::Active) if node.is_drained() && node.reason.starts_with(OURS) => {
                self.say(
                    now,
                    AGAIN_MS,
                    Action::Open {
                        node: node.name.clone(),
                    },
                );
                Ok(())
            }
            Some(State::Draining | State::Leaving) => self.drains(now, node, &slot, world),
            _ => Ok(()),
        }
    }

    /// It takes nothing new; once nothing is left it may go.
    pub(super) fn drains(
        &mut self,
        now: i64,
        node: &Node,
        slot: &Slot,
        world: &World<'_>,
    ) -> Result<(), BurstError> {
        if !node.is_drained() {
            self.drain(now, &node.name);
            return Ok(());
        }
        if world.jobs_on(&node.name).next().is_none() && !node.is_completing() {
            return self.tell(now, Event::Drained(slot.server), world);
        }
        Ok(())
    }

    /// It is being given back.
    fn going(
        &mut self,
        now: i64,
        node: &Node,
        instance: Option<&Instance>,
        world: &World<'_>,
    ) -> Result<(), BurstError> {
        let Some(slot) = self.slots.get(&node.name).cloned() else {
            return Ok(());
        };
        let there = instance.filter(|one| one.status != Status::Going);
        let off = node.is_off() || node.is_stopping();
        match there {
            None if off => {
                self.slots.remove(&node.name);
                self.tell(now, Event::Gone(slot.server), world)
            }
            None => {
                self.power_down(now, node);
                Ok(())
            }
            Some(one) if off => {
                // The suspend program should have deleted it by now.
                if !node.is_stopping() {
                    self.delete(now, one);
                }
                Ok(())
            }
            Some(_) => {
                self.power_down(now, node);
                Ok(())
            }
        }
    }

    /// Slurm gives the node back, whatever it does.
    fn power_down(&mut self, now: i64, node: &Node) {
        let node = node.name.clone();
        self.say(now, AGAIN_MS, Action::PowerDown { node });
    }

    pub(super) fn delete(&mut self, now: i64, instance: &Instance) {
        if !matches!(instance.status, Status::Going | Status::Gone) {
            let instance = instance.id.clone();
            self.say(now, AGAIN_MS, Action::Delete { instance });
        }
    }

    /// A node is not there any more: its jobs go back into the queue.
    fn lost(&mut self, now: i64, node: &Node, world: &World<'_>, why: &str) {
        self.displace(node, world);
        let reason = format!("{OURS}: {why}");
        let node = node.name.clone();
        self.say(now, AGAIN_MS, Action::Down { node, reason });
    }

    pub(super) fn displace(&mut self, node: &Node, world: &World<'_>) {
        let jobs = world.jobs_on(&node.name).filter(|job| job.requeues);
        self.displaced.extend(jobs.map(|job| job.id));
    }
}
