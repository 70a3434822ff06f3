//! Hosts with thousands of instances that are nearly alike. Their sums are large and the
//! differences between hosts small, so a bound that is too high by one rounding for each instance
//! skips the cheapest host.

use super::kit::*;
use crate::{Budgets, EngineConfig, HostTable, Instance};
use ebbtide_model::{Decision, PlacementRequest, Timestamp};
use proptest::prelude::*;

/// How many hosts are listed. The bounds of hosts that come after four times as many are raised by
/// prices.
const LISTED: usize = 7;

/// Instances of one size on a host.
#[derive(Debug, Clone, Copy)]
struct Alike {
    count: u32,
    vcpus: u64,
    /// Since the launch of the last.
    age_ms: i64,
    /// By how much each was launched before the next.
    step_ms: i64,
}

impl Alike {
    fn vcpus(&self) -> u64 {
        u64::from(self.count) * self.vcpus
    }
}

/// A cloud of full hosts that makes the search look at the hosts with the wrong bounds first.
struct CrowdedCloud {
    table: HostTable,
    hosts: usize,
    instances: u128,
    /// What can leave on each host, in VCPUs.
    vcpus: u64,
}

impl CrowdedCloud {
    /// With so many hosts on which one instance is large enough for every request and cannot leave,
    /// and nothing else helps: they look cheapest.
    fn new(vcpus: u64, decoys: usize) -> Self {
        let mut cloud = Self {
            table: HostTable::new(),
            hosts: 0,
            instances: 0,
            vcpus,
        };
        for _ in 0..decoys {
            let name = cloud.host(vcpus + 1);
            cloud.put_protected(&name);
            cloud.put(&name, 1, 1_000);
        }
        cloud
    }

    fn host(&mut self, vcpus: u64) -> String {
        let name = format!("h{:03}", self.hosts);
        let position = i64::try_from(self.hosts).unwrap();
        self.table.put_host(&host(&name, position, vcpus));
        self.hosts += 1;
        name
    }

    fn put(&mut self, host: &str, vcpus: u64, age_ms: i64) {
        self.instances += 1;
        let launched = Timestamp::from_millis(now().as_millis() - age_ms);
        let instance = Instance {
            launched_at: Some(launched),
            ..spot(self.instances, host, vcpus, 0)
        };
        self.table.put_instance(&instance).unwrap();
    }

    fn put_protected(&mut self, host: &str) {
        self.instances += 1;
        let instance = Instance {
            protected_until: Some(minutes_ago(-5)),
            ..spot(self.instances, host, self.vcpus, 0)
        };
        self.table.put_instance(&instance).unwrap();
    }

    /// A host whose instances are older than that, by so much.
    fn add(&mut self, kinds: &[Alike], older_ms: i64, looks_cheap: bool) -> String {
        let giant = if looks_cheap { self.vcpus } else { 0 };
        let name = self.host(self.vcpus + giant);
        if looks_cheap {
            self.put_protected(&name);
        }
        for kind in kinds {
            for nth in 0..i64::from(kind.count) {
                let age = kind.age_ms + nth * kind.step_ms + older_ms;
                self.put(&name, kind.vcpus, age);
            }
        }
        name
    }

    /// The decision of the fast way, which has to be that of the simple one.
    fn decided(&self, request: &PlacementRequest) -> Decision {
        let engine = engine(EngineConfig {
            explain_hosts: u32::try_from(LISTED).unwrap(),
            ..EngineConfig::default()
        });
        let budgets = Budgets::unlimited();
        let fast = try_decide(&engine, &self.table, &budgets, request).unwrap();
        let simple = try_decide(&engine.simple(), &self.table, &budgets, request).unwrap();
        assert_eq!(
            format!("{:?}", fast.explanation),
            format!("{:?}", simple.explanation)
        );
        assert_eq!(fast.outcome, simple.outcome);
        fast
    }
}

#[test]
fn dearer_hosts_change_nothing() {
    // Sums in single precision once put the bound of the cheapest host above its cost here, and
    // above that of the others.
    let alike = [Alike {
        count: 11_550,
        vcpus: 1,
        age_ms: 3_587_571,
        step_ms: 0,
    }];
    let request = wants(11_550);
    let mut cloud = CrowdedCloud::new(11_550, 3 * LISTED);
    let cheapest = cloud.add(&alike, 81, false);
    let before = cloud.decided(&request);
    assert_eq!(placed(&before)[0].host, cheapest);
    for older in [100, 100, 100, 100, 217, 282, 108] {
        cloud.add(&alike, older, true);
    }
    let after = cloud.decided(&request);
    assert_eq!(summary(&after), summary(&before));
    assert!(after.explanation.optimal);
}

/// Kinds of which a host has up to 16,000 instances, mostly of costs that are long sums.
fn any_kinds() -> impl Strategy<Value = Vec<Alike>> {
    let count = prop_oneof![
        3 => 2_000..5_000_u32,
        1 => 5_000..16_000_u32,
        1 => 1..2_000_u32
    ];
    let age_ms = prop_oneof![
        2 => 3_400_000..3_599_000_i64,
        1 => 0..3_600_000_i64,
        1 => 0..20_i64
    ];
    let step_ms = prop_oneof![3 => Just(0_i64), 1 => 1..3_i64, 1 => 100..10_000_i64];
    let vcpus = prop::sample::select(vec![1_u64, 1, 2, 3, 7, 8]);
    let kind = (count, vcpus, age_ms, step_ms).prop_map(|(count, vcpus, age_ms, step_ms)| Alike {
        count,
        vcpus,
        age_ms,
        step_ms,
    });
    let one = kind.clone().prop_map(|kind| vec![kind]);
    let two = (kind.clone(), kind).prop_map(|(mut one, mut other)| {
        one.count /= 2;
        other.count /= 2;
        vec![one, other]
    });
    prop_oneof![2 => one, 1 => two]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn among_thousands_of_alike_instances_the_fast_way_answers_as_the_simple_one(
        kinds in any_kinds(),
        near in prop::collection::vec(0..200_i64, LISTED),
        last in prop::collection::vec(-100..200_i64, 1..4),
        part in prop_oneof![2 => Just(1000_u64), 1 => 900..1000_u64, 1 => 1..1000_u64],
    ) {
        let vcpus: u64 = kinds.iter().map(Alike::vcpus).sum();
        let mut cloud = CrowdedCloud::new(vcpus.max(1), 3 * LISTED);
        for older in near {
            cloud.add(&kinds, older + 100, true);
        }
        for older in last {
            cloud.add(&kinds, older + 100, false);
        }
        let request = wants(u32::try_from((vcpus * part / 1000).max(1)).unwrap());
        let decision = cloud.decided(&request);
        prop_assert!(vcpus == 0 || decision.victims().count() > 0);
    }
}
