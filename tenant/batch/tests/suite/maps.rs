//! Bags by primary and backup maps: whatever hibernates or goes, and whenever the service is
//! killed, each deadline is met if its plan said so, beside other bags and other works.

mod budgets;
mod world;

use ebbtide_bag::{BagEvent, VmId, critical};
use ebbtide_batch::maps::BagWork;
use ebbtide_batch::{
    BatchController, BatchError, BatchSettings, Book, BookEntry, CheckedWork, Fact, WorkId,
};
use ebbtide_burst::{BurstAction, Status};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use world::{BEGUN, Outage, SlurmWorld, TICK};

/// The deadline's reserve, seconds: for the time between two looks, and for two kills, after each
/// of which an attempt may be seen to be missing.
const MARGIN: u64 = 2;
const MARGIN_WITH_KILLS: u64 = 50;
/// The service is away for so long after it was killed.
const AWAY: i64 = 3_000;
/// Nodes of each type.
const NODES: usize = 12;

const REGION: &str = "[region]\nendpoint = \"http://127.0.0.1:7470\"\nproject = \"batch\"";

/// Two types for bags by maps with so many nodes, and one for other works.
fn settings_on(cloud: &str, nodes: usize) -> BatchSettings {
    let ty = |name: &str, nodes: String, flavor: &str, market: &str, price: &str, maps: bool| {
        format!(
            "[[types]]\nname = \"{name}\"\nnodes = \"{nodes}\"\nflavor = \"{flavor}\"\nmarket = \"{market}\"\n\
             vcpus = 2\nmemory_mb = 4000\nprice = \"{price}\"\nmaps = {maps}\n"
        )
    };
    let text = format!(
        "state_dir = \"/var/lib/ebbtide-batch\"\nlisten = \"unix:/run/ebbtide-batch.sock\"\n[slurm]\n{cloud}\n{}{}{}\
         [policy]\nboot_seconds = 7\nmargin_seconds = 60\nlag_seconds = 2\nlength_reserve = 0.2\n\
         launch_again_seconds = 2\nspare_seconds = 1\n",
        ty(
            "spot",
            format!("p[1-{nodes}]"),
            "p.sleep",
            "preemptible",
            "0.10",
            true
        ),
        ty(
            "normal",
            format!("d[1-{nodes}]"),
            "node",
            "on-demand",
            "0.30",
            true
        ),
        ty(
            "other",
            "o[1-2]".to_owned(),
            "p.node",
            "preemptible",
            "0.10",
            false
        ),
    );
    BatchSettings::parse(&text).unwrap()
}

fn settings(nodes: usize) -> BatchSettings {
    settings_on(REGION, nodes)
}

fn document(deadline: u64, margin: u64, lengths: &[u64]) -> Value {
    json!({
        "name": "bag", "dir": "/shared/bag", "command": "true",
        "rules": {"deadline": deadline, "margin": margin, "slot": "1s"},
        "tasks": [{"name": "t", "durations": lengths, "memory_mb": 500}],
    })
}

/// The service: a controller with its world and its book on disk.
struct Service {
    settings: BatchSettings,
    controller: BatchController,
    book: Vec<BookEntry>,
    world: SlurmWorld,
    away_until: i64,
    problems: Vec<String>,
}

impl Service {
    fn new(settings: BatchSettings) -> Self {
        let nodes = settings.groups().unwrap();
        let nodes = nodes.into_iter().flat_map(|group| group.nodes);
        Self {
            controller: BatchController::new(&settings, Book::default()).unwrap(),
            settings,
            book: Vec::new(),
            world: SlurmWorld::new(nodes.collect()),
            away_until: BEGUN,
            problems: Vec::new(),
        }
    }

    fn check(&self, document: &Value) -> Result<CheckedWork, BatchError> {
        let servers = self.world.servers();
        let prices = BTreeMap::new();
        let now = self.world.now;
        self.controller
            .check(now, document.clone(), &prices, &servers)
    }

    fn submit(&mut self, document: &Value) -> WorkId {
        let checked = self.check(document).unwrap();
        let id = checked.entry.work;
        let lengths = match &checked.book.bag {
            Some(bag) => bag.work.lengths.clone(),
            None => vec![
                checked.book.work.stages[0].length.unwrap();
                checked.book.work.members().count()
            ],
        };
        self.world.lengths.insert(id, lengths);
        self.book.push(self.controller.accept(checked).unwrap());
        id
    }

    fn bag(&self, id: WorkId) -> &BagWork {
        &self.controller.book().works[&id].bag.as_ref().unwrap().work
    }

    /// The service is killed, and another one begins with the book.
    fn restart(&mut self) {
        let line = |entry| serde_json::to_string(entry).unwrap() + "\n";
        let lines: String = self.book.iter().map(line).collect();
        let book = Book::parse(&lines).unwrap();
        assert_eq!(&book, self.controller.book());
        self.controller = BatchController::new(&self.settings, book).unwrap();
    }

    /// One step of the world, after a look; a look in which the service is killed changes nothing
    /// but its book.
    fn step(&mut self, killed: bool) {
        if self.world.now >= self.away_until {
            let made = self.world.look(&mut self.controller);
            self.book.extend(made.facts.iter().cloned());
            let problems = made.problems.iter().map(|one| one.code().to_owned());
            self.problems.extend(problems);
            if killed {
                self.restart();
                self.away_until = self.world.now + AWAY;
            } else {
                self.world.act(&made);
            }
        }
        self.world.step();
    }

    fn is_over(&self) -> bool {
        let mut works = self.controller.book().works.values();
        works.all(|one| one.state(self.world.now).is_over()) && self.world.servers().is_empty()
    }

    /// Runs until all works are over and all servers are given back.
    fn until_over(&mut self, outages: &[Outage], kills: &[i64]) {
        for _ in 0..20_000 {
            let now = self.world.now;
            let killed = kills
                .iter()
                .any(|at| (now - TICK..now).contains(&(BEGUN + at)));
            self.step(killed);
            self.world.outages(outages);
            if self.is_over() {
                return;
            }
        }
        panic!("never over: {:#?}", self.world);
    }

    /// All tasks of a bag were done before its deadline, by the world's own marks.
    fn is_met(&self, id: WorkId) -> bool {
        let book = &self.controller.book().works[&id];
        let done: Vec<i64> = self.world.done(id);
        assert_eq!(done.len(), book.work.members().count());
        done.into_iter().max().unwrap() <= book.deadline().unwrap()
    }

    fn events(&self, id: WorkId) -> Vec<BagEvent> {
        let events = self.book.iter().filter(|entry| entry.work == id);
        let events = events.filter_map(|entry| match entry.fact {
            Fact::Bag { what } => Some(what),
            _ => None,
        });
        events.collect()
    }

    /// The tasks that were done on a backup.
    fn moved(&self, id: WorkId) -> Vec<usize> {
        let events = self.events(id).into_iter();
        let moved = events.filter_map(|event| match event {
            BagEvent::Finished {
                task,
                vm: VmId::Backup(_),
            } => Some(task),
            _ => None,
        });
        let mut moved: Vec<usize> = moved.collect();
        moved.sort_unstable();
        moved
    }
}

/// Outages of the servers of a plan: which, from when, for how long (parts of the deadline), how.
fn outages() -> impl Strategy<Value = Vec<(usize, f64, f64, u8)>> {
    prop::collection::vec((0usize..40, 0.0f64..1.1, 0.0f64..0.6, 0u8..12), 0..20)
}

/// The outages of preemptible servers of a bag with this deadline, seconds.
fn of_bag(bag: &BagWork, deadline: u64, outages: &[(usize, f64, f64, u8)]) -> Vec<Outage> {
    let count = bag.plan.vms.len();
    let each = outages.iter().map(|(vm, from, long, end)| {
        let ms = |part: f64| (deadline as f64 * 1_000.0 * part) as i64;
        Outage {
            node: bag.node(VmId::Primary(vm % count)).to_owned(),
            from: BEGUN + ms(*from),
            until: BEGUN + ms(from + long),
            end: *end,
        }
    });
    // On-demand servers stay: that is a condition of the promise.
    each.filter(|one| one.node.starts_with('p')).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn deadlines_are_met_whatever_hibernates_and_whenever_the_service_is_killed(
        lengths in prop::collection::vec(1u64..90, 1..7),
        others in prop::collection::vec(1u64..90, 1..5),
        slack in 1.0f64..4.0,
        lost in (outages(), outages()),
        kills in prop_oneof![
            2 => Just(Vec::new()),
            1 => prop::collection::vec(0.0f64..1.0, 1..3),
        ],
        longer in 0u8..=100,
    ) {
        let margin = if kills.is_empty() { MARGIN } else { MARGIN_WITH_KILLS };
        let mut service = Service::new(settings(NODES));
        service.world.longer = longer;
        let mut all = Vec::new();
        let mut deadlines = Vec::new();
        for (lengths, outages) in [(&lengths, &lost.0), (&others, &lost.1)] {
            let most = service.check(&document(10_000, margin, lengths)).unwrap();
            let least = critical(&most.book.bag.unwrap().work.bag).unwrap().seconds;
            let deadline = (least as f64 * slack) as u64;
            let id = service.submit(&document(deadline, margin, lengths));
            all.extend(of_bag(service.bag(id), deadline, outages));
            deadlines.push((id, deadline));
        }
        let other = json!({"name": "other", "dir": "/shared/other", "command": "true",
            "count": 3, "length": "20s"});
        let other = service.submit(&other);
        let first = deadlines[0].1 as f64 * 1_000.0;
        let kills: Vec<i64> = kills.iter().map(|part| (first * part) as i64).collect();
        service.until_over(&all, &kills);
        for (id, _) in deadlines {
            prop_assert!(service.is_met(id), "{id}");
        }
        prop_assert_eq!(service.world.done(other).len(), 3);
        // A node is one bag's, and ordinary members never run on those of the bags.
        let on: BTreeSet<(WorkId, char)> = service.world.used.iter().cloned().collect();
        prop_assert!(on.iter().all(|(id, kind)| (*id == other) == (*kind == 'o')), "{on:?}");
        // A job that was lost with the service that was about to submit it.
        let lost = |one: &&String| kills.is_empty() || *one != "EB-BATCH-008";
        prop_assert_eq!(service.problems.iter().find(lost), None);
    }
}

#[test]
fn only_the_tasks_of_a_server_that_stays_frozen_move_and_one_that_comes_back_goes_on() {
    let run = |until: i64| {
        let mut service = Service::new(settings(NODES));
        let id = service.submit(&document(250, MARGIN, &[40; 8]));
        let bag = service.bag(id).clone();
        assert!(bag.plan.vms.len() >= 2, "{:?}", bag.maps());
        let node = bag.node(VmId::Primary(0)).to_owned();
        let from = BEGUN + 25_000;
        let until = from + until;
        let outage = Outage {
            node: node.clone(),
            from,
            until,
            end: 5,
        };
        service.until_over(&[outage], &[]);
        assert!(service.is_met(id));
        let book = &service.controller.book().works[&id];
        let ran = book.members.iter().flatten().flat_map(|one| &one.attempts);
        let ran = ran.filter(|one| one.node == node).map(|one| one.ran(0));
        (service.moved(id), ran.max().unwrap(), bag)
    };
    // Away for 25 s: waited out, and time while it was frozen is no time in which a task ran.
    let (moved, ran, _) = run(25_000);
    assert_eq!(moved, [] as [usize; 0]);
    assert!(ran <= 42_000, "{ran}");
    // Away for ever: its own tasks are done elsewhere, no others.
    let (moved, _, bag) = run(i64::MAX / 2 - BEGUN);
    let mut own: Vec<usize> = bag.plan.vms[0].vm.tasks().collect();
    own.sort_unstable();
    assert_eq!(moved, own);
}

#[test]
fn no_manager_gives_back_what_hibernates_for_a_bag_and_what_no_bag_has_is_given_back() {
    let mut service = Service::new(settings(NODES));
    let id = service.submit(&document(400, MARGIN, &[40; 2]));
    let node = service.bag(id).node(VmId::Primary(0)).to_owned();
    service.world.create("p9", Status::Kept);
    service.world.create("d9", Status::Active);
    let mut deleted = BTreeSet::new();
    let frozen = |service: &mut Service| service.world.freeze(&node);
    for step in 0..200 {
        if step == 40 {
            assert!(frozen(&mut service));
        }
        let made = service.world.look(&mut service.controller);
        service.book.extend(made.facts.iter().cloned());
        for action in &made.nodes {
            match action {
                BurstAction::Delete { instance } => {
                    deleted.insert(service.world.node_of(instance));
                }
                BurstAction::PowerDown { node } => {
                    deleted.insert(node.clone());
                }
                _ => {}
            }
        }
        service.world.act(&made);
        service.world.step();
    }
    // After a hundred seconds the latest start lies ahead: it waits.
    assert!(
        deleted.contains("p9") && deleted.contains("d9"),
        "{deleted:?}"
    );
    assert!(!deleted.contains(&node), "{deleted:?}");
    let run = service.controller.bag_run(id).unwrap();
    assert_eq!(
        run.state(VmId::Primary(0)),
        ebbtide_bag::VmState::Hibernated
    );
    // Given up, the bag gives it back.
    let entry = service.controller.cancel(service.world.now, id).unwrap();
    service.book.push(entry);
    service.until_over(&[], &[]);
    assert_eq!(
        service
            .controller
            .state(service.world.now, id)
            .unwrap()
            .as_str(),
        "cancelled"
    );
}

#[test]
fn nodes_are_one_bags_at_a_time_and_a_bag_without_free_nodes_is_refused() {
    let mut service = Service::new(settings(4));
    let mut nodes = BTreeSet::new();
    let mut bags = 0;
    let error = loop {
        match service.check(&document(100, MARGIN, &[20; 2])) {
            Ok(checked) => {
                let bag = checked.book.bag.unwrap().work;
                for (_, node) in bag.nodes() {
                    assert!(nodes.insert(node.to_owned()), "{node} twice");
                }
                service.submit(&document(100, MARGIN, &[20; 2]));
                bags += 1;
            }
            Err(error) => break error,
        }
    };
    assert!(bags >= 2);
    assert_eq!(error.code(), "EB-BATCH-002");
    assert!(
        error.to_string().contains("of its nodes are free"),
        "{error}"
    );
    service.until_over(&[], &[]);
    service.check(&document(100, MARGIN, &[20; 2])).unwrap();
}

#[test]
fn a_task_that_fails_by_itself_ends_the_bag_and_all_servers_are_given_back() {
    let mut service = Service::new(settings(4));
    service.world.fails = Some(3);
    let id = service.submit(&document(300, MARGIN, &[10]));
    service.until_over(&[], &[]);
    let state = service.controller.state(service.world.now, id);
    assert_eq!(state.unwrap().as_str(), "failed");
    assert_eq!(service.problems, ["EB-BATCH-009"]);
}

#[test]
fn a_plan_that_cannot_be_is_refused() {
    let refused = |document: &Value| {
        let service = Service::new(settings(1));
        let error = service.check(document).unwrap_err();
        assert_eq!(error.code(), "EB-BATCH-002");
        error.to_string()
    };
    let error = refused(&document(180, MARGIN, &[60; 12]));
    assert!(error.contains("of its nodes are free"), "{error}");
    let error = refused(&document(60, MARGIN, &[60]));
    assert!(error.contains("EB-BAG-007"), "{error}");
    let mut other = document(300, MARGIN, &[10]);
    other["deadline"] = json!("1h");
    assert!(refused(&other).contains("deadline"));
    let mut other = document(300, MARGIN, &[10]);
    other["tasks"][0]["checkpoints"] = json!({"takes": "1s", "every": "1m"});
    assert!(refused(&other).contains("checkpoints"));
    let mut many = document(30_000, MARGIN, &[]);
    many["tasks"] = json!([{"name": "t", "count": 10_001, "duration": "1s", "memory_mb": 1}]);
    assert!(refused(&many).contains("10000"));
    for (key, value, word) in [
        ("max_price", json!("0.05"), "types.max_price"),
        (
            "checkpoint",
            json!({"command": "./save"}),
            "begins a task anew",
        ),
        ("budget", json!("0.0001"), "at most: raise the budget"),
    ] {
        let mut other = document(300, MARGIN, &[10]);
        other[key] = value;
        let error = refused(&other);
        assert!(error.contains(key) && error.contains(word), "{error}");
    }
    let text = "state_dir = \"/s\"\nlisten = \"unix:/l\"\n[slurm]\n".to_owned()
        + REGION
        + "\n[[types]]\nname = \"a\"\nnodes = \"a1\"\nflavor = \"f\"\nmarket = \"on-demand\"\nvcpus = 2\nmemory_mb = 4000\nprice = \"1\"\n";
    let service = Service::new(BatchSettings::parse(&text).unwrap());
    let error = service.check(&document(300, MARGIN, &[10])).unwrap_err();
    assert!(error.to_string().contains("maps"), "{error}");
}

#[test]
fn a_bag_stays_as_it_was_planned_whatever_settings_and_prices_are_later() {
    let dear = BTreeMap::from([("p.sleep".to_owned(), 290_000)]);
    let own = settings(4);
    let types: Vec<_> = own.server_types().unwrap();
    let types: Vec<_> = types.into_iter().filter(|ty| ty.maps).collect();
    let bag = document(300, MARGIN, &[20; 6]);
    let (once, settled) = BagWork::settle(&bag, &own.policy, &types, &dear).unwrap();
    assert_eq!(once.bag.types()[0].preemptible.unwrap().micros(), 290_000);
    let again = BagWork::read(&settled).unwrap();
    assert_eq!((once.maps(), &once.bag), (again.maps(), &again.bag));
    // A plan that is not one of the bag is refused.
    let mut other = settled;
    other["plan"][0]["vm"]["cores"][0][0] = json!(99);
    assert_eq!(BagWork::read(&other).unwrap_err().code(), "EB-BATCH-002");
}

#[test]
fn a_node_of_which_slurmctld_did_not_hear_is_asked_for_again_at_once() {
    let mut settings = settings(NODES);
    settings.policy.launch_again_seconds = 60.0;
    let mut service = Service::new(settings);
    service.submit(&document(300, MARGIN, &[10]));
    let made = service.world.look(&mut service.controller);
    let ups = made.nodes.iter();
    let ups = ups.filter(|one| matches!(one, BurstAction::PowerUp { .. }));
    assert_eq!(ups.count(), 1, "{:?}", made.nodes);
    // What was decided is lost.
    (0..12).for_each(|_| service.step(false));
    assert_eq!(service.world.servers().len(), 1);
}

#[test]
fn on_an_openstack_a_server_that_is_kept_has_lost_its_memory_and_counts_as_gone() {
    let cloud = "[openstack]\ncloud = \"batch\"\nimage = \"node\"";
    let mut service = Service::new(settings_on(cloud, NODES));
    let id = service.submit(&document(400, MARGIN, &[40; 4]));
    let node = service.bag(id).node(VmId::Primary(0)).to_owned();
    let outage = Outage {
        node,
        from: BEGUN + 25_000,
        until: BEGUN + 30_000,
        end: 5,
    };
    service.until_over(&[outage], &[]);
    assert!(service.is_met(id));
    let events = service.events(id);
    assert!(
        events.contains(&BagEvent::Interrupted(VmId::Primary(0))),
        "{events:?}"
    );
    assert!(
        !events
            .iter()
            .any(|one| matches!(one, BagEvent::Hibernated(_))),
        "{events:?}"
    );
    assert!(!service.moved(id).is_empty());
}
