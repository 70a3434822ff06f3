//! What is decided is what Nova's schedule decides on the same hosts with Placement's candidates
//! attached.

use crate::kit::{self, NOW, cloud_of, decide, request, settle};
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::filters::Context;
use ebbtide_nova::hosts::{new_state, update};
use ebbtide_nova::model::{AllocationCandidate, HostState, InstanceGroup, Options};
use ebbtide_nova::schedule::{Claims, schedule};
use ebbtide_nova_cloud::{
    CellFacts, Cloud, CloudError, CloudSettings, PlacementOnly, SchedulingAction,
};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use std::collections::BTreeMap;

/// Refuses claims by a pattern.
struct Refusing<'a> {
    names: Vec<String>,
    pattern: &'a [bool],
    tried: Vec<String>,
}

impl Claims for Refusing<'_> {
    fn claim(
        &mut self,
        _: &str,
        host: usize,
        _: &AllocationCandidate,
    ) -> Result<bool, NovaException> {
        let refused = self.pattern.get(self.tried.len()).copied().unwrap_or(false);
        self.tried.push(self.names[host].clone());
        Ok(!refused)
    }

    fn delete(&mut self, _: &str) {}
}

/// A host: CPUs, CPUs in use by the row, io operations, seconds since its heartbeat, failed builds.
type Host = (i64, i64, i64, i64, i64);

fn hosts() -> impl Strategy<Value = Vec<Host>> {
    let host = (
        select(vec![2_i64, 4, 8]),
        0_i64..4,
        0_i64..3,
        select(vec![3_i64, 3, 3, 90]),
        select(vec![0_i64, 0, 0, 1]),
    );
    prop::collection::vec(host, 1..40)
}

fn with_numbers(number: u128, host: &Host) -> ebbtide_nova_cloud::ComputeFacts {
    let mut compute = kit::compute(number, host.0);
    let row = &mut compute.row;
    row.vcpus_used = host.1;
    row.free_ram_mb = Some(row.memory_mb - host.1 * 2000);
    let stats = [
        ("io_workload", host.2),
        ("failed_builds", host.4),
        ("num_instances", host.1),
    ];
    row.stats = Some(
        stats
            .into_iter()
            .map(|(name, n)| (name.to_owned(), Some(n.to_string())))
            .collect(),
    );
    compute
}

fn up(number: u128, host: &Host) -> ebbtide_nova_cloud::ServiceFacts {
    let mut service = kit::service(number);
    service.service.last_seen_up = Some(NOW - host.3 * 1_000_000);
    service
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_answer_is_that_of_novas_schedule(
        hosts in hosts(),
        vcpus in select(vec![1_i64, 2, 4]),
        many in 1_u128..4,
        pattern in prop::collection::vec(prop::bool::weighted(0.4), 0..12),
        policy in select(vec![None, Some("anti-affinity"), Some("affinity"), Some("soft-anti-affinity")]),
        members in prop::collection::vec(0_u128..40, 0..3),
    ) {
        let mut cloud = cloud_of(&[], Options::default(), CloudSettings::default());
        for (number, host) in (0..).zip(&hosts) {
            cloud.put_service(up(number, host));
            cloud.put_compute(with_numbers(number, host)).unwrap();
            cloud.put_provider(kit::provider(number, host.0));
        }
        let members: Vec<u128> = members.into_iter().filter(|at| *at < hosts.len() as u128).collect();
        for at in &members {
            settle(&mut cloud, kit::instance(*at, *at, 1, 10, false));
        }
        let (mut spec, call) = request(vcpus, many);
        spec.instance_group = policy.map(|policy| InstanceGroup {
            uuid: "g".to_owned(),
            policy: policy.to_owned(),
            rules: BTreeMap::new(),
            members: members.iter().map(|n| kit::server(*n).to_string()).collect(),
            hosts: members.iter().map(|n| kit::host_name(*n)).collect(),
        });

        // Nova: the hosts that Placement names, each with its candidate.
        let options = Options::default();
        let mut states: Vec<HostState> = Vec::new();
        for (number, host) in (0..).zip(&hosts) {
            let used = members.iter().filter(|at| **at == number).count().min(1) as i64;
            if host.0 - used < vcpus {
                continue;
            }
            let name = kit::host_name(number);
            let mut state = new_state(&name, &name, kit::CELL);
            update(&mut state, &with_numbers(number, host).row).unwrap();
            state.service = up(number, host).service;
            state.instances = std::sync::Arc::new(members.iter().filter(|at| **at == number)
                .map(|at| (kit::server(*at).to_string(), Default::default())).collect());
            let uuid = kit::node(number).to_string();
            let resources = json!({"VCPU": vcpus, "MEMORY_MB": vcpus * 2000, "DISK_GB": vcpus * 20});
            state.allocation_candidates = vec![AllocationCandidate {
                allocations: json!({ uuid.clone(): { "resources": resources } }),
                mappings: json!({ "": [uuid] }),
            }];
            states.push(state);
        }
        let mut claims = Refusing {
            names: states.iter().map(|state| state.host.clone()).collect(),
            pattern: &pattern,
            tried: Vec::new(),
        };
        let context = Context { options: &options, now: NOW };
        let mut theirs = spec.clone();
        let outcome = schedule(&mut states, &mut theirs, &context, &call, &mut claims);
        let expected = outcome.selections.map_err(|fault| fault.class).map(|all| -> Vec<Vec<_>> {
            all.into_iter().map(|one| one.into_iter().map(|s| {
                (states[s.host].host.clone(), s.candidate, s.availability_zone)
            }).collect()).collect()
        });

        let (ours, tried) = decide(&cloud, spec, call, |_, at| pattern.get(at).copied().unwrap_or(false));
        let ours = ours.map(|all| -> Vec<Vec<_>> {
            all.into_iter().map(|one| one.into_iter().map(|s| {
                (s.host.host, s.candidate, s.availability_zone)
            }).collect()).collect()
        });
        prop_assert_eq!(ours, expected);
        prop_assert_eq!(tried, claims.tried);
    }
}

#[test]
fn behind_the_first_hosts_that_all_refuse_come_the_others_in_order() {
    // More than are put in order at once; all alike, so that the order is that of the hosts.
    let cloud = cloud_of(&[8; 400], Options::default(), CloudSettings::default());
    let (spec, call) = request(1, 1);
    let (selected, tried) = decide(&cloud, spec, call, |_, at| at < 350);
    let expected: Vec<String> = (0..=350).map(kit::host_name).collect();
    assert_eq!(tried, expected);
    let hosts: Vec<String> = selected.unwrap()[0]
        .iter()
        .map(|s| s.host.host.clone())
        .collect();
    assert_eq!(hosts, [350, 0, 1].map(kit::host_name));
}

#[test]
fn a_request_goes_on_with_what_was_true_when_it_began() {
    let mut cloud = cloud_of(&[4, 4], Options::default(), CloudSettings::default());
    let (mut spec, call) = request(2, 1);
    let asked = cloud.ask(&mut spec).unwrap();
    let candidates = cloud.candidates(&asked).unwrap();
    let mut scheduling = cloud
        .decide(spec.clone(), call.clone(), &candidates, NOW, None)
        .unwrap();
    cloud.remove_compute(kit::node(0));
    let SchedulingAction::Claim(claim) = scheduling.next() else {
        panic!("the test asks for no claim")
    };
    assert_eq!(claim.host.uuid, kit::node(0));
    assert_eq!(
        scheduling.next(),
        SchedulingAction::Claim(claim),
        "asked again it says the same"
    );
    let stale = cloud.decide(spec, call, &candidates, NOW, None).map(drop);
    assert_eq!(stale, Err(CloudError::Stale));
}

#[test]
fn a_rebuild_asks_the_filters_and_claims_nothing() {
    let cloud = cloud_of(&[2, 2], Options::default(), CloudSettings::default());
    let (mut spec, mut call) = request(2, 1);
    spec.scheduler_hints = Some(BTreeMap::from([(
        "_nova_check_type".to_owned(),
        vec!["rebuild".to_owned()],
    )]));
    spec.force_hosts = Some(vec!["host1".to_owned()]);
    call.no_placement = true;
    call.return_alternates = false;
    let mut scheduling = cloud
        .decide(spec, call, &cloud.all_hosts(), NOW, None)
        .unwrap();
    let SchedulingAction::Done(selections) = scheduling.next() else {
        panic!("a rebuild that fits is refused")
    };
    assert_eq!(selections[0][0].host.host, "host1");
    assert_eq!(selections[0][0].candidate, None);
}

#[test]
fn placements_own_answer_is_used_as_it_is() {
    let cloud = cloud_of(&[2, 2, 2], Options::default(), CloudSettings::default());
    let (spec, call) = request(1, 1);
    let child = kit::fresh(99).to_string();
    let root = kit::node(2).to_string();
    let answer = json!({
        "allocation_requests": [{
            "allocations": { root.clone(): {"resources": {"MEMORY_MB": 1}}, child.clone(): {"resources": {"VGPU": 1}} },
            "mappings": { "": [root], "_X": [child] },
        }],
        "provider_summaries": {},
    });
    let candidates = cloud.candidates_from_answer(&answer).unwrap();
    assert_eq!(candidates.len(), 1);
    let mut scheduling = cloud.decide(spec, call, &candidates, NOW, None).unwrap();
    let SchedulingAction::Claim(claim) = scheduling.next() else {
        panic!("the test asks for no claim")
    };
    assert_eq!(claim.host.uuid, kit::node(2));
    assert_eq!(
        claim.candidate.allocations,
        answer["allocation_requests"][0]["allocations"]
    );
    assert!(
        cloud
            .candidates_from_answer(&json!({"allocation_requests": [{}]}))
            .is_err()
    );
    assert!(cloud.candidates_from_answer(&json!([])).is_err());
}

#[test]
fn a_disabled_cell_gets_only_what_is_sent_into_it() {
    let mut cloud = cloud_of(&[4], Options::default(), CloudSettings::default());
    cloud.set_cells(&[CellFacts {
        uuid: kit::CELL.to_owned(),
        disabled: true,
    }]);
    let (spec, call) = request(1, 1);
    assert_eq!(
        decide(&cloud, spec.clone(), call.clone(), |_, _| false).0,
        Err("NoValidHost")
    );
    let mut sent = spec;
    sent.requested_destination = Some(ebbtide_nova::model::Destination {
        cell: Some(kit::CELL.to_owned()),
        allow_cross_cell_move: Some(false),
        ..Default::default()
    });
    assert!(decide(&cloud, sent, call, |_, _| false).0.is_ok());
}

#[test]
fn questions_that_are_placements_own_are_left_to_it() {
    let mut cloud = cloud_of(&[4], Options::default(), CloudSettings::default());
    let (mut spec, _) = request(1, 1);
    let mut ask = |cloud: &Cloud| {
        let asked = cloud.ask(&mut spec).unwrap();
        cloud.candidates(&asked).map(|candidates| candidates.len())
    };
    assert_eq!(ask(&cloud), Ok(1));
    let mut child = kit::provider(50, 1);
    child.parent = Some(kit::node(0));
    child.root = Some(kit::node(0));
    cloud.put_provider(child.clone());
    assert_eq!(ask(&cloud), Err(PlacementOnly::Nested));
    cloud.remove_provider(child.uuid);
    let mut sharing = kit::provider(51, 1);
    sharing.traits = Some(["MISC_SHARES_VIA_AGGREGATE".to_owned()].into());
    cloud.put_provider(sharing.clone());
    assert_eq!(ask(&cloud), Err(PlacementOnly::Sharing));
    sharing.inventories = Some([("CUSTOM_X".to_owned(), kit::inventory(3))].into());
    cloud.put_provider(sharing);
    assert_eq!(
        ask(&cloud),
        Ok(1),
        "another class that is shared is of no interest"
    );
    spec.flavor
        .extra_specs
        .as_mut()
        .unwrap()
        .insert("resources1:CUSTOM_X", "1".to_owned());
    let asked = cloud.ask(&mut spec).unwrap();
    assert_eq!(
        cloud.candidates(&asked).map(|_| ()),
        Err(PlacementOnly::Granular)
    );
}
