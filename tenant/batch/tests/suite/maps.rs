//! A bag by primary and backup maps: whatever hibernates or goes, and whenever the program is
//! killed, the deadline is met if the plan said so.

use ebbtide_bag::critical;
use ebbtide_batch::maps::{
    AttemptSeen, BagDo, BagEntry, BagFact, BagRun, BagSeen, BagWork, settle, unfinished,
};
use ebbtide_batch::{BatchError, BatchSettings};
use ebbtide_burst::{PoolServer, Status};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The world moves on in steps of so much, and the program looks at each.
const TICK: i64 = 500;
/// A server is up after so much at most.
const BOOT: i64 = 5_000;
/// The deadline's reserve, seconds: for the time between two looks, and for two kills, after each
/// of which an attempt may be seen to be missing.
const MARGIN: u64 = 2;
const MARGIN_WITH_KILLS: u64 = 50;
/// The program is away for so long after it was killed.
const AWAY: i64 = 3_000;
const BEGUN: i64 = 1_700_000_000_123;

fn settings(nodes: usize) -> BatchSettings {
    let text = format!(
        r#"
state_dir = "/var/lib/ebbtide-batch"
listen = "unix:/run/ebbtide-batch.sock"
[slurm]
[region]
endpoint = "http://127.0.0.1:7470"
project = "batch"
[[types]]
name = "spot"
nodes = "p[1-{nodes}]"
flavor = "p.sleep"
market = "preemptible"
vcpus = 2
memory_mb = 4000
price = "0.10"
[[types]]
name = "normal"
nodes = "d[1-{nodes}]"
flavor = "node"
market = "on-demand"
vcpus = 2
memory_mb = 4000
price = "0.30"
[policy]
boot_seconds = 7
margin_seconds = 60
lag_seconds = 2
length_reserve = 0.2
"#
    );
    BatchSettings::parse(&text).unwrap()
}

fn document(deadline: u64, margin: u64, lengths: &[u64]) -> Value {
    json!({
        "name": "bag", "dir": "/shared/bag", "command": "true",
        "rules": {"deadline": deadline, "margin": margin, "slot": "1s"},
        "tasks": [{"name": "t", "durations": lengths, "memory_mb": 500}],
    })
}

fn planned(
    deadline: u64,
    margin: u64,
    lengths: &[u64],
    nodes: usize,
) -> Result<BagWork, BatchError> {
    let settings = settings(nodes);
    let document = document(deadline, margin, lengths);
    let settled = settle(&document, &settings, &BTreeMap::new())?;
    BagWork::new(&settled, &settings)
}

/// What a preemptible server suffers, from when, and for how long, as parts of the deadline.
type Outage = (usize, f64, f64, u8);

struct Server {
    shown: PoolServer,
    up: i64,
}

/// The cloud, and the tasks on its servers.
struct World<'a> {
    work: &'a BagWork,
    now: i64,
    servers: Vec<Server>,
    created: i64,
    /// By task and number: the node, and what is left, milliseconds of active time.
    attempts: BTreeMap<(usize, u32), (String, i64)>,
    ended: BTreeMap<(usize, u32), AttemptSeen>,
    done: BTreeMap<usize, (u32, i64)>,
    /// How much of its reserve each task uses, of a hundred.
    longer: u8,
}

impl World<'_> {
    fn carry_out(&mut self, action: &BagDo) {
        match action {
            BagDo::Create { node } => {
                self.created += 1;
                // Boots differ.
                let boot = (self.created * 1_700) % (BOOT + 1);
                self.servers.push(Server {
                    shown: PoolServer {
                        id: format!("server-{}", self.created),
                        created_ms: self.now,
                        node: node.clone(),
                        status: Status::Coming,
                        launched_ms: None,
                        deadline_ms: None,
                        ended_ms: None,
                        taken: false,
                        reason: String::new(),
                    },
                    up: self.now + boot,
                });
            }
            BagDo::GiveBack { server, .. } => self.servers.retain(|one| one.shown.id != *server),
            BagDo::Start { task, number, node } => {
                let length = self.work.lengths[*task] as i64 * 1_000;
                let length = length + length * i64::from(self.longer) / 500;
                self.attempts
                    .insert((*task, *number), (node.clone(), length));
            }
            BagDo::Stop { task, number } => self.end(*task, *number),
        }
    }

    fn end(&mut self, task: usize, number: u32) {
        self.attempts.remove(&(task, number));
        let exit = None;
        self.ended
            .insert((task, number), AttemptSeen::Ended { exit });
    }

    /// Moves on by a step. A frozen server's tasks stand still.
    fn step(&mut self) {
        self.now += TICK;
        for one in &mut self.servers {
            if one.shown.status == Status::Coming && one.up <= self.now {
                one.shown.status = Status::Active;
            }
        }
        for ((task, number), (node, left)) in self.attempts.clone() {
            let own = self.servers.iter().find(|one| one.shown.node == node);
            match own.map(|one| one.shown.status) {
                Some(Status::Active) if left <= TICK => {
                    self.done.entry(task).or_insert((number, self.now));
                    self.end(task, number);
                }
                Some(Status::Active) => {
                    self.attempts.insert((task, number), (node, left - TICK));
                }
                Some(_) => {}
                None => self.end(task, number),
            }
        }
    }

    fn outages(&mut self, outages: &[Outage], deadline: i64) {
        let at = |part: f64| BEGUN + (deadline as f64 * part) as i64;
        let nodes: Vec<String> = (1..=40).map(|at| format!("p{at}")).collect();
        for (vm, from, long, end) in outages {
            let count = self.work.plan.vms.len();
            let node = &nodes[vm % count];
            let began = at(*from);
            let own = self.servers.iter().position(|one| one.shown.node == *node);
            let Some(own) = own else { continue };
            let due = |at: i64| (self.now - TICK..self.now).contains(&at);
            let shown = &mut self.servers[own].shown;
            match end {
                0 if due(began) => drop(self.servers.remove(own)),
                1.. if due(began) && shown.status == Status::Active => shown.status = Status::Kept,
                2.. if due(at(from + long)) && shown.status == Status::Kept => {
                    shown.status = Status::Active;
                }
                _ => {}
            }
        }
    }
}

/// Runs a bag to its end; the journal, and what became of it.
fn run(work: &BagWork, outages: &[Outage], kills: &[f64], longer: u8) -> (Vec<BagEntry>, bool) {
    let deadline = work.bag.rules().deadline as i64 * 1_000;
    let mut world = World {
        work,
        now: BEGUN,
        servers: Vec::new(),
        created: 0,
        attempts: BTreeMap::new(),
        ended: BTreeMap::new(),
        done: BTreeMap::new(),
        longer,
    };
    let mut journal: Vec<BagEntry> = Vec::new();
    let mut bag = BagRun::begin(work, BEGUN, 2_000);
    let mut away_until = BEGUN;
    for _ in 0..100_000 {
        if world.now >= away_until {
            let shown: Vec<PoolServer> =
                world.servers.iter().map(|one| one.shown.clone()).collect();
            let seen = BagSeen {
                servers: &shown,
                ready: &|_| true,
                done: &|task| world.done.get(&task).map(|(number, _)| *number),
                attempt: &|task, number| {
                    if world.attempts.contains_key(&(task, number)) {
                        return AttemptSeen::Active;
                    }
                    let ended = world.ended.get(&(task, number));
                    ended.copied().unwrap_or(AttemptSeen::Unknown)
                },
            };
            let made = bag.look(world.now, &seen).unwrap();
            assert_eq!(made.problems, []);
            if bag.is_over(&shown) && made.facts.is_empty() {
                break;
            }
            journal.extend(made.facts);
            let killed = kills.iter().any(|part| {
                let at = BEGUN + (deadline as f64 * part) as i64;
                (world.now - TICK..world.now).contains(&at)
            });
            if killed {
                // What was written down was not carried out.
                bag = BagRun::begin(work, BEGUN, 2_000);
                for entry in &journal {
                    let line = serde_json::to_string(entry).unwrap();
                    bag.apply(&serde_json::from_str(&line).unwrap()).unwrap();
                }
                away_until = world.now + AWAY;
            } else {
                for action in &made.actions {
                    world.carry_out(action);
                }
            }
        }
        world.step();
        world.outages(outages, deadline);
    }
    let last = world.done.values().map(|(_, at)| *at).max().unwrap();
    assert_eq!(world.done.len(), work.bag.tasks().len());
    assert!(world.servers.is_empty(), "servers are left");
    let report = bag.report();
    assert_eq!(report.done, report.tasks);
    (journal, last - BEGUN <= deadline && report.met)
}

fn outages() -> impl Strategy<Value = Vec<Outage>> {
    prop::collection::vec((0usize..40, 0.0f64..1.1, 0.0f64..0.6, 0u8..12), 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_deadline_is_met_whatever_hibernates_and_whenever_the_program_is_killed(
        lengths in prop::collection::vec(1u64..90, 1..10),
        slack in 1.0f64..4.0,
        outages in outages(),
        kills in prop_oneof![
            2 => Just(Vec::new()),
            1 => prop::collection::vec(0.0f64..1.0, 1..3),
        ],
        longer in 0u8..=100,
    ) {
        let margin = if kills.is_empty() { MARGIN } else { MARGIN_WITH_KILLS };
        let most = planned(10_000, margin, &lengths, 40).unwrap();
        let least = critical(&most.bag).unwrap().seconds;
        let work = planned((least as f64 * slack) as u64, margin, &lengths, 40).unwrap();
        let (_, met) = run(&work, &outages, &kills, longer);
        prop_assert!(met);
    }
}

#[test]
fn only_the_tasks_of_a_server_that_stays_frozen_move_and_one_that_comes_back_goes_on() {
    let work = planned(250, MARGIN, &[40; 8], 40).unwrap();
    let servers = work.plan.vms.len();
    assert!(servers >= 2, "{}", work.maps());
    let moved = |outages: &[Outage]| {
        let (journal, met) = run(&work, outages, &[], 0);
        assert!(met);
        let backups = journal.iter().filter_map(|entry| match entry.fact {
            BagFact::Finished { task, vm } => Some((task, vm)),
            _ => None,
        });
        let backups = backups.filter(|(_, vm)| matches!(vm, ebbtide_bag::VmId::Backup(_)));
        backups.map(|(task, _)| task).collect::<Vec<_>>()
    };
    // Away for a tenth of the deadline: waited out.
    assert_eq!(moved(&[(0, 0.1, 0.1, 5)]), [] as [usize; 0]);
    // Away for ever: its own tasks are done elsewhere, no others.
    let mut tasks = moved(&[(0, 0.1, 0.0, 1)]);
    tasks.sort_unstable();
    let mut own: Vec<usize> = work.plan.vms[0].vm.tasks().collect();
    own.sort_unstable();
    assert_eq!(tasks, own);
}

#[test]
fn a_task_that_fails_by_itself_ends_the_bag_and_all_servers_are_given_back() {
    let work = planned(300, MARGIN, &[10], 4).unwrap();
    let mut bag = BagRun::begin(&work, BEGUN, 2_000);
    let mut server = PoolServer {
        id: "one".to_owned(),
        created_ms: BEGUN,
        node: work.node(ebbtide_bag::VmId::Primary(0)).to_owned(),
        status: Status::Active,
        launched_ms: Some(BEGUN),
        deadline_ms: None,
        ended_ms: None,
        taken: false,
        reason: String::new(),
    };
    let look = |bag: &mut BagRun<'_>, now: i64, server: &PoolServer, seen: AttemptSeen| {
        let seen = BagSeen {
            servers: std::slice::from_ref(server),
            ready: &|_| true,
            done: &|_| None,
            attempt: &|_, _| seen,
        };
        bag.look(BEGUN + now, &seen).unwrap()
    };
    let made = look(&mut bag, 1_000, &server, AttemptSeen::Unknown);
    assert!(
        matches!(
            made.actions[..],
            [BagDo::Start {
                task: 0,
                number: 1,
                ..
            }]
        ),
        "{made:?}"
    );
    let failed = AttemptSeen::Ended { exit: Some(3) };
    let made = look(&mut bag, 2_000, &server, failed);
    let error = made.problems.first().unwrap();
    assert_eq!(error.code(), "EB-BATCH-009");
    assert!(error.to_string().contains("exit code 3"), "{error}");
    assert!(matches!(&made.actions[..], [BagDo::GiveBack { server, .. }] if server == "one"));
    server.status = Status::Gone;
    assert!(bag.is_over(std::slice::from_ref(&server)));
    assert!(!bag.report().met);
}

#[test]
fn a_plan_with_more_servers_than_nodes_and_a_deadline_that_cannot_be_met_are_refused() {
    let error = planned(180, MARGIN, &[60; 12], 1).unwrap_err();
    assert_eq!(error.code(), "EB-BATCH-002");
    assert!(error.to_string().contains("nodes for them"), "{error}");
    let error = planned(60, MARGIN, &[60], 4).unwrap_err();
    assert!(error.to_string().contains("EB-BAG-007"), "{error}");
    let settings = settings(4);
    let mut other = document(300, MARGIN, &[10]);
    other["deadline"] = json!("1h");
    let error = settle(&other, &settings, &BTreeMap::new()).unwrap_err();
    assert!(error.to_string().contains("deadline"), "{error}");
}

#[test]
fn a_plan_stays_the_same_when_prices_change() {
    let settings = settings(4);
    let dear = BTreeMap::from([("p.sleep".to_owned(), 290_000)]);
    let settled = settle(&document(300, MARGIN, &[20; 6]), &settings, &dear).unwrap();
    let once = BagWork::new(&settled, &settings).unwrap();
    let again = BagWork::new(&once.document, &settings).unwrap();
    assert_eq!(once.maps(), again.maps());
    assert_eq!(again.bag.types()[0].preemptible.unwrap().micros(), 290_000);
    assert!(again.is_of(&document(300, MARGIN, &[20; 6])));
    assert!(!again.is_of(&document(301, MARGIN, &[20; 6])));
    assert!(!again.is_of(&document(300, MARGIN, &[20; 7])));
}

#[test]
fn a_journal_goes_on_with_the_newest_bag_until_that_has_given_its_servers_back() {
    let line = |at: i64, fact: BagFact| {
        let entry = BagEntry { at, fact };
        serde_json::to_string(&entry).unwrap() + "\n"
    };
    let begun = |name: &str| BagFact::Begun {
        document: json!({ "name": name }),
        maps: Value::Null,
    };
    let first = line(1, begun("a")) + &line(2, BagFact::Over) + &line(3, BagFact::GivenBack);
    assert_eq!(unfinished(&first).unwrap(), []);
    let second = first + &line(4, begun("b")) + &line(5, BagFact::Time);
    let left = unfinished(&second).unwrap();
    assert_eq!(left.iter().map(|one| one.at).collect::<Vec<_>>(), [4, 5]);
    let error = unfinished(&line(1, BagFact::Time)).unwrap_err();
    assert_eq!(error.code(), "EB-BATCH-007");
    assert_eq!(unfinished("{\n").unwrap_err().code(), "EB-BATCH-007");
}
