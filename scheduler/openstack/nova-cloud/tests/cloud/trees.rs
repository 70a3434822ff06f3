//! Requests that are placed into trees of providers, held against a real Placement: all placements
//! of random trees, and plans whose victims are really removed.

use crate::kit::{self, NOW, cloud_of, inventory, node, request, server};
use crate::real_placement::{RealPlacement, amounts, wrapped};
use ebbtide_nova::model::{Options, OrderedMap};
use ebbtide_nova::placement::{Query, QueryGroup};
use ebbtide_nova_cloud::{
    Cloud, CloudSettings, Inventory, PlanOptions, PreemptionPlan, VerifyResult,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

const CLASSES: [&str; 3] = ["VGPU", "CUSTOM_PCI", "SRIOV_NET_VF"];
const TRAITS: [&str; 3] = ["CUSTOM_RED", "CUSTOM_BLUE", "HW_GPU_API_VULKAN"];
const HOSTS: u128 = 2;

/// Chance from a seed (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn percent(&mut self, n: u64) -> bool {
        self.below(100) < n
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()].clone()
    }
}

fn child(number: u128) -> Uuid {
    Uuid::from_u128(0x1100_0000_0000_4000_8000_0000_0000_0000 + number)
}

fn aggregate(number: u128) -> Uuid {
    Uuid::from_u128(0xe000_0000_0000_4000_8000_0000_0000_0000 + number)
}

/// A random inventory, often of one or two.
fn some(chance: &mut Chance) -> Inventory {
    let total = i64::try_from(1 + chance.below(3)).unwrap();
    let mut all = inventory(total);
    if chance.percent(10) {
        all.reserved = 1;
    }
    if chance.percent(10) {
        all.max_unit = 1;
    }
    if chance.percent(5) {
        (all.allocation_ratio, all.max_unit) = (2.0, 2 * total);
    }
    all
}

fn names(chance: &mut Chance, percent: u64) -> Vec<String> {
    let named = TRAITS.into_iter().filter(|_| chance.percent(percent));
    named.map(str::to_owned).collect()
}

/// Two hosts with children and grandchildren and perhaps a provider that shares disk. All provider
/// UUIDs.
fn trees(placement: &mut RealPlacement, chance: &mut Chance, shares: bool) -> Vec<Uuid> {
    placement.reset();
    for class in CLASSES.iter().filter(|class| class.starts_with("CUSTOM_")) {
        placement.must("PUT", &format!("/resource_classes/{class}"), Value::Null);
    }
    for name in TRAITS.iter().filter(|name| name.starts_with("CUSTOM_")) {
        placement.must("PUT", &format!("/traits/{name}"), Value::Null);
    }
    let mut all = Vec::new();
    for host in 0..HOSTS {
        let mut own = vec![("VCPU", inventory(8)), ("MEMORY_MB", inventory(16_000))];
        if !shares || chance.percent(30) {
            own.push(("DISK_GB", inventory(160)));
        }
        if chance.percent(20) {
            own.push((chance.of(&CLASSES), some(chance)));
        }
        placement.provider(node(host), None, &own);
        all.push(node(host));
        let mut parents = vec![node(host)];
        for number in 0..1 + chance.below(4) {
            let uuid = child(host * 100 + u128::from(number));
            let classes = CLASSES.into_iter().filter(|_| chance.percent(50));
            let classes: Vec<_> = classes.collect();
            let classes: Vec<_> = classes
                .into_iter()
                .map(|class| (class, some(chance)))
                .collect();
            placement.provider(uuid, Some(chance.of(&parents)), &classes);
            parents.push(uuid);
            all.push(uuid);
        }
    }
    if shares {
        let pool = child(900);
        let mut has = vec![("DISK_GB", inventory(200))];
        if chance.percent(30) {
            has.push(("VGPU", some(chance)));
        }
        placement.provider(pool, None, &has);
        all.push(pool);
    }
    for uuid in &all {
        let mut traits = names(chance, 40);
        if *uuid == child(900) {
            traits.push("MISC_SHARES_VIA_AGGREGATE".to_owned());
        }
        placement.set(*uuid, "traits", &traits);
        let member = (0..2).filter(|_| chance.percent(40)).map(aggregate);
        let mut member: Vec<String> = member.map(|uuid| uuid.to_string()).collect();
        if *uuid == child(900) && member.is_empty() {
            member.push(aggregate(0).to_string());
        }
        placement.set(*uuid, "aggregates", &member);
    }
    all
}

/// A group of up to two classes with rules.
fn group(
    chance: &mut Chance,
    suffix: Option<String>,
    all: &[Uuid],
    classes: &[&str],
) -> QueryGroup {
    let mut asked = QueryGroup {
        suffix,
        ..QueryGroup::default()
    };
    for class in classes {
        let amount = match *class {
            "VCPU" => 1 + i128::from(chance.below(4)),
            "DISK_GB" => 20,
            _ => 1 + i128::from(chance.below(5) / 4),
        };
        asked.resources.insert((*class).to_owned(), amount);
    }
    for name in TRAITS {
        match chance.below(30) {
            0 | 1 => drop(asked.required.insert(name.to_owned())),
            2 => drop(asked.forbidden.insert(name.to_owned())),
            _ => {}
        }
    }
    if chance.percent(8) {
        asked
            .member_of
            .push(vec![aggregate(0).to_string(), aggregate(1).to_string()]);
    }
    if chance.percent(5) {
        asked.forbidden_aggregates.insert(aggregate(1).to_string());
    }
    if chance.percent(8) {
        asked.in_tree = Some(chance.of(all).to_string());
    }
    asked
}

fn query(chance: &mut Chance, all: &[Uuid], shares: bool) -> Query {
    let mut asked = Query::default();
    let mut plain = vec!["VCPU"];
    if shares || chance.percent(30) {
        plain.push("DISK_GB");
    }
    if chance.percent(30) {
        plain.push(chance.of(&CLASSES));
    }
    asked.groups.push(group(chance, None, all, &plain));
    let numbered = chance.below(3);
    for number in 0..numbered {
        let suffix = Some(format!("_{number}"));
        let mut classes = vec![chance.of(&CLASSES)];
        if chance.percent(15) {
            classes.push(chance.of(&CLASSES));
        }
        asked.groups.push(group(chance, suffix, all, &classes));
    }
    let plain: BTreeSet<String> = asked.groups[0].resources.keys().cloned().collect();
    let mut others = asked.groups[1..]
        .iter()
        .flat_map(|group| group.resources.keys());
    let meet = others.any(|class| plain.contains(class));
    if numbered > 0 {
        let isolate = chance.percent(40) && !meet;
        asked.group_policy = Some(if isolate { "isolate" } else { "none" }.to_owned());
    }
    if numbered > 1 && chance.percent(30) {
        let mut suffixes: Vec<String> = (0..2).map(|number| format!("_{number}")).collect();
        if chance.percent(50) {
            // A group of nothing but a place.
            let suffix = "_top".to_owned();
            let mut top = group(chance, Some(suffix.clone()), all, &[]);
            top.required.insert(chance.of(&TRAITS).to_owned());
            top.forbidden.clear();
            asked.groups.push(top);
            suffixes.push(suffix);
        }
        asked.same_subtree.push(suffixes);
    }
    if chance.percent(8) {
        asked.root_required.insert(chance.of(&TRAITS).to_owned());
    }
    if chance.percent(10) {
        let name = chance.of(&TRAITS).to_owned();
        if !asked.root_required.contains(&name) {
            asked.root_forbidden.insert(name);
        }
    }
    asked.text = text(&asked);
    asked
}

/// The query string.
fn text(query: &Query) -> String {
    let mut all: Vec<(String, String)> = Vec::new();
    let rules = |required: &BTreeSet<String>, forbidden: &BTreeSet<String>| {
        let forbidden = forbidden.iter().map(|name| format!("!{name}"));
        let rules: Vec<String> = required.iter().cloned().chain(forbidden).collect();
        rules.join(",")
    };
    let policy = query.group_policy.iter();
    all.extend(policy.map(|policy| ("group_policy".to_owned(), policy.clone())));
    let of_root = rules(&query.root_required, &query.root_forbidden);
    all.push(("root_required".to_owned(), of_root));
    let subtrees = query.same_subtree.iter();
    all.extend(subtrees.map(|of| ("same_subtree".to_owned(), of.join(","))));
    for group in &query.groups {
        let suffix = group.suffix.clone().unwrap_or_default();
        let amounts = group
            .resources
            .iter()
            .map(|(class, n)| format!("{class}:{n}"));
        let amounts: Vec<String> = amounts.collect();
        all.push((format!("resources{suffix}"), amounts.join(",")));
        let traits = rules(&group.required, &group.forbidden);
        all.push((format!("required{suffix}"), traits));
        let member = group
            .member_of
            .iter()
            .map(|of| format!("in:{}", of.join(",")));
        all.extend(member.map(|of| (format!("member_of{suffix}"), of)));
        let bad = group.forbidden_aggregates.iter().map(|of| format!("!{of}"));
        all.extend(bad.map(|of| (format!("member_of{suffix}"), of)));
        let tree = group.in_tree.iter().cloned();
        all.extend(tree.map(|of| (format!("in_tree{suffix}"), of)));
    }
    all.retain(|(_, value)| !value.is_empty());
    let pairs = all.iter().map(|(key, value)| format!("{key}={value}"));
    pairs.collect::<Vec<_>>().join("&")
}

fn cloud() -> Cloud {
    cloud_of(&[8, 8], Options::default(), CloudSettings::default())
}

/// A candidate as text, lists in order.
fn plain(allocations: &Value, mappings: &Value) -> String {
    let mut mappings = mappings.clone();
    for list in mappings.as_object_mut().unwrap().values_mut() {
        list.as_array_mut().unwrap().sort_by_key(Value::to_string);
    }
    let mut allocations = allocations.clone();
    let of = allocations.as_object_mut().unwrap();
    of.retain(|_, amounts| !amounts.as_object().unwrap().is_empty());
    format!("{allocations} {mappings}")
}

/// Other seeds in each run; a failure names the one.
fn first_seed() -> u64 {
    1_000 + u64::from(std::process::id()) % 100_000
}

#[test]
fn all_placements_of_random_trees_are_those_of_a_real_placement() {
    let mut placement = RealPlacement::start();
    let first = first_seed();
    let (mut met, mut several) = (0, 0);
    for seed in first..first + 6 {
        let mut chance = Chance(seed);
        let shares = seed % 3 == 0;
        let all = trees(&mut placement, &mut chance, shares);
        let mut cloud = cloud();
        placement.read_into(&mut cloud);
        for round in 0..15 {
            let asked = query(&mut chance, &all, shares);
            let theirs = placement.candidates(&asked.text);
            for host in 0..HOSTS {
                let root = node(host).to_string();
                let of_host = theirs.iter().filter(|(of, _)| of.get(&root).is_some());
                let theirs: BTreeSet<String> = of_host.map(|(a, m)| plain(a, m)).collect();
                let ours = cloud.placements(node(host), &asked).unwrap();
                let ours = ours
                    .iter()
                    .map(|one| plain(&amounts(&one.allocations), &one.mappings));
                let ours: BTreeSet<String> = ours.collect();
                assert_eq!(
                    ours, theirs,
                    "\nours, theirs; seed {seed}, {round}: {}",
                    asked.text
                );
                met += usize::from(!theirs.is_empty());
                several += usize::from(theirs.len() > 1);
            }
            // One of them takes what it was offered.
            if !theirs.is_empty() && chance.percent(60) {
                let (allocations, _) = chance.of(&theirs);
                let consumer = server(u128::from(seed * 100 + round));
                placement.claim(consumer, &allocations);
                placement.read_into(&mut cloud);
            }
        }
    }
    assert!(
        met > 15 && several > 3,
        "{met} with placements, {several} with several"
    );
}

/// A request's flavor: two CPUs and numbered groups, as Nova's users write them.
fn specs(chance: &mut Chance) -> Vec<(String, String)> {
    let mut specs = Vec::new();
    let numbered = chance.below(4);
    for number in 1..=numbered {
        let class = chance.of(&CLASSES);
        specs.push((format!("resources{number}:{class}"), "1".to_owned()));
        if chance.percent(25) {
            specs.push((
                format!("trait{number}:{}", chance.of(&TRAITS)),
                "required".to_owned(),
            ));
        }
    }
    if numbered == 0 || chance.percent(15) {
        specs.push((format!("resources:{}", chance.of(&CLASSES)), "1".to_owned()));
        specs.push(("group_policy".to_owned(), "none".to_owned()));
    } else if numbered > 1 {
        let policy = if chance.percent(50) {
            "isolate"
        } else {
            "none"
        };
        specs.push(("group_policy".to_owned(), policy.to_owned()));
    }
    specs
}

/// The cheapest set of servers whose leaving makes room on one host: cost, then number.
fn cheapest(
    cloud: &mut Cloud,
    asked: &Query,
    guests: &[(Uuid, u128, i64)],
) -> Option<(i64, usize)> {
    let mut best = None;
    for host in 0..HOSTS {
        let own: Vec<_> = guests.iter().filter(|guest| guest.1 == host).collect();
        for set in 0..1_u32 << own.len() {
            let gone = own
                .iter()
                .enumerate()
                .filter(|(bit, _)| set >> bit & 1 == 1);
            let gone: Vec<_> = gone.map(|(_, guest)| *guest).collect();
            let held: Vec<_> = gone
                .iter()
                .map(|guest| {
                    cloud
                        .consumer(guest.0)
                        .map(|(all, at)| (all.clone(), at))
                        .unwrap()
                })
                .collect();
            gone.iter().for_each(|guest| cloud.released(guest.0));
            let fits = cloud
                .placements(node(host), asked)
                .is_some_and(|all| !all.is_empty());
            for (guest, (allocations, generation)) in gone.iter().zip(held) {
                cloud.claimed(guest.0, &allocations, generation);
            }
            if fits {
                let way = (gone.iter().map(|guest| guest.2 % 60 * 60).sum(), gone.len());
                best = Some(best.map_or(way, |best: (i64, usize)| best.min(way)));
            }
        }
    }
    best
}

/// Removes the victims for good, one by one back and away again, and then swaps.
fn carry_out(placement: &mut RealPlacement, plan: &PreemptionPlan, text: &str, told: &str) {
    let [instance] = plan.instances.as_slice() else {
        panic!("{told}: {plan:?}");
    };
    let wanted = plain(
        &amounts(&instance.candidate.allocations),
        &instance.candidate.mappings,
    );
    let offers = |placement: &mut RealPlacement| {
        let all = placement.candidates(text);
        all.iter()
            .any(|(allocations, mappings)| plain(allocations, mappings) == wanted)
    };
    let had = |uuid: Uuid| {
        let victim = plan
            .victims
            .iter()
            .find(|victim| victim.uuid == uuid)
            .unwrap();
        json!(victim.allocations)
    };
    let victims: Vec<Uuid> = plan.victims.iter().map(|victim| victim.uuid).collect();
    victims.iter().for_each(|uuid| placement.release(*uuid));
    assert!(
        offers(placement),
        "{told}: not offered once the victims have left: {wanted}"
    );
    for uuid in &victims {
        placement.claim(*uuid, &had(*uuid));
        assert!(!offers(placement), "{told}: {uuid} need not have left");
        placement.release(*uuid);
    }
    victims
        .iter()
        .for_each(|uuid| placement.claim(*uuid, &had(*uuid)));
    // Placement has made the consumers anew.
    let mut body = serde_json::Map::new();
    for victim in &plan.victims {
        let held = placement.get(&format!("/allocations/{}", victim.uuid));
        body.insert(
            victim.uuid.to_string(),
            json!({"allocations": wrapped(&json!(victim.keeps)), "project_id": "p",
                "user_id": "u", "consumer_generation": held["consumer_generation"]}),
        );
    }
    body.insert(
        instance.uuid.to_string(),
        json!({"allocations": instance.candidate.allocations, "project_id": "p", "user_id": "u",
            "mappings": instance.candidate.mappings, "consumer_generation": null}),
    );
    placement.must("POST", "/allocations", Value::Object(body));
}

#[test]
fn a_plan_in_trees_is_the_cheapest_and_a_real_placement_takes_it() {
    let mut placement = RealPlacement::start();
    let first = first_seed();
    let (mut planned, mut of_several, mut none) = (0, 0, 0);
    for seed in first..first + 20 {
        let told = format!("seed {seed}");
        let mut chance = Chance(seed);
        let shares = seed % 4 == 0;
        trees(&mut placement, &mut chance, shares);
        let mut cloud = cloud();
        let mut guests: Vec<(Uuid, u128, i64)> = Vec::new();
        let mut records = Vec::new();
        for number in 0..10 {
            let (mut spec, _) = request(1, 1);
            let preemptible = chance.percent(85);
            let mut extra = specs(&mut chance);
            if preemptible {
                extra.push(("ebbtide:preemptible".to_owned(), "true".to_owned()));
            }
            spec.flavor.extra_specs = Some(extra.into_iter().collect::<OrderedMap<String>>());
            let asked = cloud.ask(&mut spec).unwrap();
            let offered = placement.candidates(&asked.query.text);
            let hosts = |of: &Value| (0..HOSTS).find(|at| of.get(node(*at).to_string()).is_some());
            let offered: Vec<_> = offered
                .iter()
                .filter(|one| hosts(&one.0).is_some())
                .collect();
            if offered.is_empty() {
                continue;
            }
            let (allocations, _) = chance.of(&offered);
            let host = hosts(allocations).unwrap();
            placement.claim(server(number), allocations);
            let minutes = i64::try_from(1 + chance.below(200)).unwrap();
            let mut record = kit::instance(number, host, 1, minutes, preemptible);
            record.flavor = spec.flavor.clone();
            if preemptible {
                guests.push((record.uuid, host, minutes));
            }
            records.push(record);
        }
        records
            .into_iter()
            .for_each(|record| cloud.put_instance(record));
        for uuid in 0..HOSTS {
            assert!(cloud.host(node(uuid)).is_some());
        }
        let (mut spec, call) = request(1, 1);
        let extra = specs(&mut chance).into_iter();
        spec.flavor.extra_specs = Some(extra.collect::<OrderedMap<String>>());
        let truth = placement.read_into(&mut cloud);
        let asked = cloud.ask(&mut spec).unwrap();
        let now = placement.candidates(&asked.query.text);
        let is_root = |of: &Value| (0..HOSTS).any(|at| of.get(node(at).to_string()).is_some());
        let has_room = now.iter().any(|(allocations, _)| is_root(allocations));
        let expected = cheapest(&mut cloud, &asked.query, &guests);
        assert_eq!(expected == Some((0, 0)), has_room, "{told}");
        let result = cloud.plan(&spec, &call, &asked, NOW, &PlanOptions::default());
        let mut plan = match result {
            Ok(plan) => plan,
            Err(no) => {
                assert_eq!(expected, None, "{told}: {:?}: {}", no.reason, no.text);
                none += 1;
                continue;
            }
        };
        assert!(plan.optimal, "{told}");
        let found = (plan.cost.round() as i64, plan.victims.len());
        assert_eq!(Some(found), expected, "{told}: {}", asked.query.text);
        assert_eq!(
            cloud.verify(&mut plan, &truth),
            VerifyResult::Good,
            "{told}"
        );
        if plan.victims.is_empty() {
            continue;
        }
        carry_out(&mut placement, &plan, &asked.query.text, &told);
        planned += 1;
        of_several += usize::from(plan.victims.len() > 1);
    }
    let counts = BTreeMap::from([
        ("planned", planned),
        ("several", of_several),
        ("none", none),
    ]);
    assert!(planned > 2, "{counts:?}");
}
