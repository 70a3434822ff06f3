//! Bags by primary and backup maps on a real region: `ebbtide-batch bag --rehearse` takes the
//! servers of each plan, normal requests make preemptible ones hibernate at random, and every
//! deadline that a plan promised is met.
//!
//! A rehearsal runs nothing on the servers: a task is done once its server was active for as long
//! as the task takes. The short form is part of every run of the tests. The long ones are asked
//! for:
//!
//! ```console
//! $ cargo nextest run -p ebbtide-integration-tests --test e2e --run-ignored only -E 'test(maps)'
//! ```

use super::kit::{flavor, nothing_is_overcommitted, request};
use super::real_guests;
use ebbtide_harness::{Hypervisor, Process, ProcessCommand};
use ebbtide_integration_tests::region::bin;
use ebbtide_integration_tests::{Region, RegionOptions};
use ebbtide_proto::v1;
use futures::StreamExt as _;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Seeded numbers: splitmix64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn from(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }
}

/// How a scene's bags are.
#[derive(Clone, Copy)]
struct Form {
    /// Bags in all, and how many run at a time.
    bags: u64,
    at_once: usize,
    /// Processors of a server's type.
    vcpus: u32,
    /// Tasks of a bag, and how long they take, seconds.
    tasks: (u64, u64),
    lengths: (u64, u64),
    /// Deadlines, boot time and margin, seconds.
    deadlines: (u64, u64),
    boot: u64,
    margin: u64,
    /// Every so many bags the program is killed and started again.
    killed: u64,
    /// Normal servers at a time, each as large as a host, and how long they stay, milliseconds.
    normal: usize,
    stays: (u64, u64),
    pauses: (u64, u64),
}

/// What became of a bag, from its journal.
#[derive(Debug, Default)]
struct Outcome {
    took: i64,
    deadline: i64,
    hibernated: usize,
    resumed: usize,
    moved: usize,
}

struct Scene {
    region: Region,
    form: Form,
    nodes: BTreeMap<String, Hypervisor>,
    seed: u64,
    over: Cell<bool>,
    /// How often the program was killed.
    kills: Cell<usize>,
    outcomes: RefCell<Vec<Outcome>>,
}

impl Scene {
    fn path(&self, name: &str) -> PathBuf {
        self.region.dir().join(name)
    }

    /// Writes the configuration and the bag of a run.
    fn files(&self, run: u64, chance: &mut Chance) -> (PathBuf, PathBuf) {
        let form = self.form;
        let (dir, endpoint) = (self.path(&format!("bag-{run}")), self.region.endpoint());
        std::fs::create_dir_all(&dir).unwrap();
        let ty = |name: &str, node: &str, market: &str, price: &str| {
            format!(
                "[[types]]\nname = \"{name}\"\nnodes = \"{node}[1-8]\"\nflavor = \"{name}\"\nmarket = \"{market}\"\n\
                 vcpus = {}\nmemory_mb = 4000\nprice = \"{price}\"\n",
                form.vcpus
            )
        };
        let text = format!(
            "state_dir = \"{}\"\nlisten = \"unix:/nowhere\"\npoll_seconds = 0.25\n[slurm]\n\
             [region]\nendpoint = \"{}\"\nproject = \"bag-{run}\"\n{}{}\
             [policy]\nlength_reserve = 0.0\nlag_seconds = 1\nlaunch_again_seconds = 1\n",
            dir.display(),
            endpoint.unwrap(),
            ty("sleeps", "p", "preemptible", "0.10"),
            ty("stays", "d", "on-demand", "0.30"),
        );
        let config = dir.join("bags.toml");
        std::fs::write(&config, text).unwrap();
        let tasks = chance.from(form.tasks.0, form.tasks.1);
        let lengths = (0..tasks).map(|_| chance.from(form.lengths.0, form.lengths.1));
        let lengths: Vec<u64> = lengths.collect();
        let bag = json!({
            "name": format!("bag-{run}"), "dir": "/shared", "command": "true",
            "rules": {
                "deadline": chance.from(form.deadlines.0, form.deadlines.1),
                "boot": form.boot, "margin": form.margin, "slot": "1s",
            },
            "tasks": [{
                "name": "t", "memory_mb": 100, "durations": lengths,
            }],
        });
        let file = dir.join("bag.json");
        std::fs::write(&file, bag.to_string()).unwrap();
        (config, file)
    }

    /// One bag, from its begin until its servers are given back.
    async fn bag(&self, run: u64) {
        let mut chance = Chance(self.seed ^ (run << 20));
        let (config, file) = self.files(run, &mut chance);
        let dir = file.parent().unwrap();
        let start = |at: u32| -> Process {
            ProcessCommand::new("ebbtide-batch", bin("ebbtide-batch"))
                .arg("bag")
                .arg(&file)
                .arg("--rehearse")
                .arg("--config")
                .arg(&config)
                .spawn(dir.join(format!("{at}.log")))
                .unwrap()
        };
        let mut process = start(1);
        if run.is_multiple_of(self.form.killed) {
            let after = chance.from(500, 5_000);
            tokio::time::sleep(Duration::from_millis(after)).await;
            // One that has ended would begin the bag once more.
            if process.exit_status().is_none() {
                process.kill();
                drop(process);
                process = start(2);
                self.kills.set(self.kills.get() + 1);
            }
        }
        let status = process.wait_exit(Duration::from_secs(180)).await.unwrap();
        let journal = std::fs::read_to_string(dir.join("maps.jsonl")).unwrap();
        assert!(
            status.success(),
            "run {run}: {}\n{journal}",
            process.log_tail()
        );
        let outcome = outcome(&journal);
        assert!(
            outcome.took <= outcome.deadline,
            "run {run}: {outcome:?}\n{journal}"
        );
        self.outcomes.borrow_mut().push(outcome);
    }

    async fn bags(&self) {
        let all = futures::stream::iter(1..=self.form.bags).map(|run| self.bag(run));
        all.buffer_unordered(self.form.at_once)
            .collect::<Vec<()>>()
            .await;
        self.over.set(true);
    }

    /// Normal servers that take a whole host on which a bag's server is, for a while.
    async fn normal_servers(&self) {
        let lanes = (0..self.form.normal).map(|lane| self.normal_server(lane as u64));
        futures::future::join_all(lanes).await;
    }

    async fn normal_server(&self, lane: u64) {
        let mut chance = Chance(self.seed ^ (lane + 1) << 50);
        let mut servers = self.region.servers().await.unwrap();
        while !self.over.get() {
            let pause = chance.from(self.form.pauses.0, self.form.pauses.1);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let list = v1::ListServersRequest::default();
            let all = servers.list_servers(list).await.unwrap().into_inner();
            let used = all.servers.iter().filter(|one| {
                one.status == "active" && one.flavor_name == "sleeps" && !one.host.is_empty()
            });
            let used: Vec<&str> = used.map(|one| one.host.as_str()).collect();
            if used.is_empty() {
                continue;
            }
            let host = used[chance.from(0, used.len() as u64 - 1) as usize].to_owned();
            let create = v1::CreateServersRequest {
                name: "urgent".to_owned(),
                request: Some(v1::PlacementRequest {
                    force_hosts: vec![host],
                    ..request("whole", 1)
                }),
                max_price: String::new(),
            };
            let made = servers.create_servers(create).await.unwrap().into_inner();
            let stays = chance.from(self.form.stays.0, self.form.stays.1);
            tokio::time::sleep(Duration::from_millis(stays)).await;
            for one in made.servers {
                let delete = v1::DeleteServerRequest { id: one.id };
                servers.delete_server(delete).await.unwrap();
            }
        }
    }

    /// A guest that was frozen goes on where it was: it is booted once.
    async fn consoles(&self) {
        let mut boots: BTreeMap<PathBuf, usize> = BTreeMap::new();
        while !self.nodes.is_empty() && !self.over.get() {
            for node in self.nodes.values() {
                let guests = std::fs::read_dir(node.dir().join("i"));
                for guest in guests.into_iter().flatten().flatten() {
                    let console = std::fs::read(guest.path().join("console.log"));
                    let text = String::from_utf8_lossy(&console.unwrap_or_default()).into_owned();
                    let ready = text.matches("READY").count();
                    let most = boots.entry(guest.path()).or_default();
                    *most = ready.max(*most);
                }
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        assert!(boots.values().all(|count| *count <= 1), "{boots:?}");
        if !self.nodes.is_empty() {
            let booted = boots.values().filter(|count| **count == 1).count();
            eprintln!(
                "{} guests, {booted} of them seen booted, none twice",
                boots.len()
            );
        }
    }

    /// All bags, and what came of them together.
    async fn happen(&self, hibernations: usize) {
        tokio::join!(self.bags(), self.normal_servers(), self.consoles());
        let all = self.outcomes.take();
        assert_eq!(all.len() as u64, self.form.bags);
        let sum = |part: fn(&Outcome) -> usize| all.iter().map(part).sum::<usize>();
        let nearest = all.iter().map(|one| one.deadline - one.took).min();
        let (hibernated, resumed) = (sum(|one| one.hibernated), sum(|one| one.resumed));
        let (moved, waited) = (
            all.iter().filter(|one| one.moved > 0).count(),
            all.iter()
                .filter(|one| one.resumed > 0 && one.moved == 0)
                .count(),
        );
        eprintln!(
            "seed {}: {} of {} bags met their deadline, {} kills, {hibernated} hibernations, {resumed} resumed, \
             {moved} bags moved tasks ({} tasks), {waited} waited a hibernation out and moved none; \
             the nearest was done {} ms before its deadline",
            self.seed,
            all.len(),
            self.form.bags,
            self.kills.get(),
            sum(|one| one.moved),
            nearest.unwrap_or(0)
        );
        assert!(hibernated >= hibernations, "{hibernated}");
        nothing_is_overcommitted(&self.region).await;
        let list = v1::ListServersRequest::default();
        let mut servers = self.region.servers().await.unwrap();
        let left = servers.list_servers(list).await.unwrap().into_inner();
        let left: Vec<&v1::Server> = left
            .servers
            .iter()
            .filter(|one| one.project_id.starts_with("bag-"))
            .filter(|one| !["deleted", "deleting", "preempted"].contains(&one.status.as_str()))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Reads a journal: the deadline is judged by its times, not by what the program says.
fn outcome(journal: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let (mut begun, mut done, mut tasks) = (0, 0, 0);
    for line in journal.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        let at = entry["at"].as_i64().unwrap();
        match entry["event"].as_str().unwrap() {
            "begun" => {
                begun = at;
                let document = &entry["document"];
                outcome.deadline = document["rules"]["deadline"].as_i64().unwrap() * 1_000;
                tasks = document["tasks"][0]["durations"].as_array().unwrap().len();
            }
            "finished" => {
                done += 1;
                outcome.took = outcome.took.max(at - begun);
                outcome.moved += usize::from(entry["vm"]["backup"].is_u64());
            }
            "hibernated" => outcome.hibernated += 1,
            "resumed" => outcome.resumed += 1,
            _ => {}
        }
    }
    assert_eq!(done, tasks, "{journal}");
    assert!(journal.contains("given_back"), "{journal}");
    outcome
}

const SLEEPS: [(&str, &str); 3] = [
    ("ebbtide:preemptible", "true"),
    ("ebbtide:interruption", "hibernate"),
    ("ebbtide:grace_seconds", "0"),
];
const COMEBACK: &str = "comeback = { first_seconds = 1, max_seconds = 2, reserve_percent = 0 }";

/// A region with simulated hypervisors, whose servers hibernate.
async fn simulated(hosts: usize, form: Form, seed: u64) -> Scene {
    let hosts: Vec<String> = (0..hosts).map(|at| format!("host-{at}")).collect();
    let region = Region::start(RegionOptions {
        hosts,
        region: COMEBACK.to_owned(),
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    flavor(&region, "sleeps", form.vcpus, &SLEEPS).await;
    flavor(&region, "stays", form.vcpus, &[]).await;
    flavor(&region, "whole", 8, &[]).await;
    Scene {
        region,
        form,
        nodes: BTreeMap::new(),
        seed,
        over: Cell::new(false),
        kills: Cell::new(0),
        outcomes: RefCell::default(),
    }
}

const SIMULATED: Form = Form {
    bags: 10,
    at_once: 10,
    vcpus: 2,
    tasks: (3, 6),
    lengths: (1, 2),
    deadlines: (18, 20),
    boot: 4,
    margin: 5,
    killed: 5,
    normal: 2,
    stays: (500, 4_000),
    pauses: (200, 1_000),
};

#[tokio::test]
async fn bags_meet_their_deadlines_although_their_servers_hibernate_and_programs_are_killed() {
    let scene = simulated(10, SIMULATED, 1).await;
    scene.happen(1).await;
}

#[tokio::test]
#[ignore = "minutes; asked for with --run-ignored"]
async fn two_hundred_bags_meet_their_deadlines_although_their_servers_hibernate() {
    let seed = std::env::var("EBBTIDE_MAPS_SEED").map_or(1, |seed| seed.parse().unwrap());
    let form = Form {
        bags: 200,
        at_once: 8,
        tasks: (4, 8),
        lengths: (2, 5),
        deadlines: (32, 48),
        normal: 6,
        stays: (500, 15_000),
        pauses: (100, 600),
        ..SIMULATED
    };
    let scene = simulated(16, form, seed).await;
    scene.happen(150).await;
}

#[tokio::test]
#[ignore = "minutes; asked for with --run-ignored"]
async fn five_bags_of_real_guests_that_hibernate_meet_their_deadlines() {
    let form = Form {
        bags: 5,
        at_once: 1,
        vcpus: 1,
        tasks: (2, 3),
        lengths: (8, 14),
        deadlines: (150, 180),
        boot: 25,
        margin: 25,
        killed: 5,
        normal: 1,
        stays: (2_000, 70_000),
        pauses: (4_000, 12_000),
    };
    let (a, b) = tokio::join!(Hypervisor::start(), Hypervisor::start());
    let nodes = [("host-A", a.unwrap()), ("host-B", b.unwrap())];
    let nodes: BTreeMap<String, Hypervisor> =
        nodes.map(|(name, node)| (name.to_owned(), node)).into();
    let drivers = nodes.iter();
    let drivers = drivers.map(|(name, node)| (name.clone(), real_guests::driver(node, None)));
    let region = Region::start(RegionOptions {
        hosts: nodes.keys().cloned().collect(),
        drivers: drivers.collect(),
        region: COMEBACK.to_owned(),
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    real_guests::flavor(&region, "sleeps", &SLEEPS).await;
    real_guests::flavor(&region, "stays", &[]).await;
    real_guests::flavor(&region, "whole", &[]).await;
    let scene = Scene {
        region,
        form,
        nodes,
        seed: 1,
        over: Cell::new(false),
        kills: Cell::new(0),
        outcomes: RefCell::default(),
    };
    scene.happen(3).await;
}
