//! Which victims a plan chooses, on small examples.

use crate::kit::{self, NOW, cloud_of, instance, node, request, server, settle};
use ebbtide_engine::Budgets;
use ebbtide_model::flavor::DEFAULT_GRACE;
use ebbtide_model::{InterruptionBehaviour, Seconds};
use ebbtide_nova::model::Options;
use ebbtide_nova_cloud::{
    Cloud, CloudSettings, Consumer, NoPlan, NoPlanReason, PlanOptions, PreemptionPlan,
    ProviderSnapshot, VerifyResult,
};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Full hosts of 8 CPUs, each with two preemptible servers of 4 and these ages in minutes.
fn full(ages: &[(i64, i64)]) -> Cloud {
    let mut cloud = cloud_of(
        &vec![8; ages.len()],
        Options::default(),
        CloudSettings::default(),
    );
    for (host, (first, second)) in (0..).zip(ages) {
        settle(&mut cloud, instance(2 * host, host, 4, *first, true));
        settle(&mut cloud, instance(2 * host + 1, host, 4, *second, true));
    }
    cloud
}

fn plan_with(
    cloud: &Cloud,
    vcpus: i64,
    many: u128,
    options: &PlanOptions,
) -> Result<PreemptionPlan, NoPlan> {
    let (mut spec, call) = request(vcpus, many);
    let asked = cloud.ask(&mut spec).unwrap();
    cloud.plan(&spec, &call, &asked, NOW, options)
}

fn plan(cloud: &Cloud, vcpus: i64, many: u128) -> Result<PreemptionPlan, NoPlan> {
    plan_with(cloud, vcpus, many, &PlanOptions::default())
}

fn victims(plan: &PreemptionPlan) -> Vec<Uuid> {
    plan.victims.iter().map(|victim| victim.uuid).collect()
}

fn reason(plan: Result<PreemptionPlan, NoPlan>) -> NoPlanReason {
    plan.map(|plan| victims(&plan)).unwrap_err().reason
}

#[test]
fn the_cheapest_leaves_and_everything_needed_is_said_about_it() {
    let cloud = full(&[(50, 40), (30, 65), (20, 55)]);
    let plan = plan(&cloud, 4, 1).unwrap();
    assert_eq!(
        victims(&plan),
        [server(3)],
        "65 minutes are five minutes into the second hour"
    );
    let victim = &plan.victims[0];
    assert_eq!((victim.cost, plan.cost), (300.0, 300.0));
    assert_eq!(victim.allocations[&node(1)]["VCPU"], 4);
    assert_eq!((victim.generation, victim.grace), (Some(1), DEFAULT_GRACE));
    assert_eq!(victim.interruption, InterruptionBehaviour::Terminate);
    assert!(victim.keeps.is_empty());
    let instance = &plan.instances[0];
    assert_eq!(
        (instance.host.host.as_str(), instance.host.uuid),
        ("host1", node(1))
    );
    assert_eq!(instance.allocations[&node(1)]["MEMORY_MB"], 8000);
    assert_eq!(instance.candidate.mappings[""][0], node(1).to_string());
    assert_eq!(instance.selections[0].availability_zone, "nova");
    let second = plan.second.unwrap();
    assert_eq!((second.host.as_str(), second.cost), ("host2", Some(1200.0)));
}

#[test]
fn no_instance_leaves_where_there_is_room() {
    let mut cloud = full(&[(50, 40), (30, 65)]);
    settle(&mut cloud, instance(9, 0, 1, 10, true));
    cloud.put_service(kit::service(2));
    cloud.put_compute(kit::compute(2, 4)).unwrap();
    cloud.put_provider(kit::provider(2, 4));
    let alone = plan(&cloud, 4, 1).unwrap();
    assert_eq!(
        (victims(&alone).len(), alone.instances[0].host.host.as_str()),
        (0, "host2")
    );
    let mixed = plan(&cloud, 4, 2).unwrap();
    assert_eq!(
        victims(&mixed),
        [server(3)],
        "one has room, for the other the cheapest leaves"
    );
    assert_eq!(
        mixed
            .instances
            .iter()
            .filter(|i| i.victims.is_empty())
            .count(),
        1
    );
}

#[test]
fn a_preemptible_request_and_one_that_asks_for_too_much_evict_no_instance() {
    let cloud = full(&[(50, 40)]);
    let (mut spec, call) = request(4, 1);
    spec.flavor = kit::flavor(4, &[("ebbtide:preemptible", "true")]);
    let asked = cloud.ask(&mut spec).unwrap();
    assert_eq!(
        reason(cloud.plan(&spec, &call, &asked, NOW, &PlanOptions::default())),
        NoPlanReason::Preemptible
    );
    assert_eq!(reason(plan(&cloud, 9, 1)), NoPlanReason::NoHost);
    assert_eq!(reason(plan(&cloud, 5, 2)), NoPlanReason::NotEnoughVictims);
    let mut bad = request(4, 1);
    bad.1.instance_uuids = Some(vec!["me".to_owned()]);
    assert_eq!(
        reason(cloud.plan(&bad.0, &bad.1, &asked, NOW, &PlanOptions::default())),
        NoPlanReason::BadRequest
    );
}

#[test]
fn novas_filters_hold_for_hosts_that_need_victims() {
    let mut cloud = full(&[(50, 40), (30, 65)]);
    let mut down = kit::service(1);
    down.service.last_seen_up = Some(NOW - 600_000_000);
    cloud.put_service(down.clone());
    assert_eq!(victims(&plan(&cloud, 4, 1).unwrap()), [server(1)]);
    down.host = "host0".to_owned();
    cloud.put_service(down);
    let no = plan(&cloud, 4, 1).unwrap_err();
    assert_eq!(no.reason, NoPlanReason::Filtered);
    assert!(no.text.contains("ComputeFilter: 2 to 0"), "{}", no.text);
}

#[test]
fn budgets_protection_and_what_was_refused_before_are_obeyed() {
    let mut cloud = full(&[(50, 40), (30, 65)]);
    let mut options = PlanOptions::default();
    // Server 3 is of project 0, server 2 of project 2.
    options.budgets.limit_project("project-0", 0);
    assert_eq!(
        victims(&plan_with(&cloud, 4, 1, &options).unwrap()),
        [server(2)]
    );
    options.spared = vec![server(2)];
    assert_eq!(
        victims(&plan_with(&cloud, 4, 1, &options).unwrap()),
        [server(1)]
    );
    options.avoided = vec![node(0)];
    assert_eq!(
        reason(plan_with(&cloud, 4, 1, &options)),
        NoPlanReason::NotEnoughVictims
    );
    assert_eq!(Budgets::unlimited(), PlanOptions::default().budgets);
    let mut young = instance(3, 1, 4, 65, true);
    young.flavor = kit::flavor(
        4,
        &[
            ("ebbtide:preemptible", "true"),
            ("ebbtide:protected_seconds", "3960"),
        ],
    );
    cloud.put_instance(young);
    assert_eq!(
        victims(&plan(&cloud, 4, 1).unwrap()),
        [server(2)],
        "another minute of protection is left"
    );
}

#[test]
fn a_stopped_victim_keeps_its_disk_and_gives_none() {
    let mut cloud = full(&[(50, 40)]);
    let mut stops = instance(0, 0, 4, 10, true);
    stops.flavor = kit::flavor(
        4,
        &[
            ("ebbtide:preemptible", "true"),
            ("ebbtide:interruption", "stop"),
            ("ebbtide:grace_seconds", "45"),
        ],
    );
    cloud.put_instance(stops);
    let all = plan(&cloud, 4, 1).unwrap();
    assert_eq!(
        victims(&all),
        [server(1)],
        "who keeps the disk makes no room for it"
    );
    let (mut spec, call) = request(4, 1);
    spec.flavor.root_gb = 0;
    let asked = cloud.ask(&mut spec).unwrap();
    let without_disk = cloud
        .plan(&spec, &call, &asked, NOW, &PlanOptions::default())
        .unwrap();
    assert_eq!(victims(&without_disk), [server(0)]);
    let victim = &without_disk.victims[0];
    assert_eq!(
        victim.keeps,
        BTreeMap::from([(node(0), BTreeMap::from([("DISK_GB".to_owned(), 80)]))])
    );
    assert_eq!(
        (victim.interruption, victim.grace),
        (InterruptionBehaviour::Stop, Seconds(45))
    );
}

/// What Placement would say of a host's servers.
fn truth(cloud: &Cloud, host: u128, servers: &[u128], generation: i64) -> ProviderSnapshot {
    let consumer = |number: &u128| Consumer {
        uuid: server(*number),
        generation,
        resources: cloud.consumer(server(*number)).unwrap().0[&node(host)].clone(),
    };
    ProviderSnapshot {
        provider: node(host),
        generation: 7,
        consumers: servers.iter().map(consumer).collect(),
    }
}

#[test]
fn a_plan_holds_only_against_the_truth_that_it_was_made_for() {
    let cloud = full(&[(50, 40), (30, 65)]);
    let mut planned = plan(&cloud, 4, 1).unwrap();
    assert_eq!(
        cloud.verify(&mut planned, &[truth(&cloud, 1, &[2, 3], 42)]),
        VerifyResult::Good
    );
    assert_eq!(
        planned.victims[0].generation,
        Some(42),
        "the generation is the one just told"
    );
    let changed = |told: &[ProviderSnapshot]| match cloud.verify(&mut planned.clone(), told) {
        VerifyResult::Changed(why) => why,
        VerifyResult::Good => panic!("{told:?} was taken"),
    };
    assert!(changed(&[]).contains("are unknown"));
    assert!(changed(&[truth(&cloud, 1, &[2], 1)]).contains("has nothing there"));
    assert!(
        changed(&[truth(&cloud, 1, &[3], 1)]).contains("need not leave"),
        "the other one has left by itself"
    );
    let mut shrunk = truth(&cloud, 1, &[2, 3], 1);
    shrunk.consumers[1].resources.insert("VCPU".to_owned(), 3);
    assert!(changed(&[shrunk]).contains("other allocations"));
    let mut fuller = truth(&cloud, 1, &[2, 3], 1);
    let more = fuller.consumers[0].resources.clone();
    fuller.consumers.push(Consumer {
        uuid: server(77),
        generation: 1,
        resources: more,
    });
    assert!(changed(&[fuller]).contains("not enough"));
}

#[test]
fn who_was_driven_out_is_no_room_for_the_next() {
    let mut cloud = full(&[(50, 40)]);
    let first = plan(&cloud, 4, 1).unwrap();
    // The swap: the victim's allocations are emptied, the newcomer has its own. The victim still
    // runs.
    cloud.set_leaving(first.victims[0].uuid, true);
    cloud.released(first.victims[0].uuid);
    cloud.claimed(
        first.instances[0].uuid,
        &first.instances[0].allocations,
        Some(1),
    );
    let second = plan(&cloud, 4, 1).unwrap();
    assert_ne!(victims(&second), victims(&first));
    cloud.set_leaving(second.victims[0].uuid, true);
    cloud.released(second.victims[0].uuid);
    cloud.claimed(kit::fresh(5), &second.instances[0].allocations, Some(1));
    assert_eq!(
        reason(plan(&cloud, 4, 1)),
        NoPlanReason::NoHost,
        "only normal servers are left"
    );
}

#[test]
fn a_victim_holds_what_the_newcomer_does_not_need_until_it_is_gone() {
    let cloud = full(&[(50, 40), (30, 65)]);
    let mut planned = plan(&cloud, 1, 1).unwrap();
    assert_eq!(victims(&planned), [server(3)]);
    let told = truth(&cloud, 1, &[2, 3], 42);
    let had = planned.victims[0].allocations[&node(1)].clone();
    assert_eq!(
        cloud.verify(&mut planned, std::slice::from_ref(&told)),
        VerifyResult::Good
    );
    let keeps = &planned.victims[0].keeps[&node(1)];
    let claimed = &planned.instances[0].allocations[&node(1)];
    assert!(claimed["VCPU"] < had["VCPU"], "{claimed:?} {had:?}");
    for (class, amount) in &had {
        // With the claim and what the victim holds on, the host is as full as it was.
        let kept = keeps.get(class).copied().unwrap_or(0);
        assert_eq!(
            kept + claimed.get(class).copied().unwrap_or(0),
            *amount,
            "{class}"
        );
    }
    let mut whole = plan(&cloud, 4, 1).unwrap();
    assert_eq!(cloud.verify(&mut whole, &[told]), VerifyResult::Good);
    assert!(
        whole.victims[0].keeps.is_empty(),
        "a newcomer of its size needs all of it"
    );
}

#[test]
fn a_refusal_counts_the_servers_in_their_guaranteed_time() {
    let settings = CloudSettings {
        protected: Seconds(7200),
        ..CloudSettings::default()
    };
    let mut cloud = cloud_of(&[8], Options::default(), settings);
    settle(&mut cloud, instance(0, 0, 4, 90, true));
    settle(&mut cloud, instance(1, 0, 4, 119, true));
    let no = plan(&cloud, 4, 1).unwrap_err();
    assert_eq!(no.reason, NoPlanReason::NotEnoughVictims);
    let told = format!("{:?}", no.explanation.unwrap());
    assert!(told.contains("2 more in protected time"), "{told}");
    settle(&mut cloud, instance(1, 0, 4, 120, true));
    let plan = plan(&cloud, 4, 1).unwrap();
    assert_eq!(victims(&plan), [server(1)], "its guaranteed time is over");
}
