//! The world as a whole: who is in it, and what one step does.

use super::database::Database;
use super::scheduler::{IDS, RegionScheduler};
use super::tenants::Tenants;
use crate::agent::{Agent, HostAction};
use crate::event_log::EventLog;
use crate::hypervisor::CallFate;
use crate::random::WorldRng;
use crate::script::{Op, ScriptStep};
use crate::shared_storage::{SharedStorage, StorageHandle};
use crate::violation::Invariant;
use crate::world_base::{BEGIN, WorldBase};
use crate::{EvacuationCounts, Mutation};
use ebbtide_engine::{Engine, EngineConfig, RankingPolicy};
use ebbtide_model::{
    BudgetScope, DisruptionBudget, EvacuationCause, EvacuationState, GroupId, GroupPolicy, Seconds,
    ServerGroup, ServerId, Timestamp,
};
use ebbtide_region::{
    ComebackConfig, CountingIds, CreateGroup, PutBudget, RegionConfig, RegionInput,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use uuid::Uuid;

/// Everything.
pub(crate) struct RegionWorld {
    pub(super) base: WorldBase,
    pub(super) config: RegionConfig,
    pub(super) engine: Arc<Engine>,
    pub(super) database: Database,
    pub(super) schedulers: Vec<RegionScheduler>,
    pub(super) ids: CountingIds,
    pub(super) tenants: Tenants,
    pub(super) group: Option<GroupId>,
    /// Hosts whose agents have lied, about which the database may be wrong.
    pub(super) liars: Vec<bool>,
    /// The transaction that is being written is that of one request.
    pub(super) single_request: bool,
    /// Commits so far: what is dear is looked at after some of them only.
    pub(super) commits: u64,
    /// How often a region was read from the database.
    pub(super) restored: u64,
    /// True: all schedulers decide, and the lease only says which one is on duty. False: the holder
    /// of the lease decides alone (SQLite).
    pub(super) shared: bool,
    /// Who was asked last.
    pub(super) last_scheduler: usize,
    /// Early decisions that were right when their turn came.
    pub(crate) valid_decisions: u64,
    /// Those that had to be made again.
    pub(crate) conflicts: u64,
    /// The clock of the scheduler that writes.
    pub(super) written_at: Timestamp,
    /// How often a server was told to come back.
    pub(super) resumed: u64,
    /// How often that was on another host than the one that had kept it.
    pub(super) moved: u64,
    /// Hosts on which the current transaction lets a server come back.
    pub(super) coming_back: Vec<String>,
}

impl std::ops::Deref for RegionWorld {
    type Target = WorldBase;

    fn deref(&self) -> &WorldBase {
        &self.base
    }
}

impl std::ops::DerefMut for RegionWorld {
    fn deref_mut(&mut self) -> &mut WorldBase {
        &mut self.base
    }
}

/// Short times, so that every limit is met within a run.
fn config() -> RegionConfig {
    RegionConfig {
        default_grace_seconds: Seconds(6),
        host_down_seconds: Seconds(25),
        notice_timeout_seconds: Seconds(4),
        act_timeout_seconds: Seconds(12),
        start_timeout_seconds: Seconds(30),
        failed_victim_rest_seconds: Seconds(20),
        comeback: ComebackConfig {
            enabled: true,
            first_seconds: Seconds(5),
            max_seconds: Seconds(40),
            window_seconds: Seconds(60),
            reserve_percent: 15,
            hold_seconds: Seconds(20),
            at_once: 2,
        },
        ..RegionConfig::default()
    }
}

/// The engine of all worlds. `None` never: its defaults are right, and a test says so.
pub(crate) fn engine() -> Option<Arc<Engine>> {
    Engine::new(EngineConfig::default()).ok().map(Arc::new)
}

/// The engine of worlds in which a rule of its is broken.
pub(crate) fn broken_engine(mutation: Mutation) -> Option<Arc<Engine>> {
    let config = match mutation {
        Mutation::DearerVictims => EngineConfig {
            policy: RankingPolicy::Nova,
            ..EngineConfig::default()
        },
        Mutation::ChanceWithoutSeed => EngineConfig {
            host_subset_size: 4,
            ..EngineConfig::default()
        },
        _ => return None,
    };
    Engine::new(config).ok().map(Arc::new)
}

impl RegionWorld {
    pub(crate) fn new(
        seed: u64,
        engine: Arc<Engine>,
        mutation: Option<Mutation>,
        event_log: EventLog,
    ) -> Self {
        let mut chance = WorldRng::new(seed, 2);
        let now = Timestamp::from_millis(BEGIN);
        let hosts = 2 + chance.below(3) as usize;
        let mut agents: Vec<Agent> = (0..hosts)
            .map(|n| {
                let vcpus = 4 + 2 * u64::from(chance.below(3));
                // Clocks differ, but by less than the notices' patience: otherwise agents refuse to
                // begin.
                let skew = i64::from(chance.below(3001)) - 1500;
                let mut agent = Agent::new(&format!("host-{n}"), vcpus, skew, now);
                agent.mutation = mutation;
                agent
            })
            .collect();
        // From chance of its own, too: how many of the hosts share a storage, none or at least two.
        let sharing = match WorldRng::new(seed, 6).below(10) {
            0..3 => 0,
            3..6 => 2,
            _ => hosts,
        };
        let storage = Rc::new(RefCell::new(SharedStorage::default()));
        for agent in agents.iter_mut().take(sharing) {
            let mut shared = StorageHandle::new(&storage, &agent.name);
            shared.without_token = mutation == Some(Mutation::ResumeWithoutToken);
            agent.hypervisor.shared = Some(shared);
        }
        let schedulers = (0..=chance.below(3))
            .map(|n| {
                let skew = i64::from(chance.below(1001)) - 500;
                RegionScheduler::new(format!("scheduler-{n}"), skew)
            })
            .collect();
        let mut world = Self {
            base: WorldBase::new(agents, mutation, event_log),
            config: RegionConfig {
                market: super::market::market_of(seed).unwrap_or_default(),
                ..config()
            },
            engine,
            database: Database {
                unfenced: mutation == Some(Mutation::StaleLeaseAccepted),
                ..Database::default()
            },
            liars: vec![false; hosts],
            schedulers,
            ids: CountingIds::after(IDS),
            tenants: Tenants::new(WorldRng::new(seed, 3), seed),
            group: None,
            single_request: false,
            commits: 0,
            restored: 0,
            // From chance of its own: everything else stays as it is without it.
            shared: WorldRng::new(seed, 5).percent(60),
            last_scheduler: 0,
            valid_decisions: 0,
            conflicts: 0,
            written_at: now,
            resumed: 0,
            moved: 0,
            coming_back: Vec::new(),
        };
        world.begin(&mut chance);
        world
    }

    /// The hosts register, one after the other so that their order is that of their names; some
    /// regions have a group and a budget.
    fn begin(&mut self, chance: &mut WorldRng) {
        self.lead();
        for host in 0..self.agents.len() {
            self.now = Timestamp::from_millis(self.now.as_millis() + 1);
            self.heartbeat(host);
            self.flow();
        }
        if chance.percent(40) {
            let id = GroupId(Uuid::from_u128(0x9_0000));
            let policy = if chance.percent(50) {
                GroupPolicy::AntiAffinity
            } else {
                GroupPolicy::Affinity
            };
            let group = ServerGroup {
                id,
                name: "apart".to_owned(),
                project_id: "pets".to_owned(),
                policy,
                max_server_per_host: 1,
            };
            self.command(CreateGroup { group, quota: None });
            self.group = Some(id);
        }
        if chance.percent(20) {
            self.command(PutBudget(DisruptionBudget {
                scope: BudgetScope::Project("cattle".to_owned()),
                max_victims: 3,
                window: Seconds(30),
            }));
        }
    }

    pub(super) fn scheduler_of(&self, a: u32) -> usize {
        a as usize % self.schedulers.len()
    }

    pub(crate) fn step(&mut self, step: ScriptStep) {
        let ScriptStep { op, a, b } = step;
        self.event_log.fold(op as u64);
        match op {
            Op::CreateSpot => self.create(a, b, true),
            Op::CreateNormal => self.create(a, b, false),
            Op::Delete => self.delete(a, b),
            Op::Release => self.release(a),
            Op::ToggleHost => self.toggle_host(a, b),
            Op::Send => {
                let host = self.host_of(a);
                let who = self.scheduler_of(b);
                self.send_one(who, host, false);
                self.pass_confirmations(who);
            }
            Op::Deliver => {
                let host = self.host_of(a);
                self.deliver(host);
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
                self.read(who, 1 + b as usize % 4);
            }
            Op::Flow => self.flow(),
            Op::Pass => self.pass(i64::from([50, 200, 500, 1000, 1000, 3000][a as usize % 6])),
            Op::Run => self.run(1 + b % 8),
            Op::Mend => self.mend(),
            _ => self.inject(op, a, b),
        }
        self.look_at_hosts();
    }

    /// A server that goes on with what was kept of it runs once, under its token, and is not kept
    /// meanwhile.
    fn check_shared_storage(&mut self) {
        let mut runs: BTreeMap<ServerId, &str> = BTreeMap::new();
        let mut wrong = None;
        for agent in &self.base.agents {
            let Some(shared) = &agent.hypervisor.shared else {
                continue;
            };
            let guests = agent.hypervisor.guests.iter();
            for (id, _) in guests.filter(|(id, g)| g.resumed && agent.hypervisor.runs(**id)) {
                let name = self.base.event_log.of(id.0);
                if let Some(other) = runs.insert(*id, &agent.name) {
                    wrong = Some(format!("{name} runs on {other} and on {}", agent.name));
                } else if shared.storage.borrow().is_saved(*id) || !shared.is_taken(*id) {
                    wrong = Some(format!(
                        "{name} runs on {}, which has not taken its token",
                        agent.name
                    ));
                }
            }
        }
        if let Some(what) = wrong {
            self.fail(Invariant::ExactlyOnce, what);
        }
    }

    /// What hosts have done to guests, held against what is durable.
    pub(super) fn look_at_hosts(&mut self) {
        self.check_shared_storage();
        for (host, deed) in self.deeds() {
            self.look_at(host, deed);
        }
    }

    fn look_at(&mut self, host: usize, deed: HostAction) {
        let (id, server, ends) = match deed {
            HostAction::Tells(id, server) => (id, server, false),
            HostAction::Ends(id, server) => (id, server, true),
        };
        let name = self.agents[host].name.clone();
        let what = if ends { "ended" } else { "told of its end" };
        match self.database.evacuation(id) {
            None => {
                let what = format!("{name}: a guest is {what} for an evacuation without a record");
                self.fail(Invariant::NoEndForNothing, what);
            }
            Some(e) if e.victim_id != server || e.host != name => {
                let what = format!("{name}: a guest is {what} that the evacuation is not about");
                self.fail(Invariant::NoEndForNothing, what);
            }
            Some(e) if ends && e.state == EvacuationState::Spared => {
                let what = format!("{name}: a guest is ended that was said to be spared");
                self.fail(Invariant::NoEndForNothing, what);
            }
            Some(_) => {
                self.event_log.fold_id(id.0);
                self.log(|s| match ends {
                    true => format!("{name}: {} is ended, by {}", s.of(server.0), s.of(id.0)),
                    false => format!(
                        "{name}: {} is told of its end, by {}",
                        s.of(server.0),
                        s.of(id.0)
                    ),
                });
            }
        }
    }

    /// What came of the evacuations.
    pub(crate) fn ends(&self) -> EvacuationCounts {
        let mut ends = EvacuationCounts {
            resumed: self.resumed,
            moved: self.moved,
            ..EvacuationCounts::default()
        };
        for evacuation in self
            .database
            .active
            .values()
            .chain(self.database.ended.values())
        {
            match evacuation.state {
                EvacuationState::Evacuated => {
                    ends.evacuated += 1;
                    ends.expired += u64::from(evacuation.cause == EvacuationCause::MaxLifetime);
                    ends.outbid += u64::from(evacuation.cause == EvacuationCause::OutOfBid);
                    ends.reclaimed += u64::from(evacuation.cause == EvacuationCause::Reclaim);
                }
                EvacuationState::Spared => ends.spared += 1,
                EvacuationState::Failed => ends.failed += 1,
                _ => ends.open += 1,
            }
        }
        ends
    }

    /// Sends a command to a scheduler that answers. A refusal is an answer, too.
    pub(super) fn command(&mut self, command: impl RegionInput) {
        if let Some(who) = self.answers() {
            let _ = self.input(who, vec![command]);
        }
    }
}
