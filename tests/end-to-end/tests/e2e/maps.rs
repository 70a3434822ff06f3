//! Bags by primary and backup maps on a real region: one service runs them beside each other and
//! takes the servers of each plan, normal requests make preemptible ones hibernate at random, the
//! service is killed, and every deadline that a plan promised is met.
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
use ebbtide_harness::{Hypervisor, Process, ProcessCommand, eventually};
use ebbtide_integration_tests::region::bin;
use ebbtide_integration_tests::{Region, RegionOptions};
use ebbtide_proto::v1;
use futures::StreamExt as _;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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
    /// Time between two kills of the service, milliseconds.
    killed: (u64, u64),
    /// Normal servers at a time, each as large as a host, and how long they stay, milliseconds.
    normal: usize,
    stays: (u64, u64),
    pauses: (u64, u64),
}

/// What became of a bag, from the book.
#[derive(Debug, Default)]
struct MapsResult {
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
    service: RefCell<Option<Process>>,
    /// How often the service was killed.
    kills: Cell<usize>,
    outcomes: RefCell<Vec<MapsResult>>,
}

impl Scene {
    fn new(region: Region, form: Form, nodes: BTreeMap<String, Hypervisor>, seed: u64) -> Self {
        Self {
            region,
            form,
            nodes,
            seed,
            over: Cell::new(false),
            service: RefCell::default(),
            kills: Cell::new(0),
            outcomes: RefCell::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.region.dir().join(name)
    }

    fn book(&self) -> String {
        let text = std::fs::read_to_string(self.path("batch/book.jsonl"));
        let mut text = text.unwrap_or_default();
        // The last line may be written at this moment.
        text.truncate(text.rfind('\n').map_or(0, |at| at + 1));
        text
    }

    /// Writes the configuration of the service.
    fn configure(&self) {
        let (dir, endpoint) = (self.path("batch"), self.region.endpoint().unwrap());
        let ty = |name: &str, node: &str, market: &str, price: &str| {
            format!(
                "[[types]]\nname = \"{name}\"\nnodes = \"{node}[1-64]\"\nflavor = \"{name}\"\nmarket = \"{market}\"\n\
                 vcpus = {}\nmemory_mb = 4000\nprice = \"{price}\"\nmaps = true\n",
                self.form.vcpus
            )
        };
        let text = format!(
            "state_dir = \"{}\"\nlisten = \"{}\"\npoll_seconds = 0.25\nrehearse = true\n[slurm]\n\
             [region]\nendpoint = \"{endpoint}\"\nproject = \"bags\"\n{}{}\
             [policy]\nlength_reserve = 0.0\nlag_seconds = 1\nlaunch_again_seconds = 1\n",
            dir.display(),
            self.socket(),
            ty("sleeps", "p", "preemptible", "0.10"),
            ty("stays", "d", "on-demand", "0.30"),
        );
        std::fs::write(self.path("batch.toml"), text).unwrap();
    }

    fn socket(&self) -> String {
        format!("unix:{}", self.path("batch.sock").display())
    }

    /// Starts the service. One that was killed leaves its socket, and the new one makes it anew.
    fn start(&self) {
        let log = format!("batch-{}.log", self.kills.get());
        let service = ProcessCommand::new("ebbtide-batch", bin("ebbtide-batch"))
            .arg("run")
            .arg("--config")
            .arg(self.path("batch.toml"))
            .spawn(self.path(&log));
        self.service.replace(Some(service.unwrap()));
    }

    fn log(&self) -> String {
        let service = self.service.borrow();
        service.as_ref().map_or_else(String::new, Process::log_tail)
    }

    /// The service is killed again and again, and started again.
    async fn kill_the_service(&self) {
        let mut chance = Chance(self.seed ^ (1 << 40));
        while !self.over.get() {
            let pause = chance.from(self.form.killed.0, self.form.killed.1);
            let mut rest = pause;
            while rest > 0 && !self.over.get() {
                tokio::time::sleep(Duration::from_millis(rest.min(200))).await;
                rest -= rest.min(200);
            }
            if self.over.get() {
                return;
            }
            if let Some(service) = self.service.take() {
                service.kill();
            }
            self.kills.set(self.kills.get() + 1);
            self.start();
        }
    }

    /// Calls `ebbtide batch` on a file; whether it was taken, and what it printed.
    async fn submit(&self, file: &Path, more: &[&str]) -> (bool, String) {
        let process = ProcessCommand::new("ebbtide", bin("ebbtide"))
            .args(["batch", "submit", "--service", &self.socket()])
            .arg(file)
            .args(["-o", "json"])
            .args(more.iter().copied())
            .spawn(file.with_extension("log"))
            .unwrap();
        let status = process.wait_exit(Duration::from_secs(60)).await.unwrap();
        let words = std::fs::read_to_string(file.with_extension("log")).unwrap();
        (status.success(), words)
    }

    /// The file of a bag with these lengths and this deadline, seconds.
    fn file(&self, name: &str, lengths: &[u64], deadline: u64) -> PathBuf {
        let bag = json!({
            "name": name, "dir": "/shared", "command": "true",
            "rules": {
                "deadline": deadline, "boot": self.form.boot, "margin": self.form.margin,
                "slot": "1s",
            },
            "tasks": [{"name": "t", "memory_mb": 100, "durations": lengths}],
        });
        let file = self.path(&format!("{name}.json"));
        std::fs::write(&file, bag.to_string()).unwrap();
        file
    }

    /// One bag, from its submission until all its tasks are done.
    async fn bag(&self, run: u64) {
        let (form, mut chance) = (self.form, Chance(self.seed ^ (run << 20)));
        let tasks = chance.from(form.tasks.0, form.tasks.1);
        let lengths = (0..tasks).map(|_| chance.from(form.lengths.0, form.lengths.1));
        let lengths: Vec<u64> = lengths.collect();
        let deadline = chance.from(form.deadlines.0, form.deadlines.1);
        let name = format!("bag-{run}");
        let file = self.file(&name, &lengths, deadline);
        // The service may be killed at this moment: what it has answered for stands in its book.
        eventually(Duration::from_secs(60), async || {
            let named = format!("\"name\":\"{name}\"");
            if self.book().contains(&named) {
                return Ok(());
            }
            let (taken, words) = self.submit(&file, &[]).await;
            if taken { Ok(()) } else { Err(words) }
        })
        .await;
        let outcome = eventually(Duration::from_secs(2 * deadline), async || {
            outcome(&self.book(), &name).ok_or_else(|| format!("{name}: {}", self.log()))
        })
        .await;
        assert!(
            outcome.took <= outcome.deadline,
            "{name}: {outcome:?}\n{}",
            of_work(&self.book(), &name).join("\n")
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

    /// What a tenant is told before anything runs: the maps of a bag, and what is refused.
    async fn contract(&self) {
        let file = self.file("plan", &[2, 3], 100);
        let plan = eventually(Duration::from_secs(60), async || {
            let (well, words) = self.submit(&file, &["--dry-run"]).await;
            if well { Ok(words) } else { Err(words) }
        })
        .await;
        let at = plan.find('{').unwrap();
        // The file begins with the errors of attempts before the service listened.
        let values = serde_json::Deserializer::from_str(&plan[at..]).into_iter::<Value>();
        let plan = values.last().unwrap().unwrap();
        assert_eq!(
            (&plan["tasks"], &plan["deadline_s"]),
            (&json!(2), &json!(100))
        );
        assert_eq!(plan["maps"][0]["node"], "p1");
        let backup = plan["maps"].as_array().unwrap().iter();
        let backup = backup.filter(|one| one["backup_of"] == "p1").count();
        assert!(backup >= 1, "{plan}");
        assert_eq!(self.book(), "", "a dry run changes nothing");
        let reserve = self.form.boot + self.form.margin;
        let refused = async |file: &Path| {
            let (well, words) = self.submit(file, &[]).await;
            assert!(!well, "{words}");
            words
        };
        let words = refused(&self.file("soon", &[50], reserve + 1)).await;
        assert!(
            words.contains("EB-BATCH-002") && words.contains("EB-BAG-007"),
            "{words}"
        );
        let words = refused(&self.file("wide", &[80; 300], reserve + 100)).await;
        assert!(
            words.contains("EB-BATCH-002") && words.contains("are free"),
            "{words}"
        );
        let other = self.path("other.json");
        std::fs::write(
            &other,
            r#"{"name": "other", "dir": "/shared", "command": "true"}"#,
        )
        .unwrap();
        let words = refused(&other).await;
        assert!(words.contains("rehearses"), "{words}");
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
        self.configure();
        self.start();
        self.contract().await;
        tokio::join!(
            self.bags(),
            self.kill_the_service(),
            self.normal_servers(),
            self.consoles()
        );
        let all = self.outcomes.take();
        assert_eq!(all.len() as u64, self.form.bags);
        let sum = |part: fn(&MapsResult) -> usize| all.iter().map(part).sum::<usize>();
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
        eventually(Duration::from_secs(60), async || {
            let list = v1::ListServersRequest::default();
            let mut servers = self.region.servers().await.unwrap();
            let all = servers
                .list_servers(list)
                .await
                .unwrap()
                .into_inner()
                .servers;
            let gone = ["deleted", "deleting", "preempted"];
            let left = all.iter().filter(|one| one.project_id == "bags");
            let left: Vec<_> = left
                .filter(|one| !gone.contains(&one.status.as_str()))
                .collect();
            if left.is_empty() {
                Ok(())
            } else {
                Err(format!("{left:?}: {}", self.log()))
            }
        })
        .await;
    }
}

/// The lines of the book about the work with a name.
fn of_work<'b>(book: &'b str, name: &str) -> Vec<&'b str> {
    let named = format!("\"name\":\"{name}\"");
    let mut lines = book.lines().filter(|line| line.contains(&named));
    let Some(first) = lines.next() else {
        return Vec::new();
    };
    let entry: Value = serde_json::from_str(first).unwrap();
    let work = format!("\"work\":{},", entry["work"]);
    book.lines().filter(|line| line.contains(&work)).collect()
}

/// What became of a bag, once all its tasks are done: the deadline is judged by the times of the
/// book, not by what the service says.
fn outcome(book: &str, name: &str) -> Option<MapsResult> {
    let mut outcome = MapsResult::default();
    let (mut begun, mut done, mut tasks) = (0, 0, usize::MAX);
    for line in of_work(book, name) {
        let entry: Value = serde_json::from_str(line).unwrap();
        let at = entry["at"].as_i64().unwrap();
        if entry["event"] == "submitted" {
            begun = at;
            let document = &entry["document"];
            outcome.deadline = document["rules"]["deadline"].as_i64().unwrap() * 1_000;
            tasks = document["tasks"][0]["durations"].as_array().unwrap().len();
        }
        let what = &entry["what"];
        if what["finished"].is_object() {
            done += 1;
            outcome.took = outcome.took.max(at - begun);
            outcome.moved += usize::from(what["finished"]["vm"]["backup"].is_u64());
        }
        outcome.hibernated += usize::from(what["hibernated"].is_object());
        outcome.resumed += usize::from(what["resumed"].is_object());
    }
    (done == tasks).then_some(outcome)
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
    Scene::new(region, form, BTreeMap::new(), seed)
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
    killed: (3_000, 8_000),
    normal: 2,
    stays: (500, 4_000),
    pauses: (200, 1_000),
};

#[tokio::test]
async fn bags_meet_their_deadlines_although_their_servers_hibernate_and_the_service_is_killed() {
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
        killed: (15_000, 35_000),
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
        killed: (100_000, 200_000),
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
    let scene = Scene::new(region, form, nodes, 1);
    scene.happen(3).await;
}
