//! Which hosts Placement would offer, against its rules written down plainly.

use crate::kit::{self, cloud_of, node, request};
use ebbtide_nova::model::{Aggregate, Options};
use ebbtide_nova_cloud::{CloudSettings, Inventory, ProviderFacts};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

const TRAITS: [&str; 4] = [
    "CUSTOM_A",
    "CUSTOM_B",
    "COMPUTE_STATUS_DISABLED",
    "HW_CPU_X86_AVX2",
];
const CLASSES: [&str; 4] = ["VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_X"];

fn aggregate(number: u128) -> Uuid {
    Uuid::from_u128(0xA000 + number)
}

fn inventory() -> impl Strategy<Value = Inventory> {
    (
        1_i64..40,
        0_i64..6,
        1_i64..3,
        1_i64..40,
        select(vec![1_i64, 1, 1, 2, 5]),
        select(vec![1.0, 1.5, 0.9, 4.0, 16.0]),
    )
        .prop_map(
            |(total, reserved, min_unit, max_unit, step_size, allocation_ratio)| Inventory {
                total,
                reserved: reserved.min(total),
                min_unit,
                max_unit,
                step_size,
                allocation_ratio,
            },
        )
}

fn provider() -> impl Strategy<Value = ProviderFacts> {
    let inventories = prop::collection::btree_map(
        select(CLASSES.to_vec()).prop_map(str::to_owned),
        inventory(),
        2..5,
    );
    let used = prop::collection::btree_map(
        select(CLASSES.to_vec()).prop_map(str::to_owned),
        0_i64..20,
        0..4,
    );
    let traits = subsequence(TRAITS.to_vec(), 0..4);
    let aggregates = subsequence((0..4_u128).collect::<Vec<_>>(), 0..3);
    (inventories, used, traits, aggregates).prop_map(|(inventories, used, traits, aggregates)| {
        ProviderFacts {
            generation: Some(3),
            inventories: Some(inventories),
            used: Some(used),
            traits: Some(traits.into_iter().map(str::to_owned).collect()),
            aggregates: Some(aggregates.into_iter().map(aggregate).collect()),
            ..ProviderFacts::default()
        }
    })
}

/// What is asked, by itself.
#[derive(Debug, Clone)]
struct OfferQuery {
    vcpus: i64,
    memory: i64,
    disk: i64,
    custom: Option<i64>,
    required: Option<&'static str>,
    forbidden: Option<&'static str>,
    zone: Option<u128>,
    tree: Option<u128>,
}

fn question() -> impl Strategy<Value = OfferQuery> {
    (
        1_i64..12,
        1_i64..12,
        0_i64..12,
        prop::option::weighted(0.3, 1_i64..6),
        prop::option::weighted(0.3, select(TRAITS.to_vec())),
        prop::option::weighted(0.3, select(TRAITS.to_vec())),
        prop::option::weighted(0.3, 0_u128..4),
        prop::option::weighted(0.1, 0_u128..12),
    )
        .prop_map(
            |(vcpus, memory, disk, custom, required, forbidden, zone, tree)| OfferQuery {
                vcpus,
                memory,
                disk,
                custom,
                required,
                forbidden: forbidden.filter(|forbidden| Some(*forbidden) != required),
                zone,
                tree,
            },
        )
}

/// Placement's rules for one provider (`placement/objects/research_context.py`).
fn offers(number: u128, provider: &ProviderFacts, question: &OfferQuery) -> bool {
    let asked = [
        ("VCPU", question.vcpus),
        ("MEMORY_MB", question.memory),
        ("DISK_GB", question.disk),
        ("CUSTOM_X", question.custom.unwrap_or(0)),
    ];
    let gives = |(class, amount): &(&str, i64)| {
        let inventories = provider.inventories.as_ref().unwrap();
        let Some(inventory) = inventories.get(*class) else {
            return false;
        };
        let used = provider
            .used
            .as_ref()
            .unwrap()
            .get(*class)
            .copied()
            .unwrap_or(0);
        let capacity = (inventory.total - inventory.reserved) as f64 * inventory.allocation_ratio;
        (used + amount) as f64 <= capacity
            && *amount >= inventory.min_unit
            && *amount <= inventory.max_unit
            && amount % inventory.step_size == 0
    };
    let traits = provider.traits.as_ref().unwrap();
    let aggregates = provider.aggregates.as_ref().unwrap();
    asked.iter().filter(|(_, amount)| *amount > 0).all(gives)
        && !traits.contains("COMPUTE_STATUS_DISABLED")
        && question.required.is_none_or(|name| traits.contains(name))
        && question.forbidden.is_none_or(|name| !traits.contains(name))
        && question
            .zone
            .is_none_or(|zone| aggregates.contains(&aggregate(zone)))
        && question.tree.is_none_or(|tree| tree == number)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_hosts_offered_are_those_that_placement_offers(
        providers in prop::collection::vec(provider(), 1..12),
        question in question(),
    ) {
        let vcpus = vec![8; providers.len()];
        let mut cloud = cloud_of(&vcpus, Options::default(), CloudSettings::default());
        let zones = (0..4_u128).map(|zone| Aggregate {
            id: zone as i64,
            uuid: aggregate(zone).to_string(),
            name: format!("z{zone}"),
            hosts: Vec::new(),
            metadata: BTreeMap::from([("availability_zone".to_owned(), format!("z{zone}"))]),
        });
        cloud.set_aggregates(zones.collect());
        for (number, provider) in (0..).zip(&providers) {
            let mut provider = provider.clone();
            provider.uuid = node(number);
            cloud.put_provider(provider);
        }
        let (mut spec, _) = request(1, 1);
        spec.flavor.vcpus = question.vcpus;
        spec.flavor.memory_mb = question.memory;
        spec.flavor.root_gb = question.disk;
        let specs = spec.flavor.extra_specs.as_mut().unwrap();
        if let Some(amount) = question.custom {
            specs.insert("resources:CUSTOM_X", amount.to_string());
        }
        if let Some(name) = question.required {
            specs.insert(format!("trait:{name}"), "required".to_owned());
        }
        if let Some(name) = question.forbidden {
            specs.insert(format!("trait:{name}"), "forbidden".to_owned());
        }
        spec.availability_zone = question.zone.map(|zone| format!("z{zone}"));
        spec.force_hosts = question.tree.map(|tree| vec![kit::host_name(tree)]);
        let known = question.tree.is_none_or(|tree| tree < providers.len() as u128);
        let asked = cloud.ask(&mut spec);
        prop_assert_eq!(asked.is_ok(), known, "an unknown host fails the request");
        let Ok(asked) = asked else { return Ok(()) };
        let offered = cloud.candidates(&asked).unwrap();
        let expected: BTreeSet<Uuid> = (0..).zip(&providers)
            .filter(|(number, provider)| offers(*number, provider, &question))
            .map(|(number, _)| node(number)).collect();
        let offered: BTreeSet<Uuid> = offered.hosts(&cloud).into_iter().map(|host| host.uuid).collect();
        prop_assert_eq!(offered, expected);
    }
}

#[test]
fn the_limit_cuts_only_where_it_shall() {
    let options = || Options {
        max_placement_results: Some(2),
        ..Options::default()
    };
    let many = |settings| {
        let cloud = cloud_of(&[4; 5], options(), settings);
        let (mut spec, _) = request(1, 1);
        let asked = cloud.ask(&mut spec).unwrap();
        cloud.candidates(&asked).unwrap().len()
    };
    assert_eq!(many(CloudSettings::default()), 5);
    assert_eq!(
        many(CloudSettings {
            cut_like_placement: true,
            ..CloudSettings::default()
        }),
        2
    );
}
