//! How long one decision takes: the ordinary request on hosts with room, and the request that
//! preempts on hosts without.
//!
//! `cargo bench -p ebbtide-engine`. Every host has 64 VCPUs; saturated ones hold 16 preemptible
//! instances of three flavors and different ages.

// A benchmark that cannot set up its cloud has nothing to say.
#![allow(clippy::unwrap_used)]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ebbtide_engine::{
    Budgets, Engine, EngineConfig, HostTable, Instance, InstancePhase, WeigherConfig,
};
use ebbtide_model::{
    DecisionId, Flavor, FlavorId, Host, Inventory, LifeTable, LifeTables, Money, PlacementRequest,
    ResourceClass, Resources, ServerId, Timestamp,
};
use std::collections::BTreeMap;
use std::hint::black_box;
use uuid::Uuid;

const NOW_MILLIS: i64 = 1_770_000_000_000;

/// A sequence without pattern, the same every time.
fn scramble(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn host(number: u64) -> Host {
    Host {
        name: format!("host-{number:06}"),
        inventory: BTreeMap::from([
            (ResourceClass::vcpu(), Inventory::of(64)),
            (ResourceClass::memory_mb(), Inventory::of(256_000)),
            (ResourceClass::disk_gb(), Inventory::of(4000)),
        ]),
        traits: Default::default(),
        disabled_reason: None,
        reclaim: None,
        agent_session: None,
        removed_at: None,
        last_seen: None,
        storage: None,
        created_at: Timestamp::from_millis(i64::try_from(number).unwrap_or(0)),
    }
}

fn instance(number: u64, host: u64, preemptible: bool) -> Instance {
    let vcpus = [2, 4, 6][usize::try_from(scramble(number) % 3).unwrap_or(0)];
    let mut resources = Resources::new();
    for (class, amount) in [
        (ResourceClass::vcpu(), vcpus),
        (ResourceClass::memory_mb(), 4000 * vcpus),
        (ResourceClass::disk_gb(), 20),
    ] {
        resources.set(class, amount).unwrap();
    }
    let age = i64::try_from(scramble(number ^ 0xabc) % 86_400_000).unwrap_or(0);
    Instance {
        id: ServerId(Uuid::from_u128(
            u128::from(scramble(number)) << 64 | u128::from(number),
        )),
        name: format!("vm-{number}"),
        project_id: format!("project-{}", number % 50),
        host: format!("host-{host:06}"),
        resources,
        retained: Resources::new(),
        preemptible,
        group_id: None,
        launched_at: Some(Timestamp::from_millis(NOW_MILLIS - age)),
        protected_until: None,
        price_per_hour: Money::default(),
        max_price: Money::default(),
        flavor: String::new(),
        ends_at: None,
        priority: 0,
        phase: InstancePhase::Running,
    }
}

fn table(hosts: u64, each: u64, preemptible: bool) -> HostTable {
    let mut table = HostTable::new();
    for number in 0..hosts {
        table.put_host(&host(number));
        for n in 0..each {
            table
                .put_instance(&instance(number * each + n, number, preemptible))
                .unwrap();
        }
    }
    table
}

fn request(vcpus: u32) -> PlacementRequest {
    PlacementRequest {
        server_ids: vec![ServerId(Uuid::from_u128(1))],
        project_id: "project-n".to_owned(),
        flavor: Flavor {
            id: FlavorId(Uuid::from_u128(2)),
            name: "large".to_owned(),
            vcpus,
            ram_mb: 4000 * vcpus,
            disk_gb: 20,
            extra_specs: BTreeMap::new(),
        },
        availability_zone: None,
        group_id: None,
        ignore_hosts: Vec::new(),
        force_hosts: Vec::new(),
        alternates: 0,
    }
}

fn decide(engine: &Engine, table: &HostTable, request: &PlacementRequest) {
    let now = Timestamp::from_millis(NOW_MILLIS);
    let id = DecisionId(Uuid::from_u128(3));
    let budgets = Budgets::unlimited();
    black_box(engine.decide(table, &budgets, request, now, 0, id).unwrap());
}

fn benches(c: &mut Criterion) {
    let engine = Engine::new(EngineConfig::default()).unwrap();
    for hosts in [1_000, 10_000] {
        let mut group = c.benchmark_group("decide");
        group.sample_size(20);
        let roomy = table(hosts, 5, false);
        group.bench_with_input(BenchmarkId::new("ordinary", hosts), &roomy, |b, table| {
            b.iter(|| decide(&engine, table, &request(4)));
        });
        // 16 instances of 4 VCPUs on average fill a host nearly; 40 more fit nowhere.
        let full = table(hosts, 16, true);
        group.bench_with_input(BenchmarkId::new("preempting", hosts), &full, |b, table| {
            b.iter(|| decide(&engine, table, &request(40)));
        });
        // What models cost: another module that tells no form, and the one that looks lives up.
        for module in ["newest_first", "remaining_lifetime"] {
            let engine = with_models(EngineConfig {
                cost_module: module.to_owned(),
                ..EngineConfig::default()
            });
            let id = BenchmarkId::new(format!("preempting by {module}"), hosts);
            group.bench_with_input(id, &full, |b, table| {
                b.iter(|| decide(&engine, table, &request(40)));
            });
        }
        let mut preemptible = request(4);
        let spec = ("ebbtide:preemptible".to_owned(), "true".to_owned());
        preemptible.flavor.extra_specs.extend([spec]);
        let mut weighed = EngineConfig::default();
        weighed
            .weighers
            .push(WeigherConfig::named("partial_hour_sum"));
        let mut by_risk = EngineConfig::default();
        by_risk
            .weighers
            .push(WeigherConfig::named("interruption_risk"));
        for (name, config) in [
            ("preemptible", EngineConfig::default()),
            ("preemptible by partial_hour_sum", weighed),
            ("preemptible by interruption_risk", by_risk),
        ] {
            let engine = with_models(config);
            group.bench_with_input(BenchmarkId::new(name, hosts), &roomy, |b, table| {
                b.iter(|| decide(&engine, table, &preemptible));
            });
        }
        group.finish();
    }
}

/// An engine that knows how long instances live.
fn with_models(config: EngineConfig) -> Engine {
    let points: Vec<(f64, f64)> = (0..=512_u32)
        .map(|n| (f64::from(n) * 170.0, 1.0 - f64::from(n) / 512.0))
        .collect();
    let tables = LifeTables::new(LifeTable::new(&points, 0.0).unwrap(), Vec::new());
    Engine::new(EngineConfig {
        lifetimes: Some(tables.clone()),
        interruptions: Some(tables),
        ..config
    })
    .unwrap()
}

criterion_group!(decisions, benches);
criterion_main!(decisions);
