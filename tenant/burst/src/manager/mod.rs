//! The controller: it takes the state of Slurm and of the region and returns the actions to take.
//!
//! The controller is level-triggered: each look compares the whole state with the wanted state and
//! returns what is missing. A lost, refused or repeated action does no harm, because the next look
//! shows the difference. The controller repeats an action without visible effect after
//! [`AGAIN_MS`]. It remembers only the notices that it has handled and the ids of the elastic
//! partition's controller. A new controller recovers both by adopting the existing instances.
//!
//! A cloud node that the controller has not requested is *resting*: drained while it is powered
//! down, so that Slurm does not start it by itself for a waiting job. The controller opens a
//! requested node when its slurmd has answered, so that no job waits for a boot.

mod held_jobs;
mod leave;
mod load;
mod place;
mod slot;
mod world;

pub use load::Load;
pub use world::{BurstAction, ClusterSnapshot, PoolServer, Status};

use crate::account::HOUR_MS;
use crate::error::BurstError;
use crate::reuse_policy::{Label, ReusePolicy};
use crate::settings::AgeSettings;
use crate::slurm::{Ageing, JobState, Node};
use ebbtide_elastic::{
    Controller, ControllerAction as Elastic, ControllerEvent, ElasticPolicy, ServerId, ServerState,
};
use held_jobs::LAUNCHED_MS;
use place::Place;
use slot::Slot;
use std::collections::{BTreeMap, BTreeSet};

/// Drain reason of a cloud node that the controller has not requested.
pub const RESTING: &str = "ebbtide-batch: resting";
/// Drain reason of a node that is no longer needed.
const SHRINK: &str = "ebbtide-batch: no longer needed";
/// Drain reason of a node whose instance has notice.
const NOTICE: &str = "ebbtide-batch: the instance has notice";
/// The program, first in all reasons and comments that it sets.
const PROGRAM: &str = "ebbtide-batch";
/// Prefix of the reasons of all versions: `ebbtide-burst` set them before.
pub const OURS: &str = "ebbtide-";
/// Repeat interval of an action without effect: longer than Slurm takes to change a node's state.
const AGAIN_MS: i64 = 5_000;
/// Repeat interval of urgent actions.
const SOON_MS: i64 = 1_000;

/// Result of one look.
#[derive(Debug, Clone, PartialEq)]
pub struct Decisions {
    /// Actions to take, in this order.
    pub actions: Vec<BurstAction>,
    /// Errors found.
    pub troubles: Vec<BurstError>,
    /// The long-load ratio.
    pub ratio: Option<f64>,
    /// Target number of instances.
    pub target: u32,
}

/// What a manager of nodes needs to know.
#[derive(Debug, Clone)]
pub struct ManagerOptions {
    pub nodes: Vec<String>,
    /// How the age of their servers is reported to Slurm.
    pub age: AgeSettings,
    /// How many servers there may be, and how fast they come and go.
    pub policy: ElasticPolicy,
    /// Maximum time for a job to save its work before it is requeued, milliseconds.
    pub checkpoint_ms: i64,
    /// Jobs are requeued so long before their server ends, milliseconds.
    pub margin_ms: i64,
    /// Delay before the next launch after the cloud had no capacity, milliseconds.
    pub launch_again_ms: i64,
    /// Whether jobs that Slurm holds because their launch failed are released: those of all users.
    pub releases: bool,
}

/// The controller.
#[derive(Debug)]
pub struct Manager {
    ages: ReusePolicy,
    names: Vec<String>,
    controller: Controller,
    slots: BTreeMap<String, Slot>,
    /// Servers of the partition that have no node yet.
    waiting: Vec<ServerId>,
    /// Jobs that lost their node, and are to be started again at once; the place of each in the
    /// queue, as far as it is known.
    displaced: BTreeMap<u32, Option<Place>>,
    /// How Slurm's priorities grow with age, if they do.
    ageing: Option<Ageing>,
    /// How often jobs whose launch failed have been released.
    released: BTreeMap<u32, u32>,
    /// When each action was last sent.
    last_sent: BTreeMap<BurstAction, i64>,
    /// Until then the controller requests no new instance from the region.
    no_launch_before: i64,
    /// Time of the first look: the partition's times count from there.
    began: Option<i64>,
    /// Time of the last look.
    last: i64,
    checkpoint_ms: i64,
    margin_ms: i64,
    launch_again_ms: i64,
    releases: bool,
    actions: Vec<BurstAction>,
    troubles: Vec<BurstError>,
    /// Instances whose nodes have come up.
    seen_up: BTreeSet<String>,
}

impl Manager {
    /// A controller of these nodes without any state.
    ///
    /// # Errors
    /// [`BurstError::Setting`] for an invalid model of the servers' lifetime.
    pub fn new(options: ManagerOptions) -> Result<Self, BurstError> {
        Ok(Self {
            ages: ReusePolicy::new(&options.age)?,
            names: options.nodes,
            controller: Controller::new(options.policy),
            slots: BTreeMap::new(),
            waiting: Vec::new(),
            displaced: BTreeMap::new(),
            ageing: None,
            released: BTreeMap::new(),
            last_sent: BTreeMap::new(),
            no_launch_before: i64::MIN,
            began: None,
            last: i64::MIN,
            checkpoint_ms: options.checkpoint_ms,
            margin_ms: options.margin_ms,
            launch_again_ms: options.launch_again_ms,
            releases: options.releases,
            actions: Vec::new(),
            troubles: Vec::new(),
            seen_up: BTreeSet::new(),
        })
    }

    /// Looks after these nodes from now on, and leaves others alone.
    pub fn set_nodes(&mut self, nodes: Vec<String>) {
        self.names = nodes;
    }

    /// Looks at the world and returns the actions to take. The load says how many servers there
    /// should be.
    ///
    /// # Errors
    /// [`BurstError::Setting`] if the partition's controller rejects an event.
    pub fn look(
        &mut self,
        now: i64,
        world: &ClusterSnapshot<'_>,
        load: Load,
    ) -> Result<Decisions, BurstError> {
        self.began.get_or_insert(now);
        self.set_back(self.last.saturating_sub(now));
        let before = if self.last == i64::MIN {
            now
        } else {
            self.last.min(now)
        };
        self.last = now;
        self.actions.clear();
        self.troubles.clear();
        self.leave_others(now, world)?;
        self.duplicates(now, world);
        self.take_in(now, world);
        self.came_up(before, now, world)?;
        for name in self.names.clone() {
            let Some(node) = world.nodes.iter().find(|node| node.name == name) else {
                continue;
            };
            let instance = world.instance(&name);
            self.one(now, node, instance, world)?;
        }
        let Load { long, on_demand } = load;
        // With the budget used up, the wanted number is zero: the controller drains and returns the
        // existing nodes, one at a time.
        let long = if world.budget_used_up { 0 } else { long };
        self.report_event(now, ControllerEvent::Load { long, on_demand }, world)?;
        self.cancel(now, world)?;
        self.give_nodes(now, world);
        if self.releases {
            self.release(now, world);
        }
        self.note_places(world);
        self.start_again(now, world);
        self.last_sent.retain(|_, at| *at + 10 * AGAIN_MS > now);
        Ok(Decisions {
            actions: std::mem::take(&mut self.actions),
            troubles: std::mem::take(&mut self.troubles),
            ratio: self.controller.long_load_ratio(),
            target: self.controller.target(),
        })
    }

    /// Forgets nodes that are no longer its own.
    fn leave_others(&mut self, now: i64, world: &ClusterSnapshot<'_>) -> Result<(), BurstError> {
        let (own, others) = std::mem::take(&mut self.slots)
            .into_iter()
            .partition(|(name, _)| self.names.contains(name));
        self.slots = own;
        let others: BTreeMap<String, Slot> = others;
        for slot in others.into_values() {
            self.report_event(now, ControllerEvent::Gone(slot.server), world)?;
        }
        Ok(())
    }

    /// The clock was set back by `by`: all remembered times move back by the same amount, so that
    /// no timeout waits until the old time is reached again.
    fn set_back(&mut self, by: i64) {
        if by <= 0 {
            return;
        }
        let slots = self.slots.values_mut().flat_map(Slot::times);
        let times = slots.chain(self.last_sent.values_mut());
        for at in times
            .chain(&mut self.began)
            .chain([&mut self.no_launch_before])
        {
            *at = at.saturating_sub(by);
        }
    }

    /// Whether a node takes jobs: its server is up, has no notice, and is to stay.
    #[must_use]
    pub fn takes_jobs(&self, node: &str) -> bool {
        self.state(node) == Some(ServerState::Active)
    }

    /// Whether a node with a server is to stay: it takes jobs, or this controller has not adopted
    /// it yet.
    #[must_use]
    pub fn is_staying(&self, node: &str) -> bool {
        self.takes_jobs(node) || !self.slots.contains_key(node)
    }

    /// Whether a node was asked for and has not come up yet.
    #[must_use]
    pub fn is_coming(&self, node: &str) -> bool {
        self.state(node) == Some(ServerState::Provisioning)
    }

    /// Whether a server may be asked for: the cloud has not refused one a moment ago.
    #[must_use]
    pub fn may_launch(&self, now: i64) -> bool {
        now >= self.no_launch_before
    }

    /// How many servers are in which state.
    #[must_use]
    pub fn census(&self) -> ebbtide_elastic::Census {
        self.controller.census()
    }

    /// Whether the node of an instance has come up during the life of this controller.
    #[must_use]
    pub fn has_come_up(&self, instance: &str) -> bool {
        self.seen_up.contains(instance)
    }

    /// Reports an event to the partition's controller, and turns its answer into actions.
    fn report_event(
        &mut self,
        now: i64,
        event: ControllerEvent,
        world: &ClusterSnapshot<'_>,
    ) -> Result<(), BurstError> {
        let us = self.micros(now);
        let nodes: BTreeMap<ServerId, String> = self
            .slots
            .iter()
            .map(|(name, slot)| (slot.server, name.clone()))
            .collect();
        let mut work = |server: ServerId| {
            let name = nodes.get(&server);
            name.map_or(0, |name| world.worth_of(name))
        };
        let wanted = self.controller.handle(us, event, &mut work);
        let wanted = wanted.map_err(|error| BurstError::setting("policy", error.to_string()))?;
        for action in wanted {
            match action {
                Elastic::Launch(server) => self.waiting.push(server),
                Elastic::Drain(server) => {
                    if let Some(node) = self.node_of(server) {
                        self.drain(now, &node);
                    }
                }
                Elastic::Keep(server) => {
                    if let Some(node) = self.node_of(server) {
                        self.send_once(now, AGAIN_MS, BurstAction::Open { node });
                    }
                }
                Elastic::Release(server) => match self.node_of(server) {
                    Some(node) => self.send_once(now, AGAIN_MS, BurstAction::PowerDown { node }),
                    // The server never got a node, so it is gone at once.
                    None => {
                        self.waiting.retain(|one| *one != server);
                        self.report_event(now, ControllerEvent::Gone(server), world)?;
                    }
                },
            }
        }
        Ok(())
    }

    fn micros(&self, now: i64) -> u64 {
        let since = now - self.began.unwrap_or(now);
        u64::try_from(since).unwrap_or(0).saturating_mul(1_000)
    }

    fn node_of(&self, server: ServerId) -> Option<String> {
        let mut slots = self.slots.iter();
        slots
            .find(|(_, slot)| slot.server == server)
            .map(|(name, _)| name.clone())
    }

    fn state(&self, name: &str) -> Option<ServerState> {
        let slot = self.slots.get(name)?;
        self.controller.state(slot.server)
    }

    fn drain(&mut self, now: i64, node: &str) {
        let noticed = self
            .slots
            .get(node)
            .is_some_and(|slot| slot.notice.is_some());
        let reason = if noticed { NOTICE } else { SHRINK }.to_owned();
        let node = node.to_owned();
        self.send_once(now, AGAIN_MS, BurstAction::Drain { node, reason });
    }

    /// Returns an action, unless it was returned within the last `again_ms`.
    fn send_once(&mut self, now: i64, again_ms: i64, action: BurstAction) {
        if self.is_due(now, again_ms, &action) {
            self.last_sent.insert(action.clone(), now);
            self.actions.push(action);
        }
    }

    fn is_due(&self, now: i64, again_ms: i64, action: &BurstAction) -> bool {
        let at = self.last_sent.get(action);
        at.is_none_or(|at| at + again_ms <= now)
    }

    /// Drops requested servers that are no longer needed and have no node yet. No action is
    /// necessary, because neither Slurm nor the region knows them.
    fn cancel(&mut self, now: i64, world: &ClusterSnapshot<'_>) -> Result<(), BurstError> {
        loop {
            let census = self.controller.census();
            if census.provisioning + census.active <= self.controller.target() {
                return Ok(());
            }
            let Some(server) = self.waiting.pop() else {
                return Ok(());
            };
            self.report_event(now, ControllerEvent::Gone(server), world)?;
        }
    }

    /// Assigns powered-down nodes to requested servers.
    fn give_nodes(&mut self, now: i64, world: &ClusterSnapshot<'_>) {
        if now < self.no_launch_before {
            return;
        }
        for name in self.names.clone() {
            if self.waiting.is_empty() {
                return;
            }
            let node = world.nodes.iter().find(|node| node.name == name);
            // Slurm must know that the node is powered down, and the region must have no instance
            // for it.
            let free = node
                .is_some_and(|node| node.is_off() && !node.is_stopping() && !node.is_down())
                && world.instance(&name).is_none()
                && !self.slots.contains_key(&name);
            if free {
                let server = self.waiting.remove(0);
                self.slots
                    .insert(name.clone(), Slot::requested(server, now));
                self.last_sent
                    .remove(&BurstAction::Rest { node: name.clone() });
                self.send_once(now, AGAIN_MS, BurstAction::PowerUp { node: name });
            }
        }
    }

    /// Deletes duplicates: if a node has two instances, for example because Slurm called the resume
    /// program twice, the older one stays.
    fn duplicates(&mut self, now: i64, world: &ClusterSnapshot<'_>) {
        for one in world.instances {
            if !self.names.contains(&one.node) {
                continue;
            }
            let counts = |other: &PoolServer| other.node == one.node && other.status.is_there();
            let elder = |other: &&PoolServer| counts(other) && other.age_key() < one.age_key();
            if one.status.is_there() && world.instances.iter().find(elder).is_some() {
                self.send_once(
                    now,
                    AGAIN_MS,
                    BurstAction::Delete {
                        instance: one.id.clone(),
                    },
                );
            }
        }
    }

    /// Starts jobs that lost their node as soon as Slurm permits: Slurm itself would delay them
    /// until their old credentials have expired.
    fn start_again(&mut self, now: i64, world: &ClusterSnapshot<'_>) {
        let displaced: Vec<u32> = self.displaced.keys().copied().collect();
        for id in displaced {
            let Some(job) = world.jobs.iter().find(|job| job.id == id) else {
                self.displaced.remove(&id);
                continue;
            };
            match job.state {
                JobState::Pending if job.launch_failed => self.launch_failed(job),
                JobState::Pending => {
                    // The place first: Slurm may start jobs as soon as it hears of a change.
                    self.keep_place(now, job);
                    if job.eligible_ms > now || job.reason == "BeginTime" {
                        self.send_once(now, SOON_MS, BurstAction::StartNow { job: id });
                    }
                }
                JobState::Running | JobState::Completed | JobState::Ended => {
                    // The job runs on the node that it is going to lose, or on another one.
                    let leaves = job.nodes.iter().any(|node| self.is_leaving(node));
                    // Its launch may still fail.
                    let launched = now - job.start_ms >= LAUNCHED_MS;
                    if (!leaves && launched) || job.is_over() {
                        self.displaced.remove(&id);
                    }
                }
                _ => {}
            }
        }
    }

    fn is_leaving(&self, name: &str) -> bool {
        let ours = self.names.iter().any(|one| one == name);
        ours && !matches!(
            self.state(name),
            Some(ServerState::Active | ServerState::Draining)
        )
    }

    /// Sets the weight, comment and features of a node with an instance, if Slurm does not have
    /// them yet.
    fn label(&mut self, now: i64, node: &Node, instance: &PoolServer) -> Result<(), BurstError> {
        let launched = instance.launched_ms.unwrap_or(now);
        let age_hours = (now - launched).max(0) as f64 / HOUR_MS as f64;
        let about = format!("{PROGRAM}: {} since {}", instance.id, launched / 1_000);
        let label = self.ages.label(age_hours, about)?;
        self.request_label(now, node, label);
        Ok(())
    }

    fn request_label(&mut self, now: i64, node: &Node, label: Label) {
        let differs = |one: &[String], other: &[String]| {
            let sorted = |all: &[String]| all.iter().cloned().collect::<BTreeSet<_>>();
            sorted(one) != sorted(other)
        };
        if node.weight != label.weight
            || node.comment != label.comment
            || (differs(&node.features, &label.features) && !label.features.is_empty())
        {
            let node = node.name.clone();
            self.send_once(now, AGAIN_MS, BurstAction::Label { node, label });
        }
    }
}
