//! What holds for every cloud and every request. The names are the statements.

use super::brute_force::{Price, cost, is_candidate, on_host, within};
use super::kit::*;
use super::table::any_phase;
use crate::{Budgets, EngineConfig, HostTable, Instance, InstancePhase, RankingPolicy};
use ebbtide_model::{
    Decision, DecisionOutcome, GroupPolicy, Host, PlacementRequest, ResourceClass, ServerGroup,
};
use proptest::prelude::*;

/// A small random cloud.
#[derive(Debug, Clone)]
struct Cloud {
    hosts: Vec<Host>,
    instances: Vec<Instance>,
    group: ServerGroup,
    budgets: Budgets,
}

impl Cloud {
    fn table(&self) -> HostTable {
        self.table_in_order(&(0..self.instances.len()).collect::<Vec<_>>())
    }

    /// The same table with the instances put in another order.
    fn table_in_order(&self, order: &[usize]) -> HostTable {
        let mut table = HostTable::new();
        self.hosts.iter().for_each(|host| table.put_host(host));
        table.put_group(&self.group);
        for &at in order {
            table.put_instance(&self.instances[at]).unwrap();
        }
        table
    }
}

/// Minutes; often such that costs are equal.
fn any_age() -> impl Strategy<Value = i64> {
    prop_oneof![
        0..300_i64,
        (0..3_i64, 0..2_i64).prop_map(|(hours, tens)| 60 * hours + 10 * tens)
    ]
}

fn any_instance(hosts: usize) -> impl Strategy<Value = Instance> {
    (
        0..hosts,
        1..5_u64,
        1..4_u64,
        prop::bool::weighted(0.75),
        any_age(),
        any_phase(),
        prop::bool::weighted(0.15),
        (0..3_u8, prop::bool::weighted(0.2)),
        // Memory can be retained too, and more than is taken: the engine does not care which class
        // it is.
        prop::option::weighted(0.25, 0..4_u64),
    )
        .prop_map(
            |(
                host,
                vcpus,
                memory,
                preemptible,
                minutes,
                phase,
                protected,
                (project, member),
                retained,
            )| {
                let name = format!("h{host}");
                Instance {
                    resources: resources(&[("VCPU", vcpus), ("MEMORY_MB", 1000 * memory)]),
                    retained: resources(&[("MEMORY_MB", 1000 * retained.unwrap_or(0))]),
                    preemptible,
                    phase,
                    project_id: format!("p{project}"),
                    group_id: member.then(|| group_id(1)),
                    protected_until: protected.then(|| minutes_ago(-5)),
                    ..spot(0, &name, 1, minutes)
                }
            },
        )
}

fn any_budgets() -> impl Strategy<Value = Budgets> {
    let limit = || prop::option::weighted(0.4, 0..3_u32);
    (limit(), limit(), limit()).prop_map(|(p0, p1, group)| {
        let mut budgets = Budgets::unlimited();
        p0.into_iter().for_each(|n| budgets.limit_project("p0", n));
        p1.into_iter().for_each(|n| budgets.limit_project("p1", n));
        group
            .into_iter()
            .for_each(|n| budgets.limit_group(group_id(1), n));
        budgets
    })
}

fn any_cloud() -> impl Strategy<Value = Cloud> {
    let hosts = prop::collection::vec((2..13_u64, 0..3_i64), 1..5);
    let policy = prop_oneof![
        Just(GroupPolicy::Affinity),
        Just(GroupPolicy::AntiAffinity),
        Just(GroupPolicy::SoftAffinity),
        Just(GroupPolicy::SoftAntiAffinity)
    ];
    (hosts, policy, 1..3_u32, any_budgets()).prop_flat_map(|(hosts, policy, limit, budgets)| {
        let count = hosts.len();
        let instances = prop::collection::vec(any_instance(count), 0..(4 * count + 1));
        instances.prop_map(move |mut instances| {
            for (number, instance) in instances.iter_mut().enumerate() {
                instance.id = server(number as u128 + 1);
            }
            let hosts = hosts.iter().enumerate();
            let mut group = group(1, policy);
            group.max_server_per_host = limit;
            Cloud {
                hosts: hosts
                    .map(|(at, (n, created))| host(&format!("h{at}"), *created, *n))
                    .collect(),
                instances,
                group,
                budgets: budgets.clone(),
            }
        })
    })
}

fn any_request() -> impl Strategy<Value = PlacementRequest> {
    (
        1..7_u32,
        1..6_u64,
        1..5_u128,
        prop::bool::weighted(0.25),
        prop::bool::weighted(0.3),
    )
        .prop_map(|(vcpus, memory, count, preemptible, joins)| {
            let mut request = wants(vcpus).times(count);
            request.flavor.ram_mb = u32::try_from(memory).unwrap() * 1000;
            let request = if preemptible {
                request.preemptible()
            } else {
                request
            };
            if joins {
                request.joins(group_id(1))
            } else {
                request
            }
        })
}

fn any_policy() -> impl Strategy<Value = RankingPolicy> {
    prop_oneof![
        Just(RankingPolicy::Tiered),
        Just(RankingPolicy::Nova),
        Just(RankingPolicy::FirstFit)
    ]
}

/// Decides without listing more hosts than it must, so that hosts are skipped as they would be in a
/// large cloud.
fn decided(cloud: &Cloud, request: &PlacementRequest, policy: RankingPolicy) -> Decision {
    decided_listing(0, cloud, request, policy)
}

fn decided_listing(
    explain_hosts: u32,
    cloud: &Cloud,
    request: &PlacementRequest,
    policy: RankingPolicy,
) -> Decision {
    let engine = engine(EngineConfig {
        policy,
        explain_hosts,
        ..EngineConfig::default()
    });
    try_decide(&engine, &cloud.table(), &cloud.budgets, request).unwrap()
}

fn victims<'a>(cloud: &'a Cloud, decision: &Decision) -> Vec<&'a Instance> {
    let ids = decision.victims().map(|(_, victim)| victim.server_id);
    ids.map(|id| cloud.instances.iter().find(|i| i.id == id).unwrap())
        .collect()
}

fn is_placed(decision: &Decision) -> bool {
    matches!(decision.outcome, DecisionOutcome::Placed(_))
}

/// Free once all instances that are leaving are gone, for the classes of the request.
fn free_future(table: &HostTable, host: &str, class: &ResourceClass) -> i64 {
    let usage = table.usage(host).unwrap();
    let class = usage.classes.iter().find(|c| c.class == *class);
    class.map_or(0, |c| c.capacity - c.normal - c.preemptible)
}

/// A single normal instance without a group: what brute force can do.
fn single(request: &PlacementRequest) -> PlacementRequest {
    let mut request = request.clone().times(1);
    request.group_id = None;
    request.flavor.extra_specs.clear();
    request
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_host_is_over_committed_by_a_decision(
        cloud in any_cloud(), request in any_request(), policy in any_policy()
    ) {
        let decision = decided(&cloud, &request, policy);
        if is_placed(&decision) {
            let mut table = cloud.table();
            apply(&mut table, &decision);
            let properties = request.flavor.properties().unwrap();
            for placement in placed(&decision) {
                for (class, _) in properties.resources.iter() {
                    let free = free_future(&table, &placement.host, class);
                    prop_assert!(free >= 0, "{} of {} on {}", free, class, placement.host);
                }
            }
        }
    }

    #[test]
    fn an_instance_waits_exactly_if_it_does_not_fit_into_the_full_state(
        cloud in any_cloud(), request in any_request(), policy in any_policy()
    ) {
        let decision = decided(&cloud, &request, policy);
        if is_placed(&decision) {
            let mut table = cloud.table();
            for placement in placed(&decision) {
                let resources = request.flavor.properties().unwrap().resources;
                let usage = table.usage(&placement.host).unwrap();
                let fits = resources.iter().all(|(class, amount)| {
                    let free = usage.classes.iter().find(|c| c.class == *class);
                    i64::try_from(amount).unwrap() <= free.map_or(0, |c| c.free_full)
                });
                prop_assert_eq!(placement.waits_for_room, !fits);
                prop_assert!(fits || !request.flavor.is_preemptible());
                let mut one = decision.clone();
                one.outcome = DecisionOutcome::Placed(vec![placement.clone()]);
                apply(&mut table, &one);
            }
        }
    }

    #[test]
    fn no_instance_leaves_if_a_host_has_room(
        cloud in any_cloud(), request in any_request(), policy in any_policy()
    ) {
        let request = single(&request);
        let decision = decided(&cloud, &request, policy);
        let resources = request.flavor.properties().unwrap().resources;
        let roomy = cloud.hosts.iter().any(|host| {
            on_host(host, &cloud.instances, &resources, &cloud.budgets).is_some_and(|p| p.0 == 0)
        });
        if roomy {
            prop_assert_eq!(decision.victims().count(), 0);
            prop_assert!(!placed(&decision)[0].waits_for_room);
        }
    }

    #[test]
    fn the_victims_are_the_cheapest_over_all_hosts(cloud in any_cloud(), request in any_request()) {
        let request = single(&request);
        let resources = request.flavor.properties().unwrap().resources;
        let best: Option<Price> = cloud
            .hosts
            .iter()
            .filter_map(|host| on_host(host, &cloud.instances, &resources, &cloud.budgets))
            .min();
        let decision = decided(&cloud, &request, RankingPolicy::Tiered);
        let found = is_placed(&decision).then(|| {
            let set = victims(&cloud, &decision);
            let tier = match (placed(&decision)[0].waits_for_room, set.len()) {
                (false, _) => 0,
                (true, 0) => 1,
                _ => 2,
            };
            (tier, set.iter().map(|i| cost(i)).sum(), set.len())
        });
        prop_assert_eq!(found, best);
        prop_assert!(decision.explanation.optimal);
    }

    #[test]
    fn every_policy_finds_a_host_exactly_if_there_is_one(
        cloud in any_cloud(), request in any_request(), policy in any_policy()
    ) {
        let request = single(&request);
        let resources = request.flavor.properties().unwrap().resources;
        let possible = cloud
            .hosts
            .iter()
            .any(|h| on_host(h, &cloud.instances, &resources, &cloud.budgets).is_some());
        prop_assert_eq!(is_placed(&decided(&cloud, &request, policy)), possible);
    }

    #[test]
    fn on_its_host_every_policy_chooses_the_cheapest_victims(
        cloud in any_cloud(), request in any_request(), policy in any_policy()
    ) {
        let request = single(&request);
        let resources = request.flavor.properties().unwrap().resources;
        let decision = decided(&cloud, &request, policy);
        if is_placed(&decision) {
            let set = victims(&cloud, &decision);
            let name = &placed(&decision)[0].host;
            let host = cloud.hosts.iter().find(|h| h.name == *name).unwrap();
            let best = on_host(host, &cloud.instances, &resources, &cloud.budgets).unwrap();
            prop_assert_eq!((set.iter().map(|i| cost(i)).sum::<u64>(), set.len()), (best.1, best.2));
        }
    }

    #[test]
    fn no_victim_can_be_left_out(
        cloud in any_cloud(), request in any_request(), policy in any_policy()
    ) {
        let decision = decided(&cloud, &request, policy);
        if is_placed(&decision) {
            let resources = request.flavor.properties().unwrap().resources;
            for left_out in victims(&cloud, &decision) {
                let mut table = cloud.table();
                apply(&mut table, &decision);
                table.put_instance(left_out).unwrap();
                let enough = resources
                    .iter()
                    .all(|(class, _)| free_future(&table, &left_out.host, class) >= 0);
                prop_assert!(!enough, "{} dies for nothing", left_out.id);
            }
        }
    }

    #[test]
    fn only_candidates_are_chosen_and_none_twice(
        cloud in any_cloud(), request in any_request(), policy in any_policy()
    ) {
        let decision = decided(&cloud, &request, policy);
        let set = victims(&cloud, &decision);
        let mut ids: Vec<_> = set.iter().map(|i| i.id).collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), set.len());
        for victim in set {
            prop_assert!(is_candidate(victim), "{:?}", victim);
            prop_assert!(!request.flavor.is_preemptible());
        }
        for (placement, victim) in decision.victims() {
            let instance = cloud.instances.iter().find(|i| i.id == victim.server_id).unwrap();
            let sharing = placed(&decision).iter().any(|p| p.host == instance.host);
            prop_assert!(sharing && instance.host == placement.host);
        }
    }

    #[test]
    fn budgets_are_never_broken(
        cloud in any_cloud(), request in any_request(), policy in any_policy()
    ) {
        let decision = decided(&cloud, &request, policy);
        prop_assert!(within(&victims(&cloud, &decision), &cloud.budgets));
    }

    #[test]
    fn a_request_is_placed_as_a_whole_or_not_at_all(
        cloud in any_cloud(), request in any_request(), policy in any_policy()
    ) {
        let decision = decided(&cloud, &request, policy);
        match &decision.outcome {
            DecisionOutcome::Placed(placements) => {
                let ids: Vec<_> = placements.iter().map(|p| p.server_id).collect();
                prop_assert_eq!(ids, request.server_ids);
            }
            DecisionOutcome::NoValidHost(no) => {
                prop_assert!((no.placed_before as usize) < request.server_ids.len());
                prop_assert_eq!(decision.victims().count(), 0);
                let last = decision.explanation.instances.last().unwrap();
                prop_assert_eq!(last.filters.last().map(|f| f.after), Some(0));
            }
        }
    }

    #[test]
    fn server_groups_are_kept(
        cloud in any_cloud(), request in any_request(), policy in any_policy()
    ) {
        let request = request.joins(group_id(1));
        let decision = decided(&cloud, &request, policy);
        if is_placed(&decision) {
            let members = |host: &str, leaving: bool| {
                let there = cloud.instances.iter().filter(|i| i.host == host && i.group_id.is_some());
                let there = there.filter(|i| i.phase != InstancePhase::Retained);
                let there = there.filter(|i| leaving || i.phase != InstancePhase::Leaving).count();
                let new = placed(&decision).iter().filter(|p| p.host == host).count();
                (there, new)
            };
            for placement in placed(&decision) {
                let host = &placement.host;
                match cloud.group.policy {
                    GroupPolicy::AntiAffinity => {
                        let (there, new) = members(host, true);
                        prop_assert!(there + new <= cloud.group.max_server_per_host as usize);
                    }
                    GroupPolicy::Affinity => {
                        prop_assert_eq!(host, &placed(&decision)[0].host);
                        let (there, _) = members(host, false);
                        let anywhere = cloud.hosts.iter().any(|h| members(&h.name, false).0 > 0);
                        prop_assert!(there > 0 || !anywhere);
                        let own = |i: &&Instance| i.group_id == request.group_id;
                        prop_assert!(!victims(&cloud, &decision).iter().any(own));
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn the_decision_does_not_depend_on_the_order_in_which_instances_were_put(
        (cloud, order) in any_cloud().prop_flat_map(|cloud| {
            let order: Vec<usize> = (0..cloud.instances.len()).collect();
            (Just(cloud), Just(order).prop_shuffle())
        }),
        request in any_request(),
        policy in any_policy(),
        shuffle in any::<bool>(),
    ) {
        let engine = engine(EngineConfig {
            policy,
            shuffle_best_same_weighed_hosts: shuffle,
            host_subset_size: 2,
            ..EngineConfig::default()
        });
        let mut request = request;
        request.alternates = 2;
        let one = try_decide(&engine, &cloud.table(), &cloud.budgets, &request).unwrap();
        let mut table = cloud.table_in_order(&order);
        // Slots that were used before must leave no trace either.
        for at in order.iter().step_by(2) {
            table.remove_instance(cloud.instances[*at].id);
        }
        for at in order.iter().rev() {
            table.put_instance(&cloud.instances[*at]).unwrap();
        }
        let other = try_decide(&engine, &table, &cloud.budgets, &request).unwrap();
        prop_assert_eq!(one, other);
    }

    #[test]
    fn what_is_explained_does_not_change_what_is_decided(
        cloud in any_cloud(), request in any_request(), policy in any_policy(), listed in 0..12_u32
    ) {
        let one = decided(&cloud, &request, policy);
        let other = decided_listing(listed, &cloud, &request, policy);
        prop_assert_eq!(one.outcome, other.outcome);
        prop_assert_eq!(one.explanation.optimal, other.explanation.optimal);
    }

    #[test]
    fn the_first_two_of_a_ranking_are_the_best_two(cloud in any_cloud(), request in any_request()) {
        let request = single(&request);
        let resources = request.flavor.properties().unwrap().resources;
        let mut prices: Vec<Price> = cloud
            .hosts
            .iter()
            .filter_map(|host| on_host(host, &cloud.instances, &resources, &cloud.budgets))
            .collect();
        prices.sort_unstable();
        let decision = decided_listing(2, &cloud, &request, RankingPolicy::Tiered);
        let ranking = &decision.explanation.instances[0].ranking;
        if prices.first().is_some_and(|best| best.0 == 2) {
            let told: Vec<(u64, usize)> = ranking
                .iter()
                .map(|r| ((r.eviction_cost.unwrap() * 1e6).round() as u64, r.victims.len()))
                .collect();
            let best: Vec<(u64, usize)> = prices.iter().take(2).map(|p| (p.1, p.2)).collect();
            prop_assert_eq!(told, best);
        }
    }

    #[test]
    fn more_room_never_costs_more(cloud in any_cloud(), request in any_request()) {
        let before = decided(&cloud, &request, RankingPolicy::Tiered);
        if is_placed(&before) {
            let mut roomier = cloud.clone();
            for host in &mut roomier.hosts {
                for inventory in host.inventory.values_mut() {
                    inventory.total += 1;
                }
            }
            let after = decided(&roomier, &request, RankingPolicy::Tiered);
            prop_assert!(is_placed(&after));
            let price = |cloud: &Cloud, decision: &Decision| {
                victims(cloud, decision).iter().map(|i| cost(i)).sum::<u64>()
            };
            prop_assert!(price(&roomier, &after) <= price(&cloud, &before));
        }
    }
}
