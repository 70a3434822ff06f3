//! An explanation says what decided: its numbers are Nova's to the bit, and its best host is the
//! chosen one.

use crate::kit::{self, NOW, cloud_of, request, settle};
use ebbtide_model::decision::{Explanation, InstanceExplanation, RankedHost};
use ebbtide_nova::hosts::{new_state, update};
use ebbtide_nova::model::{Aggregate, HostState, InstanceGroup, Options};
use ebbtide_nova::weighing::{self, Plugins};
use ebbtide_nova_cloud::{
    ClaimResult, Cloud, CloudSettings, ComputeFacts, PlacementQuery, SchedulingAction,
    SchedulingRecord, ServiceFacts,
};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A host: CPUs, CPUs in use by the row, io operations, seconds since its heartbeat, failed builds,
/// whether it is in the aggregate.
type Host = (i64, i64, i64, i64, i64, bool);

fn hosts() -> impl Strategy<Value = Vec<Host>> {
    let host = (
        select(vec![2_i64, 4, 8]),
        0_i64..4,
        0_i64..3,
        select(vec![3_i64, 3, 3, 90]),
        select(vec![0_i64, 0, 0, 1]),
        prop::bool::ANY,
    );
    prop::collection::vec(host, 1..60)
}

fn compute(number: u128, host: &Host) -> ComputeFacts {
    let mut compute = kit::compute(number, host.0);
    let row = &mut compute.row;
    row.vcpus_used = host.1;
    row.free_ram_mb = Some(row.memory_mb - host.1 * 2000);
    let stats = [
        ("io_workload", host.2),
        ("failed_builds", host.4),
        ("num_instances", host.1),
    ];
    let stats = stats.map(|(name, n)| (name.to_owned(), Some(n.to_string())));
    row.stats = Some(stats.into_iter().collect());
    compute
}

fn service(number: u128, host: &Host) -> ServiceFacts {
    let mut service = kit::service(number);
    service.service.last_seen_up = Some(NOW - host.3 * 1_000_000);
    service
}

fn cloud(hosts: &[Host], options: Options) -> Cloud {
    let mut cloud = cloud_of(&[], options, CloudSettings::default());
    for (number, host) in (0..).zip(hosts) {
        cloud.put_service(service(number, host));
        cloud.put_compute(compute(number, host)).unwrap();
        cloud.put_provider(kit::provider(number, host.0));
    }
    cloud
}

/// Decides, with claims that the pattern refuses. The chosen hosts, if all instances got one, and
/// what explains them.
fn decided(
    cloud: &Cloud,
    (vcpus, many): (i64, u128),
    group: Option<InstanceGroup>,
    pattern: &[bool],
) -> (Option<Vec<String>>, SchedulingRecord, PlacementQuery) {
    let (mut spec, call) = request(vcpus, many);
    spec.instance_group = group;
    let asked = cloud.ask(&mut spec).unwrap();
    let candidates = cloud.candidates(&asked).unwrap();
    let mut scheduling = cloud.decide(spec, call, &candidates, NOW, None).unwrap();
    let mut tried = 0;
    let chosen = loop {
        match scheduling.next() {
            SchedulingAction::Claim(_) => {
                let refused = pattern.get(tried).copied().unwrap_or(false);
                tried += 1;
                scheduling.claimed(if refused {
                    ClaimResult::Refused
                } else {
                    ClaimResult::Taken
                });
            }
            SchedulingAction::Done(all) => {
                let hosts = all.into_iter().map(|one| one[0].host.host.clone());
                break Some(hosts.collect());
            }
            SchedulingAction::Failed { .. } => break None,
        }
    };
    (chosen, scheduling.into_record(), asked)
}

fn explained(record: &SchedulingRecord) -> Vec<InstanceExplanation> {
    let mut warnings = Vec::new();
    let explained = record.explain(&mut warnings);
    assert_eq!(warnings, [""; 0]);
    explained
}

/// The sum of a host's weights in the order in which Nova adds them up.
fn sum(host: &RankedHost) -> f64 {
    let weights = host.weights.iter();
    weights.fold(0.0, |sum, w| sum + w.multiplier * w.normalised)
}

fn options(multipliers: (f64, f64, f64)) -> Options {
    Options {
        ram_weight_multiplier: Some(multipliers.0),
        io_ops_weight_multiplier: Some(multipliers.1),
        soft_anti_affinity_weight_multiplier: Some(multipliers.2),
        ..Options::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_ranking_has_novas_numbers_to_the_bit_and_its_best_host_is_the_chosen_one(
        hosts in hosts(),
        vcpus in select(vec![1_i64, 2, 4]),
        many in 1_u128..4,
        pattern in prop::collection::vec(prop::bool::weighted(0.2), 0..4),
        policy in select(vec![None, Some("anti-affinity"), Some("soft-affinity"), Some("soft-anti-affinity")]),
        members in prop::collection::vec(0_u128..60, 0..4),
        multipliers in (select(vec![1.0, 0.0, -3.0, 0.1]), select(vec![-1.0, 0.0, 2.5]), select(vec![1.0, 0.3])),
        // With a multiplier that columns do not take, each host is weighed for itself.
        in_aggregate in select(vec!["2.0", "0.7", "1e200"]),
    ) {
        let options = options(multipliers);
        let mut cloud = cloud(&hosts, options.clone());
        let inside = (0..).zip(&hosts).filter(|(_, host)| host.5);
        let aggregate = Aggregate {
            id: 1,
            uuid: kit::fresh(1).to_string(),
            name: "a".to_owned(),
            hosts: inside.map(|(number, _)| kit::host_name(number)).collect(),
            metadata: [("cpu_weight_multiplier".to_owned(), in_aggregate.to_owned())].into(),
        };
        cloud.put_aggregate(aggregate.clone());
        let members: Vec<u128> = members.into_iter().filter(|at| *at < hosts.len() as u128).collect();
        for at in &members {
            settle(&mut cloud, kit::instance(*at, *at, 1, 10, false));
        }
        let group = policy.map(|policy| InstanceGroup {
            uuid: "g".to_owned(),
            policy: policy.to_owned(),
            rules: BTreeMap::new(),
            members: members.iter().map(|n| kit::server(*n).to_string()).collect(),
            hosts: members.iter().map(|n| kit::host_name(*n)).collect(),
        });
        let same = kit::plugins(Plugins::default(), kit::COST_MODULE);
        kit::put_in_shadow(&mut cloud, Some(same)).unwrap();
        let (chosen, record, asked) = decided(&cloud, (vcpus, many), group.clone(), &pattern);
        // The same weighers in shadow choose the same.
        let compared = record.in_shadow();
        prop_assert!(compared.is_some() || many > 1);
        if let Some(compared) = compared {
            prop_assert_eq!(compared.shadow, Ok(compared.decided));
        }
        let explained = explained(&record);
        let Some(first) = explained.first() else {
            panic!("no instance is explained");
        };

        for (at, instance) in explained.iter().enumerate() {
            for host in &instance.ranking {
                if !host.weights.is_empty() {
                    prop_assert_eq!(host.weight.to_bits(), sum(host).to_bits(), "{:?}", host);
                }
            }
            let best = instance.ranking.iter().take(instance.ranking.len().min(5));
            prop_assert!(best.is_sorted_by(|a, b| a.weight >= b.weight), "{:?}", instance.ranking);
            if let Some(chosen) = &chosen {
                let marked: Vec<&String> = instance.ranking.iter().filter(|h| h.chosen).map(|h| &h.host).collect();
                prop_assert_eq!(marked, [&chosen[at]]);
            }
            let steps = instance.filters.iter();
            for step in steps {
                let dropped = (step.before - step.after).min(3) as usize;
                prop_assert_eq!(step.dropped.len(), dropped, "{:?}", step);
            }
        }
        if chosen.is_some() && !pattern.iter().any(|refused| *refused) {
            for instance in &explained {
                prop_assert!(instance.ranking[0].chosen, "the best host is chosen: {:?}", instance.ranking);
            }
        }

        // Nova itself, for the first instance: the hosts that pass, each weighed.
        let (mut spec, _) = request(vcpus, many);
        spec.instance_group = group;
        let mut states: Vec<HostState> = Vec::new();
        for (number, host) in (0..).zip(&hosts) {
            let here: Vec<u128> = members.iter().copied().filter(|at| *at == number).collect();
            let used = here.len().min(1) as i64;
            let full = host.0 - used < vcpus;
            let apart = policy == Some("anti-affinity") && used > 0;
            if full || apart || host.3 > 60 {
                continue;
            }
            let name = kit::host_name(number);
            let mut state = new_state(&name, &name, kit::CELL);
            update(&mut state, &compute(number, host).row).unwrap();
            state.service = service(number, host).service;
            state.aggregates = if host.5 { vec![Arc::new(aggregate.clone())] } else { Vec::new() };
            state.instances = Arc::new(here.iter().map(|at| (kit::server(*at).to_string(), Default::default())).collect());
            states.push(state);
        }
        let weighed = weighing::weigh(&states.iter().collect::<Vec<_>>(), &spec, &options).unwrap();
        prop_assert_eq!(first.ranked as usize, states.len());
        for host in &first.ranking {
            let at = states.iter().position(|state| state.host == host.host).unwrap();
            prop_assert_eq!(host.weight.to_bits(), weighed.totals[at].to_bits());
            for part in &weighed.parts {
                let ours = host.weights.iter().find(|weight| weight.weigher == part.class);
                match ours {
                    Some(ours) => {
                        prop_assert_eq!(ours.raw, part.raw[at], "{}", part.class);
                        prop_assert_eq!(ours.normalised, part.norm[at], "{}", part.class);
                        prop_assert_eq!(ours.multiplier, part.mult[at], "{}", part.class);
                    }
                    // It gives all hosts the same for such a request, and it is nothing.
                    None => prop_assert_eq!(part.weighted[at], 0.0, "{}", part.class),
                }
            }
        }

        // Placement comes before the filters.
        let offer = cloud.explain_offer(&spec, &asked, record.candidates());
        prop_assert_eq!(offer.before as usize, hosts.len());
        let enough = |(number, host): (u128, &Host)| {
            let used = i64::from(members.contains(&number));
            host.0 - used >= vcpus
        };
        let offered = (0..).zip(&hosts).filter(|host| enough(*host)).count();
        prop_assert_eq!(offer.after as usize, offered);
        for dropped in &offer.dropped {
            prop_assert!(dropped.reason.contains("VCPU: needs"), "{:?}", dropped);
        }
    }
}

#[test]
fn what_dropped_a_host_is_said_in_words() {
    let mut cloud = cloud_of(&[8, 8, 8, 1], Options::default(), CloudSettings::default());
    let mut disabled = kit::service(1);
    disabled.service.disabled = true;
    disabled.service.disabled_reason = Some("new memory".to_owned());
    cloud.put_service(disabled);
    let mut silent = kit::service(2);
    silent.service.last_seen_up = Some(NOW - 100_000_000);
    cloud.put_service(silent);
    let (chosen, record, asked) = decided(&cloud, (2, 1), None, &[]);
    assert_eq!(chosen, Some(vec![kit::host_name(0)]));
    let explained = explained(&record);
    let filter = &explained[0].filters[0];
    let said: Vec<String> = filter
        .dropped
        .iter()
        .map(|host| format!("{}: {}", host.host, host.reason))
        .collect();
    assert_eq!(filter.filter, "ComputeFilter");
    assert_eq!(
        said,
        [
            "host1: its service is disabled: new memory",
            "host2: its service is down: the last heartbeat was 100 s ago"
        ]
    );
    assert_eq!(explained[0].ranked, 1);
    assert_eq!(record.dropped().0[0].dropped, 2);
    let (spec, _) = request(2, 1);
    let offer = cloud.explain_offer(&spec, &asked, record.candidates());
    assert_eq!((offer.before, offer.after), (4, 3));
    assert_eq!(offer.dropped[0].host, "host3");
    assert_eq!(
        offer.dropped[0].reason,
        "DISK_GB: needs 40, 20 free; MEMORY_MB: needs 4000, 2000 free; VCPU: needs 2, 1 free"
    );
}

#[test]
fn a_request_that_no_filter_lets_pass_is_explained_up_to_the_last_filter() {
    let mut cloud = cloud_of(&[8, 8], Options::default(), CloudSettings::default());
    for number in 0..2 {
        let mut down = kit::service(number);
        down.service.forced_down = true;
        cloud.put_service(down);
    }
    let (chosen, record, _) = decided(&cloud, (2, 2), None, &[]);
    assert_eq!(chosen, None);
    let explained = explained(&record);
    assert_eq!(explained.len(), 1, "the second was not looked at");
    assert_eq!(explained[0].ranking, []);
    let last = explained[0].filters.last().unwrap();
    assert_eq!((last.filter.as_str(), last.after), ("ComputeFilter", 0));
    assert_eq!(last.dropped[0].reason, "its service is forced down");
}

/// A decision's explanation as it is stored.
fn stored(record: &SchedulingRecord) -> Explanation {
    Explanation {
        policy: "nova".to_owned(),
        instances: explained(record),
        ..Explanation::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Deciding again with the weigher's multiplier 0 chooses one of the hosts that the
    /// counterfactual names, wherever it is certain.
    #[test]
    fn a_counterfactual_names_the_host_that_another_decision_chooses(
        hosts in hosts(),
        ram in select(vec![1.0, 2.5, -1.0]),
        io in select(vec![-1.0, 3.0]),
        vcpus in 1_i64..3,
    ) {
        let whole = (ram, io, 1.0);
        let (chosen, record, _) = decided(&cloud(&hosts, options(whole)), (vcpus, 1), None, &[]);
        prop_assume!(chosen.is_some());
        let explanation = stored(&record);
        let instance = &explanation.instances[0];
        let cut = instance.ranked as usize > instance.ranking.len();
        for other in ebbtide_counterfactual::without_weighers(&explanation, false) {
            let less = match other.weigher.as_str() {
                "RAMWeigher" => (0.0, io, 1.0),
                "IoOpsWeigher" => (ram, 0.0, 1.0),
                _ => continue,
            };
            let again = decided(&cloud(&hosts, options(less)), (vcpus, 1), None, &[]).0.unwrap();
            let named = other.hosts.contains(&again[0]);
            prop_assert!(named || !other.certain, "{other:?} and then {again:?}");
            // With all hosts kept, nothing is uncertain.
            prop_assert!(other.certain || cut, "{other:?}");
        }
    }
}
