//! Victims by what they would still have lived, against every set of candidates on every host, and
//! what is read of flavors and zones for it.

use super::kit::*;
use crate::{Engine, EngineConfig, HostTable, Instance};
use ebbtide_model::{DecisionOutcome, LifeGroup, LifeTable, LifeTables, Seconds};
use proptest::prelude::*;

const HOUR: f64 = 3600.0;

fn even(hours: f64) -> LifeTable {
    LifeTable::new(&[(0.0, 1.0), (hours * HOUR, 0.0)], 0.0).unwrap()
}

fn about(flavor: Option<&str>, zone: Option<&str>) -> LifeGroup {
    LifeGroup {
        flavor: flavor.map(str::to_owned),
        zone: zone.map(str::to_owned),
    }
}

fn by_remaining(lifetimes: LifeTables) -> Engine {
    engine(EngineConfig {
        cost_module: "remaining_lifetime".to_owned(),
        lifetimes: Some(lifetimes),
        ..EngineConfig::default()
    })
}

/// The numbers of the victims for a request of so many CPUs.
fn victims(lifetimes: LifeTables, table: &HostTable, vcpus: u32) -> Vec<u128> {
    let decision = decide_with(&by_remaining(lifetimes), table, &wants(vcpus));
    summary(&decision).remove(0).1
}

#[test]
fn who_is_near_the_end_of_its_flavor_goes_although_another_is_older() {
    let far = spot(1, "h", 2, 600);
    let near = Instance {
        ends_at: Some(now().plus(Seconds(120))),
        ..spot(2, "h", 2, 60)
    };
    let table = cloud(&[("h", 4)], &[far, near]);
    assert_eq!(
        victims(LifeTables::new(even(48.0), Vec::new()), &table, 2),
        [2]
    );
}

#[test]
fn each_goes_by_the_model_of_its_own_flavor() {
    let of = |number, flavor: &str, minutes| Instance {
        flavor: flavor.to_owned(),
        ..spot(number, "h", 2, minutes)
    };
    let table = cloud(&[("h", 4)], &[of(1, "long", 60), of(2, "short", 60)]);
    let lifetimes = |short: f64, long: f64| {
        let groups = vec![
            (about(Some("short"), None), even(short)),
            (about(Some("long"), None), even(long)),
        ];
        LifeTables::new(even(10.0), groups)
    };
    assert_eq!(victims(lifetimes(2.0, 48.0), &table, 2), [2]);
    assert_eq!(victims(lifetimes(48.0, 2.0), &table, 2), [1]);
}

#[test]
fn each_goes_by_the_model_of_the_zone_of_its_host() {
    let mut table = cloud(
        &[("a", 2), ("b", 2)],
        &[spot(1, "a", 2, 60), spot(2, "b", 2, 60)],
    );
    table.set_aggregates(&[
        aggregate(1, &["a"], &[("availability_zone", "zone-a")]),
        aggregate(2, &["b"], &[("availability_zone", "zone-b")]),
    ]);
    for (zone, expected) in [("zone-a", 1), ("zone-b", 2)] {
        let lifetimes = LifeTables::new(even(48.0), vec![(about(None, Some(zone)), even(2.0))]);
        assert_eq!(victims(lifetimes, &table, 2), [expected]);
    }
}

/// The mean of what is left of an even life of 48 hours, of which only the next `most` seconds
/// count; by its own formula.
fn left(age: f64, most: f64) -> f64 {
    let rest = 48.0 * HOUR - age;
    if rest <= 0.0 {
        return 0.0;
    }
    let most = most.min(rest);
    most - most * most / (2.0 * rest)
}

fn price(instance: &Instance) -> f64 {
    let age = now().millis_since(instance.launched_at.unwrap()) as f64 / 1000.0;
    let most = instance.ends_at.map_or(f64::INFINITY, |end| {
        (end.millis_since(now()) as f64 / 1000.0).max(0.0)
    });
    left(age, most) / HOUR * instance.resources.amount("VCPU") as f64
}

fn any_instances() -> impl Strategy<Value = Vec<Instance>> {
    let one = (
        0_usize..2,
        1_u64..4,
        0_i64..4000,
        prop::option::of(0_u32..200_000),
    );
    prop::collection::vec(one, 1..9).prop_map(|rows| {
        let rows = rows.into_iter().zip(1_u128..);
        rows.map(|((host, vcpus, minutes, end), number)| Instance {
            ends_at: end.map(|seconds| now().plus(Seconds(seconds))),
            ..spot(number, ["a", "b"][host], vcpus, minutes)
        })
        .collect()
    })
}

proptest! {
    #[test]
    fn no_sufficient_set_on_any_host_would_have_lived_less(instances in any_instances(), wanted in 1_u32..8) {
        let size = |host: &str| -> u64 {
            instances.iter().filter(|i| i.host == host).map(|i| i.resources.amount("VCPU")).sum()
        };
        // Both hosts are full.
        let hosts = [("a", size("a")), ("b", size("b"))];
        let table = cloud(&hosts, &instances);
        let mut least = f64::INFINITY;
        for mask in 1_u32..1 << instances.len() {
            let set: Vec<&Instance> = (0..instances.len()).filter(|at| mask & (1 << at) != 0).map(|at| &instances[at]).collect();
            let together = set.iter().all(|i| i.host == set[0].host);
            let freed: u64 = set.iter().map(|i| i.resources.amount("VCPU")).sum();
            if together && freed >= u64::from(wanted) {
                least = least.min(set.iter().map(|i| price(i)).sum());
            }
        }
        let engine = by_remaining(LifeTables::new(even(48.0), Vec::new()));
        let decision = decide_with(&engine, &table, &wants(wanted));
        let again = decide_with(&engine, &table, &wants(wanted));
        prop_assert_eq!(&decision, &again);
        match decision.outcome {
            DecisionOutcome::NoValidHost(_) => prop_assert_eq!(least, f64::INFINITY),
            DecisionOutcome::Placed(placements) => {
                let chosen = placements[0].victims.iter();
                let chosen = chosen.map(|victim| instances.iter().find(|i| i.id == victim.server_id).unwrap());
                let cost: f64 = chosen.map(price).sum();
                prop_assert!((cost - least).abs() < 1e-4, "{cost} and {least}");
            }
        }
    }
}
