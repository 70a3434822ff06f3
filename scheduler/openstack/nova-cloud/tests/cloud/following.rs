//! What is kept ready follows the facts, change for change.

use crate::kit::{self, NOW, cloud_of, compute, decide, instance, node, request, server, settle};
use ebbtide_nova::model::{Aggregate, Options};
use ebbtide_nova_cloud::{
    Cloud, CloudError, CloudSettings, Consumer, InstanceRecord, ProviderFacts, ProviderLine,
    StaleProviders,
};
use proptest::prelude::*;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

fn offered(cloud: &Cloud, vcpus: i64) -> BTreeSet<String> {
    let (mut spec, _) = request(vcpus, 1);
    let asked = cloud.ask(&mut spec).unwrap();
    let candidates = cloud.candidates(&asked).unwrap();
    candidates
        .hosts(cloud)
        .into_iter()
        .map(|host| host.host)
        .collect()
}

fn names(numbers: &[u128]) -> BTreeSet<String> {
    numbers
        .iter()
        .map(|number| kit::host_name(*number))
        .collect()
}

fn amounts(vcpus: u64) -> BTreeMap<String, u64> {
    let all = [
        ("VCPU", vcpus),
        ("MEMORY_MB", vcpus * 2000),
        ("DISK_GB", vcpus * 20),
    ];
    all.into_iter()
        .map(|(class, amount)| (class.to_owned(), amount))
        .collect()
}

#[test]
fn what_placement_has_not_said_is_believed_from_the_compute_row() {
    let mut cloud = cloud_of(&[4], Options::default(), CloudSettings::default());
    cloud.put_service(kit::service(7));
    cloud.put_compute(kit::compute(7, 8)).unwrap();
    assert_eq!(cloud.counts().unread_hosts, 1);
    assert_eq!(offered(&cloud, 6), names(&[7]));
    cloud.put_instance(instance(1, 7, 4, 10, false));
    assert_eq!(
        offered(&cloud, 6),
        names(&[]),
        "a server that is there is believed to use what its flavor says"
    );
    cloud.put_provider(kit::provider(7, 8));
    assert_eq!(cloud.counts().unread_hosts, 0);
    assert_eq!(
        offered(&cloud, 6),
        names(&[7]),
        "Placement says that nothing is in use"
    );
}

#[test]
fn claims_and_releases_change_what_is_free() {
    let mut cloud = cloud_of(&[4, 4], Options::default(), CloudSettings::default());
    let claim = |n: u64| BTreeMap::from([(node(0), amounts(n))]);
    cloud.claimed(server(1), &claim(3), Some(1));
    assert_eq!(offered(&cloud, 2), names(&[1]));
    cloud.claimed(server(1), &claim(2), Some(2));
    assert_eq!(
        offered(&cloud, 2),
        names(&[0, 1]),
        "a consumer's claim replaces the one before"
    );
    cloud.claimed(server(1), &BTreeMap::from([(node(1), amounts(4))]), Some(3));
    assert_eq!(offered(&cloud, 2), names(&[0]));
    cloud.released(server(1));
    assert_eq!(offered(&cloud, 4), names(&[0, 1]));
}

#[test]
fn the_list_of_consumers_is_the_truth() {
    let mut cloud = cloud_of(&[4], Options::default(), CloudSettings::default());
    settle(&mut cloud, instance(1, 0, 2, 10, true));
    settle(&mut cloud, instance(2, 0, 2, 10, true));
    assert_eq!(offered(&cloud, 1), names(&[]));
    let there = Consumer {
        uuid: server(1),
        generation: 9,
        resources: amounts(1),
    };
    cloud.consumers_of(node(0), 5, &[there]);
    assert_eq!(offered(&cloud, 3), names(&[0]));
    assert_eq!(cloud.consumer(server(1)).unwrap().1, Some(9));
    assert!(
        cloud
            .consumer(server(2))
            .is_none_or(|(allocations, _)| allocations.is_empty())
    );
    let late = ProviderFacts {
        generation: Some(4),
        used: Some(BTreeMap::from([("VCPU".to_owned(), 4)])),
        ..kit::provider(0, 4)
    };
    cloud.put_provider(late);
    assert_eq!(
        offered(&cloud, 3),
        names(&[0]),
        "a usage that was read before comes too late"
    );
}

#[test]
fn summaries_of_an_answer_say_what_is_used() {
    let mut cloud = cloud_of(&[4], Options::default(), CloudSettings::default());
    let summary = |used: i64| {
        json!({ "provider_summaries": { node(0).to_string(): {
            "resources": {
                "VCPU": {"capacity": 4, "used": used}, "MEMORY_MB": {"capacity": 8000, "used": 0},
                "DISK_GB": {"capacity": 80, "used": 0},
            },
            "traits": ["CUSTOM_NEW"], "parent_provider_uuid": null, "root_provider_uuid": node(0).to_string(),
        }}})
    };
    assert_eq!(cloud.put_summaries(&summary(3)), Ok(1));
    assert_eq!(offered(&cloud, 2), names(&[]));
    assert_eq!(cloud.put_summaries(&summary(2)), Ok(1));
    assert_eq!(offered(&cloud, 2), names(&[0]));
    for wrong in [
        json!({}),
        json!({"provider_summaries": {"x": {}}}),
        json!({"provider_summaries": {node(0).to_string(): {"resources": {"VCPU": {"capacity": "four"}}}}}),
    ] {
        let refused = cloud.put_summaries(&wrong).unwrap_err();
        assert_eq!(refused.code(), "EB-CLOUD-002", "{wrong}");
    }
}

#[test]
fn providers_with_another_generation_are_to_be_read_again() {
    let mut cloud = cloud_of(&[4, 4], Options::default(), CloudSettings::default());
    let line = |number: u128, generation: i64| ProviderLine {
        uuid: node(number),
        name: kit::host_name(number),
        generation,
        parent: None,
        root: node(number),
    };
    let nothing = StaleProviders::default();
    assert_eq!(cloud.provider_list(&[line(0, 1), line(1, 1)]), nothing);
    assert_eq!(
        cloud.provider_list(&[line(0, 1), line(1, 2), line(2, 0)]),
        StaleProviders {
            changed: vec![node(1)],
            unread: vec![node(2)]
        }
    );
    assert_eq!(cloud.provider_list(&[line(1, 1)]), nothing);
    assert_eq!(
        offered(&cloud, 1),
        names(&[1]),
        "a node that Placement does not know gets nothing"
    );
    cloud.put_provider(ProviderFacts {
        used: Some(BTreeMap::from([("VCPU".to_owned(), 4)])),
        ..kit::provider(1, 4)
    });
    assert_eq!(offered(&cloud, 1), names(&[]));
}

#[test]
fn a_service_row_says_whether_an_operator_has_disabled_or_enabled_its_host() {
    let mut cloud = cloud_of(&[4], Options::default(), CloudSettings::default());
    let mut row = kit::service(0);
    row.service.last_seen_up = row.service.last_seen_up.map(|seen| seen + 1);
    assert!(!cloud.put_service(row.clone()), "a report changes neither");
    row.service.disabled = true;
    assert!(cloud.put_service(row.clone()));
    assert!(!cloud.put_service(row.clone()), "the same row again");
    row.service.disabled = false;
    assert!(cloud.put_service(row));
    let mut new = kit::service(1);
    new.service.disabled = true;
    assert!(!cloud.put_service(new), "its providers are read anyway");
}

#[test]
fn hosts_come_and_go_with_their_services_and_rows() {
    let mut cloud = cloud_of(&[4, 4, 4], Options::default(), CloudSettings::default());
    cloud.remove_service("host1");
    assert_eq!(offered(&cloud, 1), names(&[0, 2]));
    cloud.put_service(kit::service(1));
    assert_eq!(
        offered(&cloud, 1),
        names(&[0, 1, 2]),
        "what was known of it is known still"
    );
    cloud.remove_compute(node(0));
    assert_eq!(offered(&cloud, 1), names(&[1, 2]));
    let mut bad = kit::compute(2, 4);
    bad.row.stats = None;
    assert_eq!(
        cloud.put_compute(bad).map_err(|e| e.code()),
        Err("EB-CLOUD-001")
    );
    assert_eq!(offered(&cloud, 1), names(&[1]));
    cloud.put_compute(kit::compute(2, 4)).unwrap();
    cloud.put_compute(kit::compute(5, 4)).unwrap();
    assert_eq!(
        offered(&cloud, 1),
        names(&[1, 2]),
        "no instance is placed on a host without a service"
    );
    let moved = ebbtide_nova_cloud::ComputeFacts {
        cell_uuid: "elsewhere".to_owned(),
        ..kit::compute(1, 4)
    };
    cloud.put_compute(moved).unwrap();
    let (spec, call) = request(1, 1);
    let (selections, _) = decide(&cloud, spec, call, |_, _| false);
    assert_eq!(
        selections.unwrap()[0][0].host.host,
        "host2",
        "its new cell is none that is enabled"
    );
}

#[test]
fn instances_are_confirmed_as_in_novas_host_manager() {
    let mut cloud = cloud_of(&[8], Options::default(), CloudSettings::default());
    let all = cloud.all_hosts();
    let open = |cloud: &Cloud| cloud.unconfirmed(&all).len();
    assert_eq!(open(&cloud), 1);
    assert!(
        !cloud.sync_instance_info("host0", &[]),
        "a sync says nothing of a host that is not listed"
    );
    assert!(!cloud.update_instance_info("host0", vec![instance(1, 0, 1, 1, false)]));
    assert_eq!(
        cloud.host_instances("host0", &[server(1), server(2)]),
        [server(1), server(2)]
    );
    assert_eq!(
        open(&cloud),
        1,
        "what the database says is not confirmed by the host"
    );
    assert!(!cloud.sync_instance_info("host0", &[server(1)]));
    assert!(cloud.sync_instance_info("host0", &[server(2), server(1)]));
    assert_eq!(open(&cloud), 0);
    assert!(cloud.delete_instance_info("host0", server(2)));
    assert!(cloud.sync_instance_info("host0", &[server(1)]));
    assert!(cloud.update_instance_info("host0", vec![instance(3, 0, 1, 1, false)]));
    assert!(cloud.sync_instance_info("host0", &[server(1), server(3)]));
    let mut other = cloud_of(&[8], Options::default(), CloudSettings::default());
    assert!(other.update_instance_info(
        "host0",
        vec![instance(1, 0, 1, 1, false), instance(2, 0, 1, 1, false)]
    ));
    assert!(
        other.sync_instance_info("host0", &[server(1), server(2)]),
        "a full list is taken as it is"
    );
}

#[test]
fn aggregates_follow_their_hosts() {
    let options = Options {
        enabled_filters: vec!["AggregateMultiTenancyIsolation".to_owned()],
        ..Options::default()
    };
    let mut cloud = cloud_of(&[4, 4], options, CloudSettings::default());
    let aggregate = |hosts: &[&str], tenant: &str| Aggregate {
        id: 1,
        uuid: kit::fresh(500).to_string(),
        name: "a".to_owned(),
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        metadata: BTreeMap::from([("filter_tenant_id".to_owned(), tenant.to_owned())]),
    };
    let goes = |cloud: &Cloud| {
        let (spec, call) = request(1, 1);
        decide(cloud, spec, call, |_, _| false)
            .0
            .map(|all| all[0].len())
    };
    assert_eq!(goes(&cloud), Ok(2));
    cloud.set_aggregates(vec![aggregate(&["host0"], "other")]);
    assert_eq!(goes(&cloud), Ok(1));
    cloud.put_aggregate(aggregate(&["host0", "host1"], "other"));
    assert_eq!(goes(&cloud), Err("NoValidHost"));
    cloud.put_aggregate(aggregate(&["host0", "host1"], "project-n"));
    assert_eq!(goes(&cloud), Ok(2));
    cloud.put_aggregate(aggregate(&["host1"], "other"));
    assert_eq!(goes(&cloud), Ok(1));
    cloud.remove_aggregate(1);
    assert_eq!(goes(&cloud), Ok(2));
    assert_eq!(CloudError::Stale.code(), "EB-CLOUD-003");
}

#[test]
fn a_decision_outlives_an_aggregate_that_its_host_gains_and_none_that_it_loses() {
    let mut cloud = cloud_of(&[4], Options::default(), CloudSettings::default());
    let of = |members: &[u128]| ProviderFacts {
        aggregates: Some(members.iter().map(|number| kit::fresh(*number)).collect()),
        ..kit::provider(0, 4)
    };
    cloud.put_provider(of(&[500]));
    let decided = cloud.trait_changes();
    cloud.put_provider(of(&[500, 501]));
    assert!(!cloud.traits_changed_since(node(0), decided));
    cloud.put_provider(of(&[501]));
    assert!(cloud.traits_changed_since(node(0), decided));
    assert!(!cloud.traits_changed_since(node(0), cloud.trait_changes()));
}

/// One change of the cloud.
#[derive(Debug, Clone)]
enum Change {
    Compute(u128, i64),
    NoCompute(u128),
    Server(u128, u128, i64, bool),
    NoServer(u128),
    Leaving(u128, bool),
    Released(u128),
}

fn change() -> impl Strategy<Value = Change> {
    let (host, server) = (0_u128..5, 0_u128..12);
    prop_oneof![
        (host.clone(), 2_i64..9).prop_map(|(h, n)| Change::Compute(h, n)),
        host.clone().prop_map(Change::NoCompute),
        (server.clone(), host, 1_i64..4, any::<bool>())
            .prop_map(|(s, h, n, p)| Change::Server(s, h, n, p)),
        server.clone().prop_map(Change::NoServer),
        (server.clone(), any::<bool>()).prop_map(|(s, l)| Change::Leaving(s, l)),
        server.prop_map(Change::Released),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever happened before: after a complete read of all consumers, the cloud is as if it had
    /// been told for the first time.
    #[test]
    fn a_cloud_that_changed_is_one_that_was_always_so(changes in prop::collection::vec(change(), 1..60)) {
        let mut cloud = cloud_of(&[], Options::default(), CloudSettings::default());
        cloud.set_cells(&[ebbtide_nova_cloud::CellFacts { uuid: kit::CELL.to_owned(), disabled: false }]);
        let mut computes: BTreeMap<u128, i64> = BTreeMap::new();
        let mut servers: BTreeMap<u128, (u128, i64, bool)> = BTreeMap::new();
        let mut leaving: BTreeSet<u128> = BTreeSet::new();
        let mut gone: BTreeSet<u128> = BTreeSet::new();
        for change in changes {
            match change {
                Change::Compute(host, n) => {
                    cloud.put_service(kit::service(host));
                    cloud.put_compute(kit::compute(host, n)).unwrap();
                    computes.insert(host, n);
                }
                Change::NoCompute(host) => {
                    cloud.remove_compute(node(host));
                    computes.remove(&host);
                }
                Change::Server(number, host, n, preemptible) => {
                    settle(&mut cloud, instance(number, host, n, 10, preemptible));
                    servers.insert(number, (host, n, preemptible));
                    gone.remove(&number);
                }
                Change::NoServer(number) => {
                    cloud.released(server(number));
                    cloud.remove_instance(server(number));
                    servers.remove(&number);
                    leaving.remove(&number);
                }
                Change::Leaving(number, is) if servers.contains_key(&number) => {
                    cloud.set_leaving(server(number), is);
                    if is { leaving.insert(number) } else { leaving.remove(&number) };
                }
                Change::Leaving(..) => {}
                Change::Released(number) => {
                    cloud.released(server(number));
                    if servers.contains_key(&number) { gone.insert(number); }
                }
            }
        }
        let mut fresh = cloud_of(&[], Options::default(), CloudSettings::default());
        for (host, n) in &computes {
            fresh.put_service(kit::service(*host));
            fresh.put_compute(kit::compute(*host, *n)).unwrap();
        }
        for (number, (host, n, preemptible)) in &servers {
            settle(&mut fresh, instance(*number, *host, *n, 10, *preemptible));
            fresh.set_leaving(server(*number), leaving.contains(number));
            if gone.contains(number) {
                fresh.released(server(*number));
            }
        }
        for vcpus in 1..9 {
            prop_assert_eq!(offered(&cloud, vcpus), offered(&fresh, vcpus), "{} CPUs", vcpus);
            let (mut spec, call) = request(vcpus, 1);
            let asked = cloud.ask(&mut spec).unwrap();
            let plan = |cloud: &Cloud| cloud.plan(&spec, &call, &asked, NOW, &Default::default())
                .map(|plan| (plan.cost, plan.victims.len())).map_err(|no| no.reason);
            prop_assert_eq!(plan(&cloud), plan(&fresh), "{} CPUs", vcpus);
        }
        prop_assert_eq!(cloud.counts(), fresh.counts());
    }
}

#[test]
fn a_report_that_is_older_than_the_row_changes_nothing() {
    let mut cloud = cloud_of(&[8], Options::default(), CloudSettings::default());
    let at = |updated_at: Option<i64>, minutes| InstanceRecord {
        updated_at,
        ..instance(1, 0, 1, minutes, true)
    };
    let report = |cloud: &mut Cloud, record| {
        let other = instance(2, 0, 1, 1, true);
        assert!(cloud.update_instance_info("host0", vec![record, other]));
    };
    // The row: it is being deleted, by its locked owner's other session.
    let mut row = at(Some(NOW), 40);
    row.task_state = Some("deleting".to_owned());
    row.locked = true;
    row.group = Some(server(9));
    cloud.put_instance(row.clone());
    report(&mut cloud, at(Some(NOW - 1_000_000), 1));
    assert_eq!(cloud.instance(server(1)), Some(&row));
    // Nova keeps whole seconds: the report may be from before the change of the same second.
    report(&mut cloud, at(Some(NOW), 1));
    assert_eq!(cloud.instance(server(1)), Some(&row));
    report(&mut cloud, at(None, 1));
    assert_eq!(cloud.instance(server(1)), Some(&row));
    // A newer report says what it knows, and a compute knows no locks and no groups.
    let newer = at(Some(NOW + 1_000_000), 1);
    report(&mut cloud, newer.clone());
    let expected = InstanceRecord {
        locked: true,
        group: Some(server(9)),
        ..newer
    };
    assert_eq!(cloud.instance(server(1)), Some(&expected));
    // A server that has come to another host is on that one, whatever the time says.
    assert!(cloud.update_instance_info("host1", vec![at(None, 1), instance(3, 1, 1, 1, true)]));
    let host = cloud.instance(server(1)).unwrap().host.clone();
    assert_eq!(host.as_deref(), Some("host1"));
    assert!(cloud.sync_instance_info("host0", &[server(2)]));
}

#[test]
fn a_host_whose_compute_counts_less_than_placement_has_given_is_named() {
    let mut cloud = cloud_of(&[8, 8], Options::default(), CloudSettings::default());
    let mut row = compute(0, 8);
    row.row.vcpus_used = 3;
    cloud.put_compute(row).unwrap();
    assert_eq!(cloud.hosts_above_report(), [] as [&str; 0]);
    settle(&mut cloud, instance(1, 0, 3, 1, false));
    assert_eq!(cloud.hosts_above_report(), [] as [&str; 0]);
    // Pinned CPUs count, too.
    let pinned = BTreeMap::from([("PCPU".to_owned(), 1)]);
    let claim = BTreeMap::from([(node(0), pinned)]);
    cloud.claimed(server(2), &claim, Some(1));
    assert_eq!(cloud.hosts_above_report(), ["host0"]);
    cloud.released(server(2));
    assert_eq!(cloud.hosts_above_report(), [] as [&str; 0]);
    // What Placement says counts more than what is known of consumers.
    cloud.put_provider(ProviderFacts {
        uuid: node(0),
        used: Some(BTreeMap::from([("VCPU".to_owned(), 4)])),
        ..ProviderFacts::default()
    });
    assert_eq!(cloud.hosts_above_report(), ["host0"]);
}
