//! One pass against two: Nova's answer where there is one, else the plan's.

use crate::kit::{self, NOW, cloud_of, instance, request, settle};
use ebbtide_nova::model::Options;
use ebbtide_nova_cloud::{
    Cloud, CloudSettings, OnePass, PlanOptions, Scheduling, SchedulingAction,
};
use proptest::prelude::*;
use proptest::sample::select;

/// Where a server is, how many CPUs it has, minutes of age, whether it is preemptible.
type Server = (usize, i64, i64, bool);

fn cloud(hosts: &[i64], servers: &[Server]) -> Cloud {
    let mut cloud = cloud_of(hosts, Options::default(), CloudSettings::default());
    let mut used = vec![0; hosts.len()];
    for (number, (at, vcpus, minutes, preemptible)) in (0..).zip(servers) {
        let at = at % hosts.len();
        if used[at] + vcpus <= hosts[at] {
            used[at] += vcpus;
            let record = instance(number, at as u128, *vcpus, *minutes, *preemptible);
            settle(&mut cloud, record);
        }
    }
    cloud
}

/// What a scheduling does if every claim is taken.
fn course(mut scheduling: Scheduling) -> Vec<SchedulingAction> {
    let mut course = Vec::new();
    loop {
        let action = scheduling.next();
        course.push(action.clone());
        if !matches!(action, SchedulingAction::Claim(_)) {
            return course;
        }
        scheduling.claimed(ebbtide_nova_cloud::ClaimResult::Taken);
    }
}

fn is_no_valid_host(course: &[SchedulingAction]) -> bool {
    matches!(course, [SchedulingAction::Failed { fault, .. }] if fault.class == "NoValidHost")
}

fn decide(cloud: &Cloud, vcpus: i64, many: u128, seed: u64) -> (OnePass, PlanOptions) {
    let (mut spec, call) = request(vcpus, many);
    let asked = cloud.ask(&mut spec).unwrap();
    let options = PlanOptions {
        seed,
        ..PlanOptions::default()
    };
    let pass = cloud.decide_once(&spec, &call, &asked, NOW, Some(seed), Some(&options));
    (pass.unwrap(), options)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn one_pass_gives_novas_answer_where_there_is_one_and_else_the_plans(
        hosts in prop::collection::vec(select(vec![2_i64, 4, 8]), 1..8),
        servers in prop::collection::vec((0_usize..8, 1_i64..5, 1_i64..200, any::<bool>()), 0..16),
        vcpus in 1_i64..6,
        many in 1_u128..4,
        seed in any::<u64>(),
    ) {
        let cloud = cloud(&hosts, &servers);
        let (pass, options) = decide(&cloud, vcpus, many, seed);

        let (mut spec, call) = request(vcpus, many);
        let asked = cloud.ask(&mut spec).unwrap();
        let candidates = cloud.candidates(&asked).unwrap();
        let nova = (!candidates.is_empty()).then(|| {
            course(cloud.decide(spec.clone(), call.clone(), &candidates, NOW, Some(seed)).unwrap())
        });
        let nova_has_room = nova.as_deref().is_some_and(|course| !is_no_valid_host(course));

        prop_assert_eq!(pass.has_room, nova_has_room);
        prop_assert_eq!(pass.scheduling.map(course), nova);
        match pass.victims {
            None => prop_assert!(nova_has_room),
            Some(victims) => {
                prop_assert!(!nova_has_room);
                prop_assert_eq!(victims, cloud.plan(&spec, &call, &asked, NOW, &options));
            }
        }
    }

    #[test]
    fn no_server_leaves_while_a_host_has_room(
        hosts in prop::collection::vec(select(vec![4_i64, 8]), 1..6),
        servers in prop::collection::vec((0_usize..6, 1_i64..5, 1_i64..200, any::<bool>()), 0..12),
        vcpus in 1_i64..5,
    ) {
        let cloud = cloud(&hosts, &servers);
        let (pass, _) = decide(&cloud, vcpus, 1, 7);
        // By hand, without the cloud: whether a host has so many CPUs left.
        let mut left = hosts.clone();
        for (at, of, ..) in &servers {
            let at = at % hosts.len();
            if *of <= left[at] {
                left[at] -= of;
            }
        }
        let room = left.iter().any(|left| *left >= vcpus);
        prop_assert_eq!(pass.has_room, room);
        prop_assert_eq!(pass.victims.is_none(), room);
        if let Some(Ok(plan)) = pass.victims {
            prop_assert!(!plan.victims.is_empty());
        }
    }
}

#[test]
fn without_the_right_to_evict_a_full_cloud_is_full() {
    let cloud = cloud(&[2], &[(0, 2, 10, true)]);
    let (mut spec, call) = request(1, 1);
    let asked = cloud.ask(&mut spec).unwrap();
    let pass = cloud.decide_once(&spec, &call, &asked, NOW, None, None);
    let pass = pass.unwrap();
    assert!(!pass.has_room && pass.victims.is_none() && pass.scheduling.is_none());
    assert!(pass.candidates.is_empty());
    let name = kit::host_name(0);
    let (pass, _) = decide(&cloud, 1, 1, 0);
    let plan = pass.victims.unwrap().unwrap();
    assert_eq!(plan.instances[0].host.host, name);
    assert_eq!(plan.victims.len(), 1);
}
