//! The world as a whole: who is in it, and what one step does.

use super::callers::CallerRequest;
use super::drive::ActivePreemption;
use super::ledger::{Ledger, OwnerKey};
use super::placement::Placement;
use crate::agent::{Agent, HostAction};
use crate::event_log::EventLog;
use crate::hypervisor::CallFate;
use crate::random::WorldRng;
use crate::script::{Op, ScriptStep};
use crate::violation::Invariant;
use crate::world_base::WorldBase;
use crate::{EvacuationCounts, Mutation};
use ebbtide_engine::Engine;
use ebbtide_evacuation::EvacuationPolicy;
use ebbtide_model::{EvacuationCause, Seconds, ServerId, Timestamp};
use ebbtide_preemption::{Preemption, PreemptionPolicy, VictimState};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use uuid::Uuid;

/// More rounds than any burst of messages takes.
const ROUNDS: u32 = 2_000;

/// A scheduler of OpenStack mode.
#[derive(Debug)]
pub(super) struct NovaScheduler {
    pub(super) name: String,
    /// Whose name that is: the place of its beats in the ledger.
    pub(super) node: usize,
    /// The ledger knows its life: before that it does nothing.
    pub(super) registered: bool,
    /// There is another one of its name: it has ended for good.
    pub(super) replaced: bool,
    pub(super) up: bool,
    pub(super) paused: bool,
    /// A write has failed: it rests for a moment.
    pub(super) rests: bool,
    /// It dies after doing the next but so many, before what came of it is written.
    pub(super) dies_in: Option<u32>,
    pub(super) skew: i64,
    pub(super) life: u64,
    /// When it said last that it lives.
    pub(super) beat_at: Option<Timestamp>,
    pub(super) driven: BTreeMap<Uuid, ActivePreemption>,
    /// Records that are being written for the first time, with the request and how often that was
    /// tried.
    pub(super) writing: BTreeMap<Uuid, (usize, Preemption, u32)>,
    /// Requests that this scheduler holds and whose record it could not take over yet. True if it
    /// may take the record from another scheduler that also has the request.
    pub(super) going_on: VecDeque<(usize, bool)>,
    /// Victims of open rows, as it saw them last.
    pub(super) leaving: BTreeSet<Uuid>,
}

impl NovaScheduler {
    pub(super) fn new(node: usize, life: u64, skew: i64) -> Self {
        Self {
            name: format!("scheduler-{node}"),
            node,
            registered: true,
            replaced: false,
            up: true,
            paused: false,
            rests: false,
            dies_in: None,
            skew,
            life,
            beat_at: None,
            driven: BTreeMap::new(),
            writing: BTreeMap::new(),
            going_on: VecDeque::new(),
            leaving: BTreeSet::new(),
        }
    }

    pub(super) fn works(&self) -> bool {
        self.is_running() && self.registered && !self.rests
    }

    /// Its process runs.
    pub(super) fn is_running(&self) -> bool {
        self.up && !self.paused && !self.replaced
    }

    pub(super) fn owner(&self) -> OwnerKey {
        (self.node, self.life)
    }
}

/// An instance as Nova knows it.
#[derive(Debug, Clone)]
pub(super) struct WorldInstance {
    pub(super) host: usize,
    pub(super) vcpus: u64,
    pub(super) spot: bool,
    pub(super) since: Timestamp,
    /// How long it may live.
    pub(super) lifetime: Option<Seconds>,
}

/// Everything.
pub(crate) struct NovaWorld {
    pub(super) base: WorldBase,
    pub(super) policy: PreemptionPolicy,
    pub(super) placement: Placement,
    pub(super) ledger: Ledger,
    pub(super) engine: Arc<Engine>,
    pub(super) schedulers: Vec<NovaScheduler>,
    /// How many lives the schedulers of each name have had.
    pub(super) lives: Vec<u64>,
    /// Instances that are not deleted.
    pub(super) instances: BTreeMap<Uuid, WorldInstance>,
    pub(super) requests: Vec<CallerRequest>,
    /// Which request is for an instance.
    pub(super) of: BTreeMap<Uuid, usize>,
    /// Requests whose callers wait, or whose instances have a place and were not started yet.
    pub(super) unsettled: BTreeSet<usize>,
    /// Requests that wait in the queue for any scheduler.
    pub(super) queue: VecDeque<usize>,
    /// Preemptions whose swap is in force.
    pub(super) in_force: BTreeSet<Uuid>,
    /// Preemptions whose swap has ever been in force.
    pub(super) swapped: BTreeSet<Uuid>,
    /// What became of evacuations, by identifier: also those that were begun anew.
    pub(super) records: BTreeMap<Uuid, Uuid>,
    /// Evacuations whose spare the broker has.
    pub(super) spares: BTreeSet<Uuid>,
    pub(super) at_once: bool,
    /// Some preemptible instances have a maximum lifetime.
    pub(super) has_lifetimes: bool,
    /// Owners take hosts back. Not in every world: what they have cannot be preempted for others.
    pub(super) has_reclaims: bool,
    pub(super) ids: u128,
}

impl std::ops::Deref for NovaWorld {
    type Target = WorldBase;

    fn deref(&self) -> &WorldBase {
        &self.base
    }
}

impl std::ops::DerefMut for NovaWorld {
    fn deref_mut(&mut self) -> &mut WorldBase {
        &mut self.base
    }
}

/// Short times, so that every limit is met within a run.
fn policy() -> PreemptionPolicy {
    PreemptionPolicy {
        evacuation: EvacuationPolicy {
            notice_timeout: Seconds(4),
            notice_attempts: 3,
            act_timeout: Seconds(12),
            failed_rest: Seconds(10),
        },
        room_timeout: Seconds(60),
        caller_every: Seconds(5),
        give_back_pause: Seconds(2),
        ..PreemptionPolicy::default()
    }
}

impl NovaWorld {
    pub(crate) fn new(
        seed: u64,
        engine: Arc<Engine>,
        mutation: Option<Mutation>,
        event_log: EventLog,
    ) -> Self {
        let mut chance = WorldRng::new(seed, 4);
        let hosts = 1 + chance.below(3) as usize;
        let mut capacity = Vec::with_capacity(hosts);
        let agents: Vec<Agent> = (0..hosts)
            .map(|n| {
                let vcpus = 4 + 2 * u64::from(chance.below(3));
                capacity.push(vcpus);
                let skew = i64::from(chance.below(3001)) - 1500;
                let now = Timestamp::from_millis(crate::world_base::BEGIN);
                let mut agent = Agent::new(&format!("host-{n}"), vcpus, skew, now);
                agent.mutation = mutation;
                agent
            })
            .collect();
        let base = WorldBase::new(agents, mutation, event_log);
        let schedulers: Vec<NovaScheduler> = (0..=chance.below(3))
            .map(|n| NovaScheduler::new(n as usize, 1, i64::from(chance.below(1001)) - 500))
            .collect();
        let ledger = Ledger {
            beats: vec![(1, base.now); schedulers.len()],
            careless: mutation == Some(Mutation::TwoOwnersOfOneRow),
            keyless: mutation == Some(Mutation::UsageWithoutKey),
            ..Ledger::default()
        };
        let careless = mutation == Some(Mutation::StaleGenerationAccepted);
        let placement = Placement::new(capacity, careless);
        Self {
            base,
            policy: policy(),
            placement,
            ledger,
            engine,
            lives: vec![1; schedulers.len()],
            schedulers,
            instances: BTreeMap::new(),
            requests: Vec::new(),
            of: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            queue: VecDeque::new(),
            in_force: BTreeSet::new(),
            swapped: BTreeSet::new(),
            records: BTreeMap::new(),
            spares: BTreeSet::new(),
            at_once: chance.percent(25),
            has_reclaims: seed.is_multiple_of(3),
            has_lifetimes: seed >= crate::region::LIFETIMES_FROM,
            ids: 0x2d00_0000_0000_4000_8000_0000_0000_0000,
        }
    }

    pub(super) fn new_id(&mut self) -> Uuid {
        self.ids += 1;
        Uuid::from_u128(self.ids)
    }

    pub(super) fn clock(&self, who: usize) -> Timestamp {
        Timestamp::from_millis(self.now.as_millis() + self.schedulers[who].skew)
    }

    fn scheduler_of(&self, a: u32) -> usize {
        a as usize % self.schedulers.len()
    }

    pub(crate) fn step(&mut self, step: ScriptStep) {
        let ScriptStep { op, a, b } = step;
        self.event_log.fold(op as u64);
        match op {
            Op::CreateSpot => self.ask(a, b, true),
            Op::CreateNormal => self.ask(a, b, false),
            Op::Delete => self.delete(a),
            Op::ToggleHost if self.has_reclaims => self.toggle_reclaim(a, b),
            Op::Release | Op::ToggleHost | Op::Send => {
                let who = self.scheduler_of(a);
                self.drive_one(who, b);
            }
            Op::Deliver => {
                let host = self.host_of(a);
                self.take_message(host);
            }
            Op::Complete => {
                let host = self.host_of(a);
                self.end_call(host, b, CallFate::Works);
            }
            Op::Confirm => {
                let host = self.host_of(a);
                self.publish_one(host, false);
            }
            Op::Read => {
                let who = self.scheduler_of(a);
                if b.is_multiple_of(2) {
                    self.read_report(who);
                } else {
                    self.take_request(who);
                }
            }
            Op::Flow => self.flow(),
            Op::Pass => self.pass(i64::from([50, 200, 500, 1000, 1000, 3000][a as usize % 6])),
            Op::Run => self.run(1 + b % 8),
            Op::Mend => self.mend(),
            _ => self.inject(op, a, b),
        }
        self.look_at_hosts();
    }

    /// What hosts have done to guests, held against the ledger; who is gone has gone from Nova,
    /// too.
    pub(super) fn look_at_hosts(&mut self) {
        for (host, deed) in self.deeds() {
            let (id, server, ends) = match deed {
                HostAction::Tells(id, server) => (id, server, false),
                HostAction::Ends(id, server) => (id, server, true),
            };
            self.look_at(host, id.0, server, ends);
        }
        self.remove_ended_instances();
        self.start_who_may();
    }

    fn look_at(&mut self, host: usize, id: Uuid, server: ServerId, ends: bool) {
        let name = self.agents[host].name.clone();
        let what = if ends { "ended" } else { "told of its end" };
        let Some(record) = self.records.get(&id).copied() else {
            let what = format!("{name}: a guest is {what} for an evacuation without a notice");
            return self.fail(Invariant::NoEndForNothing, what);
        };
        let row = self.ledger.record(record);
        let victims = row.map(|r| r.victims.as_slice()).unwrap_or_default();
        let spared = victims
            .iter()
            .any(|v| v.evacuation.0 == id && v.state == VictimState::Spared);
        // The fate of the victim is unknown after an agent was silent. But a spare must have been
        // sent to that agent.
        let failed = victims
            .iter()
            .any(|v| v.evacuation.0 == id && matches!(v.state, VictimState::Failed { .. }));
        let unknown = failed && self.spares.contains(&id);
        // A notice about an instance that is already gone harms no tenant.
        let there = ends || self.instances.contains_key(&server.0);
        if !there {
            return;
        }
        // Without a newcomer there is no swap that could be given back.
        let alone = row.is_some_and(|r| r.newcomers.is_empty());
        if spared && ends || !alone && !self.in_force.contains(&record) && !unknown {
            let why = if spared {
                "the ledger says that it is spared"
            } else {
                "its preemption was given back"
            };
            let what = format!(
                "{name}: {} is {what} although {why}",
                self.event_log.of(server.0)
            );
            return self.fail(Invariant::NoEndForNothing, what);
        }
        self.log(|s| format!("{name}: {} is {what}", s.of(server.0)));
    }

    /// Instances whose guests are not there any more are deleted in Nova, and hold nothing.
    fn remove_ended_instances(&mut self) {
        for host in 0..self.agents.len() {
            let there = &self.base.agents[host].hypervisor;
            let placement = &mut self.placement;
            self.instances.retain(|id, instance| {
                let stays = instance.host != host || there.runs(ServerId(*id));
                if !stays {
                    placement.delete(*id);
                }
                stays
            });
        }
    }

    // ---- time ----

    /// Everything that can move without time passing moves.
    pub(super) fn flow(&mut self) {
        for _ in 0..ROUNDS {
            if self.broken.is_some() {
                return;
            }
            let mut moved = false;
            for who in 0..self.schedulers.len() {
                for _ in 0..8 {
                    moved |= self.take_request(who);
                }
                moved |= self.drive_all(who);
                while self.read_report(who) {
                    moved = true;
                }
            }
            for host in 0..self.agents.len() {
                while self.take_message(host) {
                    moved = true;
                }
                moved |= self.end_calls(host);
                while self.publish_one(host, false) {
                    moved = true;
                }
            }
            self.look_at_hosts();
            if !moved {
                return;
            }
        }
        self.fail(
            Invariant::EverythingEnds,
            "messages go back and forth without end".to_owned(),
        );
    }

    /// Time passes; everybody looks at the clock.
    pub(super) fn pass(&mut self, millis: i64) {
        self.base.now = Timestamp::from_millis(self.now.as_millis() + millis);
        let now = self.now;
        for host in 0..self.agents.len() {
            self.agents[host].tick(now);
        }
        self.look_at_hosts();
        self.callers_lose_patience();
        for who in 0..self.schedulers.len() {
            self.schedulers[who].rests = false;
            self.beat(who);
            self.end_lifetimes(who);
            self.evict_reclaimed(who);
        }
    }

    pub(super) fn run(&mut self, seconds: u32) {
        for _ in 0..seconds {
            if self.broken.is_some() {
                return;
            }
            self.pass(1000);
            self.flow();
        }
    }

    /// What came of the evacuations.
    pub(crate) fn ends(&self) -> EvacuationCounts {
        let mut ends = EvacuationCounts::default();
        for record in self.ledger.records() {
            let expires = record.cause == EvacuationCause::MaxLifetime;
            for victim in &record.victims {
                let gone = matches!(victim.state, VictimState::Evacuated { .. });
                ends.expired += u64::from(expires && gone);
                ends.reclaimed += u64::from(record.is_reclaim() && gone);
                match victim.state {
                    VictimState::Evacuated { .. } => ends.evacuated += 1,
                    VictimState::Spared => ends.spared += 1,
                    VictimState::Failed { .. } => ends.failed += 1,
                    // A swap that was refused is no evacuation.
                    VictimState::Claimed => {}
                    _ => ends.open += 1,
                }
            }
        }
        ends
    }
}
