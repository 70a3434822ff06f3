//! Random worlds: whatever goes wrong in whatever order, the promises hold at every step, and once things go right again,
//! everything comes to an end.
//!
//! The promises themselves are in `checks.rs` and `host.rs`; every input and every action of a hypervisor is checked. A failure
//! prints its seed and what happened. `EBBTIDE_REGION_SEEDS=FROM..TO` runs other seeds than the usual ones.

use super::checks::{everything_is_over, hosts_are_sound};
use super::host::Fate;
use super::world::{World, normal, spot, with};
use crate::{Command, CreateServers, Input, RegionConfig};
use ebbtide_model::{
    BudgetScope, DisruptionBudget, EvacuationState, Flavor, GroupId, GroupPolicy, Seconds,
    ServerGroup, ServerId, ServerStatus, Timestamp,
};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use std::ops::Range;
use uuid::Uuid;

/// Seeds of an ordinary run.
const SEEDS: Range<u64> = 0..250;
/// Random steps in one world.
const STEPS: u32 = 400;

struct Chance(Pcg64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() % (n.max(1) as u64)) as usize
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
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
        ..RegionConfig::default()
    }
}

struct Chaos {
    world: World,
    chance: Chance,
    names: Vec<String>,
    group: GroupId,
    /// How evil the world is, in percent of the steps.
    faults: usize,
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(Pcg64::seed_from_u64(seed));
        let count = 2 + chance.below(3);
        let names: Vec<String> = (0..count).map(|n| format!("host-{n}")).collect();
        let hosts: Vec<(&str, u64)> = names
            .iter()
            .map(|n| (n.as_str(), 4 + 2 * chance.below(3) as u64))
            .collect();
        let mut world = World::with_config(&hosts, config());
        for name in &names {
            // Clocks differ, but by less than the notices' patience: otherwise agents refuse to begin.
            world.host(name).skew = chance.below(3001) as i64 - 1500;
        }
        let group = GroupId(Uuid::from_u128(0x9_0000));
        let definition = ServerGroup {
            id: group,
            name: "apart".to_owned(),
            project_id: "pets".to_owned(),
            policy: *chance.one(&[GroupPolicy::AntiAffinity, GroupPolicy::Affinity]),
            max_server_per_host: 1,
        };
        let _ = world.input(Input::Command(Command::CreateGroup(definition)));
        if chance.percent(30) {
            let budget = DisruptionBudget {
                scope: BudgetScope::Project("cattle".to_owned()),
                max_victims: 3,
                window: Seconds(30),
            };
            let _ = world.input(Input::Command(Command::PutBudget(budget)));
        }
        let faults = *chance.one(&[0, 5, 15, 30]);
        Self {
            world,
            chance,
            names,
            group,
            faults,
        }
    }

    fn host(&mut self) -> String {
        self.chance.one(&self.names).clone()
    }

    fn flavor(&mut self) -> Flavor {
        let vcpus = 1 + self.chance.below(4) as u32;
        if self.chance.percent(40) {
            return normal(vcpus);
        }
        let ending = *self
            .chance
            .one(&["terminate", "terminate", "stop", "hibernate"]);
        let grace = *self.chance.one(&["0", "6", "6", "15"]);
        let protected = *self.chance.one(&["0", "0", "10"]);
        with(
            &spot(vcpus),
            &[
                ("ebbtide:interruption", ending),
                ("ebbtide:grace_seconds", grace),
                ("ebbtide:protected_seconds", protected),
            ],
        )
    }

    fn some_server(&mut self, wanted: impl Fn(ServerStatus) -> bool) -> Option<ServerId> {
        let all = self.world.database.servers.values();
        let mut ids: Vec<ServerId> = all.filter(|s| wanted(s.status)).map(|s| s.id).collect();
        ids.sort_unstable();
        (!ids.is_empty()).then(|| *self.chance.one(&ids))
    }

    fn command(&mut self, command: Command) {
        // Refusals are answers, and a commit that fails is one of the faults.
        let _ = self.world.input(Input::Command(command));
    }

    // ---- one random step ----

    fn step(&mut self) {
        if self.chance.percent(self.faults) {
            self.fault();
        }
        match self.chance.below(104) {
            99..101 => self.world.flush(),
            101..103 => {
                let seconds = 1 + self.chance.below(8) as u32;
                self.world.run(seconds);
            }
            0..10 => self.create(),
            10..14 => self.delete(),
            14..16 => {
                if let Some(id) = self.some_server(|s| s == ServerStatus::Evacuating) {
                    self.command(Command::ReleaseServer(id));
                }
            }
            16..30 => self.time_passes(),
            30..50 => {
                let host = self.host();
                self.world.send_one(&host);
            }
            50..62 => {
                let (host, now) = (self.host(), self.world.now);
                self.world.host(&host).deliver(now);
            }
            62..76 => self.complete(),
            76..86 => {
                let host = self.host();
                self.world.confirm_one(&host);
            }
            86..97 => {
                self.world.read_one();
            }
            97..99 => {
                let host = self.host();
                self.world.heartbeat(&host);
            }
            _ => {
                let name = self.host();
                let disable = Command::DisableHost {
                    name: name.clone(),
                    reason: "why not".to_owned(),
                };
                let toggle = if self.chance.percent(30) {
                    disable
                } else {
                    Command::EnableHost(name)
                };
                self.command(toggle);
            }
        }
        hosts_are_sound(&self.world);
    }

    fn create(&mut self) {
        let flavor = self.flavor();
        let count = *self.chance.one(&[1, 1, 1, 2, 3]);
        let mut request = self.world.request(&flavor, count);
        if self.chance.percent(15) {
            request.group_id = Some(self.group);
        }
        let external = self.chance.percent(5);
        let create = Command::CreateServers(Box::new(CreateServers {
            name: "vm".to_owned(),
            request,
            external,
        }));
        self.command(create.clone());
        if self.chance.percent(10) {
            self.command(create);
        }
        if self.chance.percent(5) {
            let id = self.world.new_id();
            let adopt = self.world.adopt(&self.names[0], &spot(1), id);
            self.command(Command::AdoptServer(Box::new(adopt)));
        }
    }

    fn delete(&mut self) {
        let id = match self.chance.below(3) {
            0 => self.some_server(|s| s == ServerStatus::Waiting),
            _ => self.some_server(|s| !s.is_gone()),
        };
        if let Some(id) = id {
            self.command(Command::DeleteServer(id));
        }
    }

    fn time_passes(&mut self) {
        let millis = *self.chance.one(&[50, 200, 500, 1000, 1000, 3000]);
        self.world.now = Timestamp::from_millis(self.world.now.as_millis() + millis);
        let now = self.world.now;
        for name in self.names.clone() {
            self.world.host(&name).tick(now);
            if self.chance.percent(10) {
                self.world.heartbeat(&name);
            }
        }
        if self.chance.percent(70) {
            self.world.tick();
        }
    }

    fn complete(&mut self) {
        let (host, now) = (self.host(), self.world.now);
        let evil = self.chance.percent(self.faults);
        let fate = match self.chance.below(5) {
            _ if !evil => Fate::Works,
            0..2 => Fate::Fails,
            2..4 => Fate::WorksButFails,
            _ => Fate::NoRoom,
        };
        let calls: Vec<_> = self.world.host(&host).calls.keys().copied().collect();
        if !calls.is_empty() {
            let action = *self.chance.one(&calls);
            self.world.host(&host).complete(action, fate, now);
        }
    }

    fn fault(&mut self) {
        let (host, now) = (self.host(), self.world.now);
        match self.chance.below(20) {
            0..3 => self.world.restart_scheduler(),
            3..6 => self.world.fail_commit_after = Some(self.chance.below(3) as u32),
            6..8 => self.world.host(&host).crash(),
            8..12 => self.world.host(&host).restart(now),
            12 => self.world.broker_up = false,
            13..15 => self.world.broker_up = true,
            15 | 16 => self.repeat_command(&host),
            17 | 18 => self.shuffle_reports(),
            _ => {
                if self.chance.percent(30) {
                    self.hypervisor_loses_one(&host);
                }
            }
        }
    }

    /// A message for an agent comes twice, the second time later than others.
    fn repeat_command(&mut self, host: &str) {
        let queue = &self.world.hosts[host].queue;
        if queue.is_empty() {
            return;
        }
        let (from, to) = (
            self.chance.below(queue.len()),
            self.chance.below(queue.len() + 1),
        );
        let message = queue[from].clone();
        self.world.host(host).queue.insert(to.max(from), message);
    }

    /// A report comes twice, or one is overtaken by others.
    fn shuffle_reports(&mut self) {
        let n = self.world.reports.len();
        if n == 0 {
            return;
        }
        let (from, to) = (self.chance.below(n), self.chance.below(n));
        if self.chance.percent(50) {
            let message = self.world.reports[from].clone();
            self.world.reports.insert(to, message);
        } else {
            self.world.reports.swap(from, to);
        }
    }

    fn hypervisor_loses_one(&mut self, host: &str) {
        let guests: Vec<ServerId> = self.world.hosts[host].guests.keys().copied().collect();
        if !guests.is_empty() {
            let id = *self.chance.one(&guests);
            self.world.tell(|| format!("   {host} loses {id}"));
            self.world.host(host).guests.remove(&id);
        }
    }

    // ---- the end ----

    /// All goes well from now on. A host that is dead stays so, if `dead` says that.
    fn heal(&mut self, dead: Option<&str>) {
        self.world
            .tell(|| "   everything is well from now on".to_owned());
        self.world.broker_up = true;
        self.world.fail_commit_after = None;
        let now = self.world.now;
        for name in self.names.clone() {
            let host = self.world.host(&name);
            if dead == Some(name.as_str()) {
                host.crash();
            } else if !host.alive {
                host.restart(now);
            }
        }
        self.world.flush();
        self.world.run(180);
    }
}

fn everybody_who_waited_knows(world: &World) {
    for server in world.database.servers.values() {
        let waits = matches!(
            server.status,
            ServerStatus::Waiting | ServerStatus::Building
        );
        assert!(!waits, "{} is {} for ever", server.id, server.status);
    }
    for evacuation in world.database.evacuations.values() {
        assert!(
            evacuation.state.is_final(),
            "{} is {} for ever",
            evacuation.id,
            evacuation.state
        );
    }
}

/// One world from its birth to its end, and what came of its victims.
fn live(seed: u64) -> [usize; 3] {
    let mut chaos = Chaos::new(seed);
    for _ in 0..STEPS {
        chaos.step();
    }
    if chaos.chance.percent(20) {
        let dead = chaos.host();
        chaos.heal(Some(&dead));
        everybody_who_waited_knows(&chaos.world);
    }
    chaos.heal(None);
    everybody_who_waited_knows(&chaos.world);
    everything_is_over(&chaos.world);
    let count = |state| {
        chaos
            .world
            .database
            .evacuations
            .values()
            .filter(|e| e.state == state)
            .count()
    };
    [
        EvacuationState::Evacuated,
        EvacuationState::Spared,
        EvacuationState::Failed,
    ]
    .map(count)
}

fn seeds() -> Range<u64> {
    let Ok(wanted) = std::env::var("EBBTIDE_REGION_SEEDS") else {
        return SEEDS;
    };
    let (from, to) = wanted
        .split_once("..")
        .expect("EBBTIDE_REGION_SEEDS=FROM..TO");
    from.parse().expect("FROM is a number")..to.parse().expect("TO is a number")
}

#[test]
fn in_random_worlds_every_promise_is_kept_and_everything_ends() {
    let seeds = seeds();
    let mut ends = [0; 3];
    for seed in seeds.clone() {
        let outcome = std::panic::catch_unwind(|| live(seed));
        match outcome {
            Ok(counts) => ends.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n),
            Err(panic) => {
                println!("EBBTIDE_REGION_SEEDS={seed}..{} fails", seed + 1);
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("seeds {seeds:?}: evacuated, spared, failed: {ends:?}");
    // A world in which nothing happens proves nothing.
    if seeds == SEEDS {
        assert!(
            ends.iter().all(|n| *n > 100),
            "evacuated, spared, failed: {ends:?}"
        );
    }
}
