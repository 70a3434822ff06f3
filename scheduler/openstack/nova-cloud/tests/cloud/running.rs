//! What physically runs counts, whatever Placement shows.

use crate::kit::{NOW, cloud_of, fresh, instance, node, request, server, settle};
use ebbtide_nova::model::Options;
use ebbtide_nova_cloud::{
    Allocations, Cloud, CloudSettings, Consumer, OpenPreemption, PlanOptions, ProviderSnapshot,
    VerifyResult,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use uuid::Uuid;

const ROW: Uuid = Uuid::from_u128(0x77);

fn amounts(vcpus: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([
        ("VCPU".to_owned(), vcpus),
        ("MEMORY_MB".to_owned(), vcpus * 2000),
        ("DISK_GB".to_owned(), vcpus * 20),
    ])
}

fn holding(vcpus: u64) -> Allocations {
    Allocations::from([(node(0), amounts(vcpus))])
}

/// A full host on which server 1 has to leave for a newcomer, which holds its room.
fn being_evacuated() -> Cloud {
    let mut cloud = cloud_of(&[8], Options::default(), CloudSettings::default());
    settle(&mut cloud, instance(0, 0, 4, 50, true));
    settle(&mut cloud, instance(1, 0, 4, 40, true));
    cloud.set_open_preemptions(open());
    cloud.released(server(1));
    cloud.claimed(fresh(9), &holding(4), None);
    cloud
}

fn open() -> HashMap<Uuid, OpenPreemption> {
    let row = OpenPreemption {
        victims: BTreeSet::from([server(1)]),
        running: BTreeMap::from([(server(1), holding(4))]),
        newcomers: BTreeSet::from([fresh(9)]),
    };
    HashMap::from([(ROW, row)])
}

fn offered(cloud: &Cloud, vcpus: i64) -> usize {
    let (mut spec, _) = request(vcpus, 1);
    let asked = cloud.ask(&mut spec).unwrap();
    cloud.candidates(&asked).unwrap().len()
}

fn consumers(of: &[(Uuid, u64)]) -> Vec<Consumer> {
    let consumer = |(uuid, vcpus): &(Uuid, u64)| Consumer {
        uuid: *uuid,
        generation: 1,
        resources: amounts(*vcpus),
    };
    of.iter().map(consumer).collect()
}

#[test]
fn the_room_of_a_victim_is_not_offered_when_its_newcomer_is_deleted() {
    let mut cloud = being_evacuated();
    assert_eq!(offered(&cloud, 1), 0, "the newcomer holds it");
    cloud.released(fresh(9));
    assert_eq!(offered(&cloud, 1), 0, "the victim runs in it");
    // A reader of usage or consumers from Placement hears of four CPUs only.
    cloud.consumers_of(node(0), 7, &consumers(&[(server(0), 4)]));
    assert_eq!(offered(&cloud, 1), 0);
    cloud.claimed(server(1), &holding(4), None);
    assert_eq!(offered(&cloud, 1), 0, "it holds it again, and counts once");
    assert_eq!(
        cloud.overfull(node(0), &consumers(&[(server(0), 4), (server(1), 4)])),
        None
    );
    cloud.set_open_preemptions(HashMap::new());
    cloud.released(server(1));
    cloud.remove_instance(server(1));
    assert_eq!(offered(&cloud, 4), 1, "it is gone");
}

#[test]
fn a_victim_that_its_owner_deletes_keeps_no_room() {
    let mut cloud = being_evacuated();
    cloud.released(fresh(9));
    cloud.remove_instance(server(1));
    assert_eq!(offered(&cloud, 4), 1);
}

#[test]
fn what_placement_offers_is_not_taken_where_a_victim_runs() {
    let mut cloud = being_evacuated();
    let answer = serde_json::json!({
        "allocation_requests": [{"allocations": {node(0).to_string(): {"resources": amounts(4)}}}],
        "provider_summaries": {node(0).to_string(): {
            "resources": {"VCPU": {"capacity": 8, "used": 4}, "MEMORY_MB": {"capacity": 16000, "used": 8000},
                          "DISK_GB": {"capacity": 160, "used": 80}},
            "traits": []}},
    });
    cloud.released(fresh(9));
    cloud.put_summaries(&answer).unwrap();
    assert!(cloud.candidates_from_answer(&answer).unwrap().is_empty());
    cloud.set_open_preemptions(HashMap::new());
    assert_eq!(cloud.candidates_from_answer(&answer).unwrap().len(), 1);
}

#[test]
fn a_claim_beside_a_victim_that_runs_unseen_is_found_to_be_too_much() {
    let cloud = being_evacuated();
    let with_newcomer = consumers(&[(server(0), 4), (fresh(9), 4)]);
    assert_eq!(cloud.overfull(node(0), &with_newcomer), None);
    let with_other = consumers(&[(server(0), 4), (fresh(3), 1)]);
    let over = cloud.overfull(node(0), &with_other);
    assert_eq!(over.as_deref(), Some("180 of 160 DISK_GB"));
}

#[test]
fn a_plan_that_counts_on_room_in_which_a_victim_runs_does_not_hold() {
    let mut cloud = being_evacuated();
    cloud.set_open_preemptions(HashMap::new());
    cloud.released(fresh(9));
    let (mut spec, call) = request(4, 1);
    let asked = cloud.ask(&mut spec).unwrap();
    let options = PlanOptions::default();
    let mut plan = cloud.plan(&spec, &call, &asked, NOW, &options).unwrap();
    assert!(plan.victims.is_empty(), "Placement shows room");
    let truth = [ProviderSnapshot {
        provider: node(0),
        generation: 7,
        consumers: consumers(&[(server(0), 4)]),
    }];
    cloud.set_open_preemptions(open());
    let verdict = cloud.verify(&mut plan, &truth);
    assert!(matches!(verdict, VerifyResult::Changed(_)), "{verdict:?}");
    let plan = cloud.plan(&spec, &call, &asked, NOW, &options).unwrap();
    assert_eq!(
        plan.victims[0].uuid,
        server(0),
        "another instance has to leave"
    );
}

#[test]
fn a_victim_that_is_spared_can_be_planned_with_again() {
    let mut cloud = being_evacuated();
    assert_eq!(cloud.counts().leaving, 1);
    // Begun here, and not read from the ledger yet.
    cloud.set_leaving(server(0), true);
    cloud.set_open_preemptions(HashMap::new());
    assert_eq!(
        cloud.counts().leaving,
        1,
        "only who was spared may be planned with"
    );
}
