//! How long a decision takes in a large cloud: p50 and p99 over requests of several sizes, one
//! thread.
//!
//! `cargo run --release -p ebbtide-engine --example preempt_speed --` with `[HOSTS [PREEMPTIBLES
//! [REQUESTS]]]`; with `joint` in front, requests of several servers, and those of the cost module
//! `fairness`.
//! Saturated hosts hold preemptible instances of four flavors and little else; for the ordinary
//! request there is room on most. Each request for one server is decided a few times and the
//! shortest counts, so that other load on the machine shows less; `ebbtide-lab bench` measures as
//! it is.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measuring program: it prints, and what is missing shall fail loudly"
)]

use ebbtide_engine::{Budgets, Engine, EngineConfig, HostTable, Instance, InstancePhase};
use ebbtide_model::{
    DecisionId, DecisionOutcome, Flavor, FlavorId, Host, Inventory, Money, PlacementRequest,
    ResourceClass, Resources, ServerId, Timestamp,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use uuid::Uuid;

const NOW_MILLIS: i64 = 1_770_000_000_000;

/// A sequence without pattern, the same every time.
fn scramble(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn below(n: u64, seed: u64) -> u64 {
    scramble(seed) % n
}

fn sized(vcpus: u64) -> Resources {
    let mut resources = Resources::new();
    for (class, amount) in [
        (ResourceClass::vcpu(), vcpus),
        (ResourceClass::memory_mb(), 2048 * vcpus),
        (ResourceClass::disk_gb(), 20 * vcpus),
    ] {
        resources.set(class, amount).unwrap();
    }
    resources
}

fn host(number: u64, vcpus: u64) -> Host {
    Host {
        name: format!("host-{number:06}"),
        inventory: BTreeMap::from([
            (ResourceClass::vcpu(), Inventory::of(vcpus)),
            (ResourceClass::memory_mb(), Inventory::of(2048 * vcpus)),
            (ResourceClass::disk_gb(), Inventory::of(20 * vcpus)),
        ]),
        traits: Default::default(),
        disabled_reason: None,
        reclaim: None,
        agent_session: None,
        removed_at: None,
        last_seen: None,
        storage: None,
        created_at: Timestamp::from_millis(i64::try_from(number).unwrap()),
    }
}

fn instance(number: u64, host: u64, vcpus: u64, preemptible: bool) -> Instance {
    let age = i64::try_from(below(3 * 86_400_000, number ^ 0xabc)).unwrap();
    Instance {
        id: ServerId(Uuid::from_u128(
            u128::from(scramble(number)) << 64 | u128::from(number),
        )),
        name: format!("vm-{number}"),
        project_id: format!("project-{}", below(50, number ^ 0x123)),
        host: format!("host-{host:06}"),
        resources: sized(vcpus),
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

/// What costs are like.
#[derive(Clone, Copy, PartialEq)]
enum Ages {
    /// Any age up to three days.
    Mixed,
    /// All instances were launched at the same moment: all costs are equal.
    Equal,
    /// Each instance was launched at one of a few moments.
    Few,
}

/// Hosts full of preemptible instances of 1, 2, 4 and 8 VCPUs, and one normal one of 4.
fn saturated(hosts: u64, each: u64, ages: Ages) -> HostTable {
    let mut table = HostTable::new();
    for number in 0..hosts {
        let sizes: Vec<u64> = (0..each)
            .map(|n| [1, 2, 4, 8][usize::try_from(below(4, number * each + n)).unwrap()])
            .collect();
        let spare = below(2, number ^ 0x77);
        table.put_host(&host(number, sizes.iter().sum::<u64>() + 4 + spare));
        for (n, &vcpus) in sizes.iter().enumerate() {
            let id = number * (each + 1) + n as u64;
            let mut instance = instance(id, number, vcpus, true);
            instance.launched_at = match ages {
                Ages::Mixed => instance.launched_at,
                Ages::Equal => Some(Timestamp::from_millis(NOW_MILLIS - 1_000_000)),
                Ages::Few => {
                    let moment = i64::try_from(below(4, id)).unwrap();
                    Some(Timestamp::from_millis(NOW_MILLIS - 500_000 * (moment + 1)))
                }
            };
            table.put_instance(&instance).unwrap();
        }
        let id = number * (each + 1) + each;
        table.put_instance(&instance(id, number, 4, false)).unwrap();
    }
    table
}

/// Hosts of two sizes with normal and preemptible instances, and room on most.
fn roomy(hosts: u64) -> HostTable {
    let mut table = HostTable::new();
    let mut id = 0;
    for number in 0..hosts {
        let vcpus = [64, 96][usize::try_from(below(2, number ^ 0x5)).unwrap()];
        table.put_host(&host(number, vcpus));
        let mut left = vcpus - below(vcpus / 2, number ^ 0x9);
        while left >= 8 {
            let size = [1, 2, 4, 8][usize::try_from(below(4, id)).unwrap()];
            left -= size;
            table
                .put_instance(&instance(id, number, size, below(2, id ^ 0x3) == 0))
                .unwrap();
            id += 1;
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
            name: format!("m{vcpus}"),
            vcpus,
            ram_mb: 2048 * vcpus,
            disk_gb: 20 * vcpus,
            extra_specs: BTreeMap::new(),
        },
        availability_zone: None,
        group_id: None,
        ignore_hosts: Vec::new(),
        force_hosts: Vec::new(),
        alternates: 0,
    }
}

fn measure(what: &str, table: &HostTable, requests: usize, sizes: &[u32]) {
    several(what, table, requests, sizes, 1, "partial_hour");
}

fn several(
    what: &str,
    table: &HostTable,
    requests: usize,
    sizes: &[u32],
    servers: u128,
    module: &str,
) {
    let config = EngineConfig {
        cost_module: module.to_owned(),
        ..EngineConfig::default()
    };
    let engine = Engine::new(config).unwrap();
    let id = DecisionId(Uuid::from_u128(3));
    let budgets = Budgets::unlimited();
    let mut times: Vec<Duration> = Vec::new();
    let (mut victims, mut optimal) = (0, true);
    for n in 0..requests + 3 {
        let mut request = request(sizes[n % sizes.len()]);
        request.server_ids = (0..servers)
            .map(|n| ServerId(Uuid::from_u128(n + 1)))
            .collect();
        let now = Timestamp::from_millis(NOW_MILLIS + 977 * i64::try_from(n).unwrap());
        let decide = || {
            let start = Instant::now();
            let decision = engine.decide(table, &budgets, &request, now, 0, id);
            (start.elapsed(), decision.unwrap())
        };
        let (_, decision) = decide();
        let shortest = (0..5).map(|_| decide().0).min();
        times.extend(shortest.filter(|_| n >= 3));
        assert!(
            matches!(decision.outcome, DecisionOutcome::Placed(_)),
            "no host"
        );
        victims += decision.victims().count();
        optimal &= decision.explanation.optimal;
    }
    times.sort_unstable();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)].as_micros();
    println!(
        "{what:28} {} hosts {:>8} instances  p50 {:>7} us  p99 {:>7} us  victims {:.1} exact {optimal}",
        table.len(),
        table.instance_count(),
        at(50),
        at(99),
        victims as f64 / (requests + 3) as f64,
    );
}

/// Resident memory of this process in KiB, where the system tells.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn main() {
    let mut words = std::env::args().skip(1).peekable();
    let joint = words.next_if(|word| word == "joint").is_some();
    let mut arguments = words.map(|n| n.parse::<u64>().unwrap());
    let hosts = arguments.next().unwrap_or(10_000);
    let each = arguments.next().unwrap_or(16);
    let requests = usize::try_from(arguments.next().unwrap_or(200)).unwrap();
    let before = resident_kib();
    let table = saturated(hosts, each, Ages::Mixed);
    let used = (resident_kib() - before) * 1024;
    println!("{used} bytes resident, {} a host", used / hosts);
    if joint {
        for module in ["partial_hour", "fairness"] {
            for servers in [1, 2, 4, 8, 16] {
                let what = format!("{servers} servers, {module}");
                several(&what, &table, requests, &[8], servers, module);
            }
        }
        return;
    }
    for size in [2, 4, 8, 16, 32, 48] {
        measure(
            &format!("preempting, {size} VCPUs"),
            &table,
            requests,
            &[size],
        );
    }
    measure("preempting, mixed", &table, requests, &[2, 4, 8, 16, 32]);
    drop(table);
    for (ages, what) in [(Ages::Equal, "all costs equal"), (Ages::Few, "few costs")] {
        let table = saturated(hosts, each, ages);
        measure(what, &table, requests.min(10), &[2, 4, 8, 16]);
    }
    let table = roomy(hosts);
    measure("ordinary", &table, requests, &[1, 2, 4, 8]);
}
