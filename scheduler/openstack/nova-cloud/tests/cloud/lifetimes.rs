//! Servers whose lifetime is over, against a look at every server.

use crate::kit::{self, NOW, cloud_of, fresh, instance, node, server, settle};
use ebbtide_model::{InterruptionBehaviour, Seconds, Timestamp};
use ebbtide_nova::model::Options;
use ebbtide_nova_cloud::{Allocations, Cloud, CloudSettings};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

const GRACE: i64 = 120;

fn now() -> Timestamp {
    Timestamp::from_millis(NOW / 1000)
}

fn cloud() -> Cloud {
    let settings = CloudSettings {
        grace: Seconds(GRACE as u32),
        ..CloudSettings::default()
    };
    cloud_of(&[64], Options::default(), settings)
}

/// Puts a server of that age, in minutes, with these keys of our scope.
fn put(cloud: &mut Cloud, n: u128, minutes: i64, keys: &[(&str, &str)]) {
    let mut record = instance(n, 0, 1, minutes, true);
    let keys: Vec<(String, &str)> = keys
        .iter()
        .map(|(key, value)| (format!("ebbtide:{key}"), *value))
        .collect();
    let mut specs = vec![("ebbtide:preemptible", "true")];
    specs.extend(keys.iter().map(|(key, value)| (key.as_str(), *value)));
    record.flavor = kit::flavor(1, &specs);
    settle(cloud, record);
}

/// One change of one server.
#[derive(Debug, Clone)]
struct Change {
    n: u128,
    minutes: i64,
    lifetime: Option<i64>,
    grace: Option<i64>,
    state: &'static str,
    locked: bool,
    ending: &'static str,
    leaving: bool,
    started: Option<i64>,
    deleted: bool,
}

fn change() -> impl Strategy<Value = Change> {
    let first = (
        0_u128..5,
        0_i64..60,
        proptest::option::weighted(0.8, 1_i64..60),
        proptest::option::of(select(vec![0_i64, 30, 300])),
        select(vec![
            "active",
            "active",
            "paused",
            "stopped",
            "suspended",
            "building",
        ]),
    );
    let second = (
        prop::bool::weighted(0.1),
        select(vec!["terminate", "stop", "hibernate", "live-migrate"]),
        prop::bool::weighted(0.2),
        proptest::option::weighted(0.2, 0_i64..60),
        prop::bool::weighted(0.1),
    );
    (first, second).prop_map(
        |((n, minutes, lifetime, grace, state), (locked, ending, leaving, started, deleted))| {
            Change {
                n,
                minutes,
                lifetime,
                grace,
                state,
                locked,
                ending,
                leaving,
                started,
                deleted,
            }
        },
    )
}

/// When its notice is due, in seconds before now; negative: later.
fn overdue(change: &Change, started: Option<i64>) -> Option<i64> {
    let grace = change.grace.unwrap_or(GRACE);
    let lifetime = change.lifetime? * 60;
    let stops = ["stop", "live-migrate"].contains(&change.ending);
    let over = change.deleted
        || change.leaving
        || change.locked
        || change.state == "building"
        || (matches!(change.state, "stopped" | "suspended") && stops)
        || lifetime <= grace;
    let age = started.unwrap_or(change.minutes).min(change.minutes) * 60;
    (!over).then_some(age - (lifetime - grace))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn those_are_due_whose_notice_is_due_and_no_others(changes in prop::collection::vec(change(), 0..16)) {
        let mut cloud = cloud();
        let mut last: std::collections::BTreeMap<u128, (Change, Option<i64>)> = Default::default();
        for change in changes {
            let mut started = last.get(&change.n).and_then(|(_, started)| *started);
            if change.deleted {
                cloud.remove_instance(server(change.n));
                last.insert(change.n, (change, None));
                continue;
            }
            let mut record = instance(change.n, 0, 1, change.minutes, true);
            let text = |n: i64| n.to_string();
            let (lifetime, grace) = (change.lifetime.map(|m| text(m * 60)), change.grace.map(text));
            let mut specs = vec![("ebbtide:preemptible", "true"), ("ebbtide:interruption", change.ending)];
            specs.extend(grace.as_deref().map(|grace| ("ebbtide:grace_seconds", grace)));
            specs.extend(lifetime.as_deref().map(|most| ("ebbtide:max_lifetime_seconds", most)));
            record.flavor = kit::flavor(1, &specs);
            record.vm_state = Some(change.state.to_owned());
            record.locked = change.locked;
            settle(&mut cloud, record);
            cloud.set_leaving(server(change.n), change.leaving);
            if let Some(minutes) = change.started {
                started = Some(minutes);
                cloud.set_started(server(change.n), NOW - minutes * 60_000_000);
            }
            last.insert(change.n, (change, started));
        }
        let due: BTreeSet<Uuid> = cloud.lifetimes_due(now()).into_iter().collect();
        let all = last.values();
        let overdue: Vec<(u128, i64)> = all.filter_map(|(c, started)| Some((c.n, overdue(c, *started)?))).collect();
        let expected: BTreeSet<Uuid> = overdue.iter().filter(|(_, by)| *by >= 0).map(|(n, _)| server(*n)).collect();
        prop_assert_eq!(due, expected);
        let next = overdue.iter().filter(|(_, by)| *by < 0).map(|(_, by)| -by).min();
        let told = cloud.next_lifetime(now()).map(|at| at.millis_since(now()) / 1000);
        prop_assert_eq!(told, next);
    }
}

#[test]
fn one_that_would_be_moved_is_stopped_and_keeps_its_disk() {
    let mut cloud = cloud();
    let keys = [
        ("max_lifetime_seconds", "3600"),
        ("interruption", "live-migrate"),
    ];
    put(&mut cloud, 1, 90, &keys);
    assert_eq!(cloud.lifetimes_due(now()), [server(1)]);
    let moved = cloud.victim(server(1), 0.0).unwrap();
    assert_eq!(moved.interruption, InterruptionBehaviour::LiveMigrate);
    assert!(moved.keeps.is_empty());
    let ended = cloud.victim_of_end(server(1)).unwrap();
    assert_eq!(ended.interruption, InterruptionBehaviour::Stop);
    let kept: Vec<_> = ended.keeps.values().flatten().collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(kept[0].0, "DISK_GB");
}

#[test]
fn one_that_is_stopped_keeps_what_it_has_below_its_host() {
    let mut cloud = cloud();
    let card = fresh(1);
    for (n, behaviour) in [(1, "stop"), (2, "live-migrate"), (3, "terminate")] {
        put(&mut cloud, n, 90, &[("interruption", behaviour)]);
        let root = cloud.victim(server(n), 0.0).unwrap().allocations;
        let mut allocations = root.clone();
        allocations.insert(card, BTreeMap::from([("FPGA".to_owned(), 1)]));
        cloud.claimed(server(n), &allocations, Some(2));
        let disk = |all: &Allocations| {
            let disk = all[&node(0)]["DISK_GB"];
            BTreeMap::from([("DISK_GB".to_owned(), disk)])
        };
        let kept = Allocations::from([
            (node(0), disk(&root)),
            (card, BTreeMap::from([("FPGA".to_owned(), 1)])),
        ]);
        let (victim, ended) = (
            cloud.victim(server(n), 0.0).unwrap(),
            cloud.victim_of_end(server(n)).unwrap(),
        );
        assert_eq!(victim.allocations, allocations);
        let nothing = Allocations::new();
        let (stops, stops_at_end) = (behaviour == "stop", behaviour != "terminate");
        assert_eq!(victim.keeps, *if stops { &kept } else { &nothing });
        assert_eq!(ended.keeps, *if stops_at_end { &kept } else { &nothing });
    }
}

#[test]
fn a_server_that_is_leaving_is_no_victim_of_its_lifetime() {
    let mut cloud = cloud();
    put(&mut cloud, 1, 90, &[("max_lifetime_seconds", "3600")]);
    cloud.set_leaving(server(1), true);
    assert_eq!(cloud.lifetimes_due(now()), Vec::<Uuid>::new());
    assert_eq!(cloud.victim_of_end(server(1)), None);
    cloud.set_leaving(server(1), false);
    assert_eq!(cloud.lifetimes_due(now()), [server(1)]);
}
