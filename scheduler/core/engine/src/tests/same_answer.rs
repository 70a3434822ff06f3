//! The fast way and the simple one give the same decision, to the last bit of the explanation.

use super::kit::*;
use super::table::any_phase;
use crate::{Budgets, Engine, EngineConfig, HostTable, Instance, RankingPolicy, WeigherConfig};
use ebbtide_model::{
    GroupPolicy, HostHealth, LifeGroup, LifeTable, LifeTables, PlacementRequest, ResourceClass,
};
use ebbtide_weigher_api::{
    Column, FilterError, FilterVerdicts, HostBatch, HostFilter, RequestView, Weigher, WeigherError,
};
use proptest::prelude::*;
use std::sync::Arc;

/// A cloud of more hosts than a block, of few kinds, so that ranges matter and ties are usual.
#[derive(Debug, Clone)]
struct Cloud {
    hosts: Vec<(u64, i64, HostHealth, bool)>,
    instances: Vec<Instance>,
    removed: Vec<usize>,
    policy: GroupPolicy,
    aggregates: Vec<(u8, Option<&'static str>)>,
    budgets: Budgets,
}

fn name(number: usize) -> String {
    format!("h{number:03}")
}

impl Cloud {
    fn table(&self) -> HostTable {
        let mut table = HostTable::new();
        for (number, (vcpus, created, health, odd)) in self.hosts.iter().enumerate() {
            let mut host = host(&name(number), *created, *vcpus);
            if *odd {
                let vcpu = host.inventory.get_mut(&ResourceClass::vcpu()).unwrap();
                vcpu.allocation_ratio = 1.1;
                host.traits.insert("CUSTOM_ODD".parse().unwrap());
            }
            table.put_host(&host);
            table.set_health(&name(number), *health);
        }
        table.put_group(&group(1, self.policy));
        let all: Vec<String> = (0..self.hosts.len()).map(name).collect();
        let aggregates: Vec<_> = self
            .aggregates
            .iter()
            .enumerate()
            .map(|(number, (part, multiplier))| {
                let hosts = all.iter().skip(usize::from(*part)).step_by(3);
                let hosts: Vec<&str> = hosts.map(String::as_str).collect();
                let mut metadata = vec![("availability_zone", "az-1")];
                metadata.extend(multiplier.map(|m| ("ram_weight_multiplier", m)));
                aggregate(number as u128 + 1, &hosts, &metadata)
            })
            .collect();
        table.set_aggregates(&aggregates);
        for instance in &self.instances {
            table.put_instance(instance).unwrap();
        }
        for &at in &self.removed {
            table.remove_host(&name(at % self.hosts.len()));
        }
        table.check_consistency().unwrap();
        table
    }
}

fn any_instance(hosts: usize) -> impl Strategy<Value = Instance> {
    let age = prop_oneof![
        Just(None),
        (-30_000..20_000_000_i64).prop_map(Some),
        (0..6_i64).prop_map(|n| Some(n * 600_000))
    ];
    (
        (0..hosts, 1..5_u64, 1..4_u64),
        prop::bool::weighted(0.8),
        age,
        prop_oneof![4 => Just(crate::InstancePhase::Running), 1 => any_phase()],
        prop::bool::weighted(0.1),
        (0..3_u8, prop::bool::weighted(0.1)),
        prop::option::weighted(0.1, 0..4_u64),
    )
        .prop_map(
            |(
                (host, vcpus, memory),
                preemptible,
                age,
                phase,
                protected,
                (project, member),
                kept,
            )| {
                let mut resources = resources(&[("VCPU", vcpus), ("MEMORY_MB", 1000 * memory)]);
                if vcpus == 4 {
                    resources.set(ResourceClass::disk_gb(), 7).unwrap();
                }
                let retained = super::kit::resources(&[("MEMORY_MB", 1000 * kept.unwrap_or(0))]);
                Instance {
                    resources,
                    retained,
                    preemptible,
                    phase,
                    project_id: format!("p{project}"),
                    group_id: member.then(|| group_id(1)),
                    protected_until: protected.then(|| minutes_ago(-5)),
                    launched_at: age
                        .map(|ms| ebbtide_model::Timestamp::from_millis(now().as_millis() - ms)),
                    ..spot(0, &name(host), 1, 0)
                }
            },
        )
}

fn any_cloud() -> impl Strategy<Value = Cloud> {
    let health = prop_oneof![
        9 => Just(HostHealth::Up),
        1 => Just(HostHealth::Down),
        1 => Just(HostHealth::Disabled)
    ];
    let odd = prop_oneof![3 => Just(0.0), 1 => Just(0.2)];
    let hosts = (odd, 1..140_usize).prop_flat_map(move |(odd, count)| {
        let one = (
            3..10_u64,
            0..40_i64,
            health.clone(),
            prop::bool::weighted(odd),
        );
        prop::collection::vec(one, count)
    });
    let policy = prop_oneof![
        Just(GroupPolicy::Affinity),
        Just(GroupPolicy::AntiAffinity),
        Just(GroupPolicy::SoftAffinity),
        Just(GroupPolicy::SoftAntiAffinity)
    ];
    let multiplier = prop::option::weighted(0.4, prop::sample::select(vec!["2.0", "nan", "x"]));
    let aggregates = prop::collection::vec((0..4_u8, multiplier), 0..2);
    let limit = || prop::option::weighted(0.2, 0..3_u32);
    let budgets = (limit(), limit(), limit()).prop_map(|(p0, p1, of_group)| {
        let mut budgets = Budgets::unlimited();
        p0.into_iter().for_each(|n| budgets.limit_project("p0", n));
        p1.into_iter().for_each(|n| budgets.limit_project("p1", n));
        of_group
            .into_iter()
            .for_each(|n| budgets.limit_group(group_id(1), n));
        budgets
    });
    let load = prop_oneof![Just(0_usize), Just(2), Just(4)];
    (hosts, policy, aggregates, budgets, load).prop_flat_map(
        |(hosts, policy, aggregates, budgets, load)| {
            let count = hosts.len();
            let instances = prop::collection::vec(any_instance(count), load * count);
            let removed = prop_oneof![
                3 => Just(Vec::new()),
                1 => prop::collection::vec(0..count, 1..3)
            ];
            (instances, removed).prop_map(move |(mut instances, removed)| {
                for (number, instance) in instances.iter_mut().enumerate() {
                    instance.id = server((number as u128 + 1) * 7919 % 65_537);
                }
                Cloud {
                    hosts: hosts.clone(),
                    instances,
                    removed,
                    policy,
                    aggregates: aggregates.clone(),
                    budgets: budgets.clone(),
                }
            })
        },
    )
}

fn any_request() -> impl Strategy<Value = PlacementRequest> {
    (
        (1..9_u32, 1..6_u32, prop::option::weighted(0.3, 1..40_u32)),
        prop_oneof![3 => Just(1_u128), 1 => 2..5_u128],
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
        (0..12_u8, 0..3_u32),
    )
        .prop_map(
            |((vcpus, memory, disk), count, preemptible, joins, (special, alternates))| {
                let mut request = wants(vcpus).times(count);
                request.flavor.ram_mb = memory * 1000;
                request.flavor.disk_gb = disk.unwrap_or(0);
                request.alternates = alternates;
                if preemptible {
                    request = request.preemptible();
                }
                if joins {
                    request = request.joins(group_id(1));
                }
                match special {
                    0 => request.availability_zone = Some("az-1".to_owned()),
                    1 => request.ignore_hosts = (0..5).map(name).collect(),
                    2 => request.force_hosts = (3..9).map(name).collect(),
                    3 => request = request.spec("trait:CUSTOM_ODD", "forbidden"),
                    4 => request = request.spec("resources:CUSTOM_NO_HOST_HAS", "1"),
                    5 => request = request.spec("resources:VCPU", "2000000000"),
                    _ => {}
                }
                request
            },
        )
}

/// A weigher that says nothing about itself.
struct Plugin;

impl Weigher for Plugin {
    fn name(&self) -> &str {
        "plugin"
    }

    fn multiplier_key(&self) -> &str {
        "plugin_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        0.5
    }

    fn needs(&self) -> &[Column] {
        &[Column::NumPreemptible]
    }

    fn weigh(
        &self,
        _request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        let numbers = hosts.column(Column::NumPreemptible)?;
        for (out, number) in out.iter_mut().zip(numbers) {
            *out = (number * 1.3).sin();
        }
        Ok(())
    }
}

/// Tables that know flavors and zones.
fn lifetimes() -> LifeTables {
    let even = |hours: f64| LifeTable::new(&[(0.0, 1.0), (hours * 3600.0, 0.0)], 0.0).unwrap();
    let zone = LifeGroup {
        flavor: None,
        zone: Some("az-1".to_owned()),
    };
    let flavor = LifeGroup {
        flavor: Some("v2".to_owned()),
        zone: None,
    };
    LifeTables::new(even(20.0), vec![(zone, even(50.0)), (flavor, even(3.0))])
}

/// Refuses hosts by how many normal instances they have.
struct EveryThird;

impl HostFilter for EveryThird {
    fn name(&self) -> &str {
        "every_third"
    }

    fn needs(&self) -> &[Column] {
        &[Column::NumInstances]
    }

    fn filter(
        &self,
        _: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<FilterVerdicts, FilterError> {
        let mut verdicts = FilterVerdicts::pass(hosts.len);
        for (at, instances) in hosts.column(Column::NumInstances)?.iter().enumerate() {
            if instances % 3.0 == 2.0 {
                verdicts.refuse(at, "a third one");
            }
        }
        Ok(verdicts)
    }
}

fn any_engine() -> impl Strategy<Value = Engine> {
    let policy = prop_oneof![
        6 => Just(RankingPolicy::Tiered),
        1 => Just(RankingPolicy::Nova),
        1 => Just(RankingPolicy::FirstFit)
    ];
    let weighers = prop_oneof![
        4 => Just(None),
        1 => Just(Some(vec![("preemptible_count", 3.0), ("cpu", -1.5), ("num_instances", 0.3)])),
        1 => Just(Some(vec![("ram", 1.0), ("plugin", 1.0)])),
        2 => Just(Some(vec![("cpu", 1.0), ("interruption_risk", 100.0), ("ram", 1.0)])),
        1 => Just(Some(vec![("partial_hour_sum", 1.0), ("disk", 1e300)])),
        1 => Just(Some(vec![]))
    ];
    let module = prop_oneof![
        4 => Just("partial_hour"),
        1 => Just("num_instances"),
        1 => Just("oldest_first"),
        2 => Just("fairness"),
        1 => Just("remaining_lifetime"),
        1 => Just("revenue")
    ];
    let period = prop_oneof![3 => Just(3600_u32), 1 => Just(60)];
    (
        policy,
        weighers,
        module,
        period,
        prop_oneof![Just(0_u32), Just(3), Just(10)],
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.3),
    )
        .prop_map(
            |(policy, weighers, module, period, listed, shuffle, filtered)| {
                let mut config = EngineConfig {
                    policy,
                    cost_module: module.to_owned(),
                    period_seconds: period,
                    explain_hosts: listed,
                    explain_dropped: listed / 2,
                    shuffle_best_same_weighed_hosts: shuffle,
                    lifetimes: Some(lifetimes()),
                    interruptions: Some(lifetimes()),
                    ..EngineConfig::default()
                };
                if let Some(weighers) = weighers {
                    config.weighers = weighers
                        .into_iter()
                        .map(|(name, multiplier)| WeigherConfig {
                            name: name.to_owned(),
                            multiplier: Some(multiplier),
                            on_failure: None,
                        })
                        .collect();
                }
                let filter: Arc<dyn HostFilter> = Arc::new(EveryThird);
                let filters = if filtered {
                    vec![(filter, None)]
                } else {
                    Vec::new()
                };
                let engine = Engine::with_plugins(config, vec![Arc::new(Plugin)], Vec::new());
                engine.unwrap().with_filters(filters)
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_fast_way_answers_exactly_as_the_simple_one(
        cloud in any_cloud(),
        requests in prop::collection::vec(any_request(), 1..4),
        engine in any_engine(),
        ready in any::<bool>(),
    ) {
        let mut table = cloud.table();
        if ready {
            table.set_billing_period(engine.config().period_seconds);
        }
        for request in requests {
            let fast = try_decide(&engine, &table, &cloud.budgets, &request);
            let simple = try_decide(&engine.clone().simple(), &table, &cloud.budgets, &request);
            // As text: totals that are no numbers are equal, too.
            let (fast, simple) = (format!("{fast:#?}"), format!("{simple:#?}"));
            let mut lines = fast.lines().zip(simple.lines());
            prop_assert_eq!(lines.find(|(fast, simple)| fast != simple), None);
            prop_assert_eq!(fast.len(), simple.len());
        }
    }
}
