//! Server groups on a full cloud: members that are on their way count, and a plan keeps to the
//! policy.

use crate::kit::{self, NOW, cloud_of, fresh, host_name, instance, request, server, settle};
use ebbtide_nova::model::{InstanceGroup, Options, RequestSpec};
use ebbtide_nova::schedule::ScheduleCall;
use ebbtide_nova_cloud::{
    Cloud, CloudSettings, ExpectedInstances, NoPlanReason, PlanOptions, PreemptionPlan, Scheduling,
    SchedulingAction,
};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Instances of the group that come before those of the request.
const EARLIER: u128 = 100;

/// Three hosts, each full of four preemptible servers. The cheapest victims are on three different
/// hosts.
fn full() -> Cloud {
    let mut cloud = cloud_of(&[8, 8, 8], Options::default(), CloudSettings::default());
    for host in 0..3 {
        for number in 0..4 {
            // Minutes into the hour that is begun: a victim's cost. The first of each host cost
            // less than all others.
            let minutes = 61 + host as i64 + 10 * i64::try_from(number).unwrap();
            settle(
                &mut cloud,
                instance(4 * host + number, host, 2, minutes, true),
            );
        }
    }
    cloud
}

/// A request for members of a group.
fn member(policy: &str, many: u128) -> (RequestSpec, ScheduleCall) {
    let (mut spec, call) = request(2, many);
    let own = (0..many).map(|number| fresh(number).to_string());
    let earlier = (0..8).map(|number| fresh(EARLIER + number).to_string());
    spec.instance_group = Some(InstanceGroup {
        uuid: "g".to_owned(),
        policy: policy.to_owned(),
        rules: BTreeMap::new(),
        members: own.chain(earlier).collect(),
        hosts: Vec::new(),
    });
    (spec, call)
}

fn expected(hosts: &[u128]) -> ExpectedInstances {
    let hosts = (0..).zip(hosts);
    hosts
        .map(|(number, host)| (fresh(EARLIER + number), host_name(*host)))
        .collect()
}

fn plan(
    cloud: &Cloud,
    policy: &str,
    many: u128,
    on_the_way: &[u128],
) -> Result<PreemptionPlan, NoPlanReason> {
    let (mut spec, call) = member(policy, many);
    let asked = cloud.ask(&mut spec).unwrap();
    let options = PlanOptions {
        expected: expected(on_the_way),
        ..PlanOptions::default()
    };
    let plan = cloud.plan(&spec, &call, &asked, NOW, &options);
    plan.map_err(|none| none.reason)
}

fn hosts(plan: &PreemptionPlan) -> Vec<&str> {
    let instances = plan.instances.iter();
    instances
        .map(|instance| instance.host.host.as_str())
        .collect()
}

fn distinct<'a>(hosts: &[&'a str]) -> BTreeSet<&'a str> {
    hosts.iter().copied().collect()
}

#[test]
fn members_that_are_requested_together_keep_to_their_policy() {
    let cloud = full();
    for (policy, hosts_in_all) in [
        ("affinity", 1),
        ("soft-affinity", 1),
        ("anti-affinity", 3),
        ("soft-anti-affinity", 3),
    ] {
        let plan = plan(&cloud, policy, 3, &[]).unwrap();
        assert_eq!(distinct(&hosts(&plan)).len(), hosts_in_all, "{policy}");
        assert_eq!(plan.victims.len(), 3, "{policy}");
    }
}

#[test]
fn members_one_after_another_count_those_that_are_on_their_way() {
    let cloud = full();
    // The cheapest victim is on the first host.
    assert_eq!(hosts(&plan(&cloud, "affinity", 1, &[]).unwrap()), ["host0"]);
    for (policy, on_the_way, host) in [
        ("affinity", &[2_u128][..], "host2"),
        ("soft-affinity", &[2], "host2"),
        ("soft-affinity", &[1, 2, 2], "host2"),
        ("anti-affinity", &[0], "host1"),
        ("anti-affinity", &[1, 0], "host2"),
        ("soft-anti-affinity", &[0], "host1"),
        ("soft-anti-affinity", &[0, 1, 2, 0, 2], "host1"),
    ] {
        let plan = plan(&cloud, policy, 1, on_the_way).unwrap();
        assert_eq!(hosts(&plan), [host], "{policy} {on_the_way:?}");
        assert_eq!(plan.victims.len(), 1);
    }
    let none = plan(&cloud, "anti-affinity", 1, &[0, 1, 2]);
    assert_eq!(none.map(drop), Err(NoPlanReason::Filtered));
}

#[test]
fn a_soft_policy_ends_no_further_server() {
    // A victim on the host with the member costs more than one elsewhere.
    let mut cloud = cloud_of(&[4, 4], Options::default(), CloudSettings::default());
    settle(&mut cloud, instance(1, 0, 2, 10, true));
    settle(&mut cloud, instance(2, 0, 2, 10, false));
    settle(&mut cloud, instance(3, 1, 2, 20, true));
    settle(&mut cloud, instance(4, 1, 2, 20, true));
    let free = plan(&cloud, "soft-affinity", 1, &[1]).unwrap();
    assert_eq!(hosts(&free), ["host1"], "dearer, and not more");
    // There it would take two victims instead of one.
    let mut cloud = cloud_of(&[4, 4], Options::default(), CloudSettings::default());
    settle(&mut cloud, instance(1, 0, 2, 10, true));
    settle(&mut cloud, instance(2, 0, 2, 10, false));
    for number in 3..7 {
        settle(&mut cloud, instance(number, 1, 1, 20, true));
    }
    let spared = plan(&cloud, "soft-affinity", 1, &[1]).unwrap();
    assert_eq!(hosts(&spared), ["host0"], "one victim, not two");
}

#[test]
fn a_member_is_no_victim_of_its_group() {
    let mut cloud = full();
    let (mut spec, call) = member("affinity", 1);
    let group = spec.instance_group.as_mut().unwrap();
    group.members.push(server(0).to_string());
    group.hosts.push(host_name(0));
    let asked = cloud.ask(&mut spec).unwrap();
    let plan = cloud.plan(&spec, &call, &asked, NOW, &PlanOptions::default());
    let plan = plan.unwrap();
    assert_eq!(hosts(&plan), ["host0"]);
    assert_ne!(plan.victims[0].uuid, server(0));
    // A member that has come to a host since the conductor asked counts there.
    let mut landed = instance(50, 2, 2, 1, false);
    landed.uuid = fresh(EARLIER);
    cloud.put_instance(landed);
    let plan = self::plan(&cloud, "affinity", 1, &[]).unwrap();
    assert_eq!(hosts(&plan), ["host2"]);
}

fn first(mut scheduling: Scheduling) -> Option<String> {
    match scheduling.next() {
        SchedulingAction::Claim(claim) => Some(claim.host.host),
        _ => None,
    }
}

#[test]
fn where_there_is_room_members_on_their_way_count_as_if_they_were_there() {
    let cloud = cloud_of(&[8, 8, 8], Options::default(), CloudSettings::default());
    for (policy, on_the_way, host) in [
        ("affinity", &[][..], Some("host0")),
        ("affinity", &[2_u128], Some("host2")),
        ("anti-affinity", &[0], Some("host1")),
        ("anti-affinity", &[2, 1, 0], None),
        ("soft-anti-affinity", &[0], Some("host1")),
        ("soft-affinity", &[1], Some("host1")),
    ] {
        let (mut spec, call) = member(policy, 1);
        let asked = cloud.ask(&mut spec).unwrap();
        let candidates = cloud.candidates(&asked).unwrap();
        let on_the_way = expected(on_the_way);
        let decided = cloud.decide_expecting(spec, call, &candidates, NOW, None, &on_the_way);
        let chosen = first(decided.unwrap());
        assert_eq!(chosen.as_deref(), host, "{policy} {on_the_way:?}");
    }
}

#[test]
fn alternates_have_room_without_anybodys_leaving_and_keep_to_the_policy() {
    let mut cloud = cloud_of(
        &[8, 2, 2, 2, 2],
        Options::default(),
        CloudSettings::default(),
    );
    settle(&mut cloud, instance(1, 0, 8, 10, true));
    settle(&mut cloud, instance(2, 4, 2, 10, true));
    let chosen = |policy: &str, vcpus: i64, many: u128| {
        let (mut spec, call) = member(policy, many);
        spec.flavor = kit::flavor(vcpus, &[]);
        let asked = cloud.ask(&mut spec).unwrap();
        let plan = cloud.plan(&spec, &call, &asked, NOW, &PlanOptions::default());
        let plan = plan.unwrap();
        let selections = plan.instances.into_iter();
        let names = selections.map(|instance| {
            let hosts = instance.selections.into_iter();
            hosts.map(|selected| selected.host.host).collect::<Vec<_>>()
        });
        names.collect::<Vec<_>>()
    };
    // Eight CPUs fit on one host only: there is no alternate that could be claimed.
    assert_eq!(chosen("anti-affinity", 8, 1), [["host0"]]);
    // Three go to hosts with room, the fourth to one that has to be emptied; no host is an
    // alternate of its own member or of another.
    let apart = chosen("anti-affinity", 2, 4);
    let taken: BTreeSet<&String> = apart.iter().map(|hosts| &hosts[0]).collect();
    assert_eq!(taken.len(), 4);
    assert!(
        apart
            .iter()
            .flat_map(|hosts| &hosts[1..])
            .all(|other| !taken.contains(other))
    );
    assert_eq!(chosen("anti-affinity", 2, 1), [["host1", "host2", "host3"]]);
    // Together there is no other host for one of them alone.
    let together = chosen("affinity", 2, 3);
    assert!(
        together.iter().all(|hosts| hosts == &["host0"]),
        "{together:?}"
    );
}

#[test]
fn alternates_are_those_of_the_moment_of_the_answer() {
    let mut cloud = full();
    let (mut spec, call) = member("anti-affinity", 1);
    let asked = cloud.ask(&mut spec).unwrap();
    let plan = cloud.plan(&spec, &call, &asked, NOW, &PlanOptions::default());
    assert_eq!(
        plan.unwrap().instances[0].selections.len(),
        1,
        "all hosts are full"
    );
    let alternates = |cloud: &Cloud, on_the_way: &[u128]| {
        let on_the_way = expected(on_the_way);
        let found = cloud.alternates(&spec, fresh(0), &asked, NOW, None, &on_the_way);
        let names = found.into_iter().map(|selected| selected.host.host);
        names.collect::<Vec<_>>()
    };
    assert_eq!(alternates(&cloud, &[]), Vec::<String>::new());
    // A server has left two hosts meanwhile.
    for gone in [server(5), server(9)] {
        cloud.released(gone);
        cloud.remove_instance(gone);
    }
    assert_eq!(alternates(&cloud, &[]), ["host1", "host2"]);
    assert_eq!(
        alternates(&cloud, &[1]),
        ["host2"],
        "a member is on its way to the other"
    );
}

#[test]
fn an_instance_that_has_no_group_is_decided_as_ever() {
    let cloud = full();
    let (mut spec, call) = request(2, 1);
    let asked = cloud.ask(&mut spec).unwrap();
    let with = PlanOptions {
        expected: expected(&[0, 1, 2]),
        ..PlanOptions::default()
    };
    let plans = [with, PlanOptions::default()].map(|options| {
        let plan = cloud.plan(&spec, &call, &asked, NOW, &options).unwrap();
        let victims: Vec<Uuid> = plan.victims.iter().map(|victim| victim.uuid).collect();
        (victims, plan.cost.to_bits())
    });
    assert_eq!(plans[0], plans[1]);
}
