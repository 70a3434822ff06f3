//! The state of one cloud node between request and removal, and its next step.

use super::{
    AGAIN_MS, BurstAction, ClusterSnapshot, Manager, OURS, PROGRAM, PoolServer, SOON_MS, Status,
};
use crate::error::BurstError;
use crate::slurm::Node;
use ebbtide_elastic::{ControllerEvent, ServerId, ServerState};
use std::collections::BTreeSet;

/// A server of the partition that has a node.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    /// Its number in the partition.
    pub(super) server: ServerId,
    /// Time from which it has the node.
    pub(super) since: i64,
    /// Its instance, once the region has listed one.
    pub(super) instance: Option<String>,
    /// Its notice, if it has one.
    pub(super) notice: Option<SlotNotice>,
}

/// A notice to an instance, and what the controller has done about it.
#[derive(Debug, Clone, Default)]
pub(super) struct SlotNotice {
    /// When it was seen.
    pub(super) seen: i64,
    /// Jobs that the controller has signalled to save their work.
    pub(super) signalled: BTreeSet<u32>,
}

impl Slot {
    /// A slot for a node that was just requested.
    pub(super) fn requested(server: ServerId, now: i64) -> Self {
        Self {
            server,
            since: now,
            instance: None,
            notice: None,
        }
    }

    /// All remembered times.
    pub(super) fn times(&mut self) -> impl Iterator<Item = &mut i64> {
        let seen = self.notice.as_mut().map(|notice| &mut notice.seen);
        [&mut self.since].into_iter().chain(seen)
    }
}

impl Manager {
    /// Decides the next action for a node.
    pub(super) fn one(
        &mut self,
        now: i64,
        node: &Node,
        instance: Option<&PoolServer>,
        world: &ClusterSnapshot<'_>,
    ) -> Result<(), BurstError> {
        let Some(slot) = self.slots.get_mut(&node.name) else {
            self.without_instance(now, node, instance, world);
            return Ok(());
        };
        if let Some(one) = instance.filter(|one| one.status.is_there()) {
            slot.instance.get_or_insert_with(|| one.id.clone());
        }
        match self.state(&node.name) {
            Some(ServerState::Provisioning) => self.coming(now, node, instance, world),
            Some(ServerState::Active | ServerState::Draining | ServerState::Leaving) => {
                self.there(now, node, instance, world)
            }
            Some(ServerState::Releasing) => self.going(now, node, instance, world),
            // The partition's controller has given it up.
            None => {
                self.slots.remove(&node.name);
                Ok(())
            }
        }
    }

    /// Reports nodes that have come up since the previous look. The events carry the time of the
    /// previous look: if looks are far apart, for example because slurmctld was down, the
    /// partition's controller must not treat a node that is up now as one that exceeded its launch
    /// timeout.
    pub(super) fn came_up(
        &mut self,
        before: i64,
        now: i64,
        world: &ClusterSnapshot<'_>,
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
            if up && self.state(&name) == Some(ServerState::Provisioning) {
                self.seen_up.insert(one.id.clone());
                self.report_event(before, ControllerEvent::Up(server), world)?;
                self.send_once(now, AGAIN_MS, BurstAction::Open { node: name });
                self.label(now, node, one)?;
            }
        }
        Ok(())
    }

    /// Adopts all nodes that have an instance but no slot. This runs before the controller requests
    /// new nodes, because these nodes count against K.
    pub(super) fn take_in(&mut self, now: i64, world: &ClusterSnapshot<'_>) {
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

    /// Adopts a node whose instance exists already: Slurm has requested it, or another controller
    /// has.
    fn adopt(&mut self, now: i64, node: &Node, instance: Option<&PoolServer>) {
        let up = node.is_up() && instance.is_some_and(|one| one.status != Status::Coming);
        // A wanted server without a node takes this node, if there is one.
        let server = if self.waiting.is_empty() {
            self.controller.adopt(self.micros(now), up)
        } else {
            self.waiting.remove(0)
        };
        let mut slot = Slot::requested(server, now);
        slot.instance = instance.map(|one| one.id.clone());
        if up {
            self.seen_up.extend(slot.instance.clone());
        }
        self.slots.insert(node.name.clone(), slot);
    }

    /// Handles a node without a slot: this controller has not requested it, and the region has no
    /// usable instance for it.
    fn without_instance(
        &mut self,
        now: i64,
        node: &Node,
        instance: Option<&PoolServer>,
        world: &ClusterSnapshot<'_>,
    ) {
        if let Some(one) = instance
            && matches!(one.status, Status::Failed | Status::Kept)
        {
            self.delete(now, one);
        }
        let name = node.name.clone();
        if node.is_stopping() {
            // Slurm clears the drain flag when it powers the node down, and would then start the
            // node for the next job.
            if !node.is_drained() {
                self.send_once(now, SOON_MS, BurstAction::Rest { node: name });
            }
            return;
        }
        if node.is_starting() {
            // Slurm has just started the node by itself. Either the instance appears soon, or
            // Slurm's ResumeTimeout ends the attempt.
            return;
        }
        if node.is_off() && !node.is_down() {
            if !node.is_drained() {
                self.send_once(now, SOON_MS, BurstAction::Rest { node: name });
            }
            // The next instance of this node is new, so its age is 0.
            match self.ages.label(0.0, String::new()) {
                Ok(label) => self.request_label(now, node, label),
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

    /// Handles a node that was requested and is not up yet.
    fn coming(
        &mut self,
        now: i64,
        node: &Node,
        instance: Option<&PoolServer>,
        world: &ClusterSnapshot<'_>,
    ) -> Result<(), BurstError> {
        let Some(slot) = self.slots.get(&node.name).cloned() else {
            return Ok(());
        };
        let name = node.name.clone();
        match instance.map(|one| (one, one.status)) {
            Some((_, Status::Leaving)) => {
                return self.report_event(now, ControllerEvent::Notice(slot.server), world);
            }
            Some((one, Status::Failed | Status::Kept)) => {
                self.troubles.push(BurstError::NoInstance {
                    node: name,
                    problem: one.reason.clone(),
                });
                self.no_launch_before = now + self.launch_again_ms;
                self.delete(now, one);
                return self.gave_up(now, node, &slot, world);
            }
            _ => {}
        }
        // Slurm has stopped waiting, or the resume program has reported that there is no instance.
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
                    // In the words of our resume program, or of Slurm.
                    problem: node.reason.trim_start_matches("ebbtide-batch: ").to_owned(),
                }),
            }
            self.no_launch_before = now + self.launch_again_ms;
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
                // Slurm has not received the request. Meanwhile the budget is used up, or Slurm has
                // started other nodes by itself.
                self.slots.remove(&name);
                return self.report_event(now, ControllerEvent::Gone(slot.server), world);
            }
            self.send_once(now, AGAIN_MS, BurstAction::PowerUp { node: name });
        }
        Ok(())
    }

    fn gave_up(
        &mut self,
        now: i64,
        node: &Node,
        slot: &Slot,
        world: &ClusterSnapshot<'_>,
    ) -> Result<(), BurstError> {
        self.power_down(now, node);
        self.is_gone(now, node, slot.server, world)
    }

    /// Ends a server that is no longer useful. The server counts as long as the region has an
    /// instance for it or Slurm waits for one. Otherwise there would be more than K servers during
    /// a deletion, the controller would adopt the node again as a new one, and a node whose
    /// power-down request was lost would wait for ResumeTimeout.
    fn is_gone(
        &mut self,
        now: i64,
        node: &Node,
        server: ServerId,
        world: &ClusterSnapshot<'_>,
    ) -> Result<(), BurstError> {
        let there = world.instance(&node.name);
        if node.is_starting() || there.is_some_and(|one| one.status.is_there()) {
            self.report_event(now, ControllerEvent::Notice(server), world)?;
            if self.state(&node.name) == Some(ServerState::Leaving) {
                self.report_event(now, ControllerEvent::Drained(server), world)?;
            }
            return Ok(());
        }
        self.slots.remove(&node.name);
        self.report_event(now, ControllerEvent::Gone(server), world)
    }

    /// Handles a node that is up, or was up.
    fn there(
        &mut self,
        now: i64,
        node: &Node,
        instance: Option<&PoolServer>,
        world: &ClusterSnapshot<'_>,
    ) -> Result<(), BurstError> {
        let Some(slot) = self.slots.get(&node.name).cloned() else {
            return Ok(());
        };
        let alive = instance.filter(|one| matches!(one.status, Status::Active | Status::Leaving));
        let Some(one) = alive else {
            // The instance is gone. The controller tells Slurm, so that Slurm does not have to
            // detect it.
            if let Some(one) = instance.filter(|one| one.status != Status::Going) {
                self.delete(now, one);
            }
            self.lost(now, node, world, "its instance is gone");
            return self.is_gone(now, node, slot.server, world);
        };
        if node.is_off() || node.is_stopping() || node.is_down() {
            // Slurm has powered the node down by itself, or its slurmd no longer answers.
            self.displace(node, world);
            self.delete(now, one);
            return self.gave_up(now, node, &slot, world);
        }
        if one.status == Status::Leaving {
            return self.leave(now, node, one, world);
        }
        self.label(now, node, one)?;
        match self.state(&node.name) {
            // Only drains of this controller are undone: an operator may have drained the node to
            // inspect it.
            Some(ServerState::Active) if node.is_drained() && node.reason.starts_with(OURS) => {
                self.send_once(
                    now,
                    AGAIN_MS,
                    BurstAction::Open {
                        node: node.name.clone(),
                    },
                );
                Ok(())
            }
            Some(ServerState::Draining | ServerState::Leaving) => {
                self.drains(now, node, &slot, world)
            }
            _ => Ok(()),
        }
    }

    /// Drains a node. Once it has no jobs left, it may be released.
    pub(super) fn drains(
        &mut self,
        now: i64,
        node: &Node,
        slot: &Slot,
        world: &ClusterSnapshot<'_>,
    ) -> Result<(), BurstError> {
        if !node.is_drained() {
            self.drain(now, &node.name);
            return Ok(());
        }
        if world.jobs_on(&node.name).next().is_none() && !node.is_completing() {
            return self.report_event(now, ControllerEvent::Drained(slot.server), world);
        }
        Ok(())
    }

    /// Handles a node that is being released.
    fn going(
        &mut self,
        now: i64,
        node: &Node,
        instance: Option<&PoolServer>,
        world: &ClusterSnapshot<'_>,
    ) -> Result<(), BurstError> {
        let Some(slot) = self.slots.get(&node.name).cloned() else {
            return Ok(());
        };
        let there = instance.filter(|one| one.status != Status::Going);
        let off = node.is_off() || node.is_stopping();
        let works = node.is_up()
            && there.is_some_and(|one| one.status == Status::Active)
            && world.jobs_on(&node.name).next().is_some();
        match there {
            // Slurm may not have carried out the last request to start the node yet. Until then
            // the server counts, or there would be more than K.
            None if node.is_off() && self.was_just_started(now, &node.name) => Ok(()),
            // A late request of this controller opened the node, and a job started on it. The
            // controller waits until the job has ended.
            Some(_) if works => {
                if !node.is_drained() {
                    self.drain(now, &node.name);
                }
                Ok(())
            }
            None if off => {
                self.slots.remove(&node.name);
                self.report_event(now, ControllerEvent::Gone(slot.server), world)
            }
            None => {
                self.power_down(now, node);
                Ok(())
            }
            Some(one) if off => {
                // The suspend program has not deleted the instance yet.
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

    /// Whether the controller asked Slurm so recently to start the node that Slurm may not have
    /// done it yet.
    fn was_just_started(&self, now: i64, name: &str) -> bool {
        let node = name.to_owned();
        let said = self.last_sent.get(&BurstAction::PowerUp { node });
        said.is_some_and(|at| now - at < SOON_MS)
    }

    /// Slurm gives the node back, whatever it does.
    fn power_down(&mut self, now: i64, node: &Node) {
        let node = node.name.clone();
        self.send_once(now, AGAIN_MS, BurstAction::PowerDown { node });
    }

    pub(super) fn delete(&mut self, now: i64, instance: &PoolServer) {
        if !matches!(instance.status, Status::Going | Status::Gone) {
            let instance = instance.id.clone();
            self.send_once(now, AGAIN_MS, BurstAction::Delete { instance });
        }
    }

    /// A node is not there any more: its jobs go back into the queue.
    fn lost(&mut self, now: i64, node: &Node, world: &ClusterSnapshot<'_>, why: &str) {
        self.displace(node, world);
        let reason = format!("{PROGRAM}: {why}");
        let node = node.name.clone();
        self.send_once(now, AGAIN_MS, BurstAction::Down { node, reason });
    }

    pub(super) fn displace(&mut self, node: &Node, world: &ClusterSnapshot<'_>) {
        for job in world.jobs_on(&node.name).filter(|job| job.requeues) {
            self.displace_job(job);
        }
    }
}
