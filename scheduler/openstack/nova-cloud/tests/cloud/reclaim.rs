//! Which servers of a reclaimed host leave, and why others stay.

use crate::kit::{self, NOW, cloud_of, host_name, instance, server, settle};
use ebbtide_engine::Budgets;
use ebbtide_model::{
    Reclaim, ReclaimDeadline, ReclaimTerms, Seconds, ServerId, StayReason, Timestamp,
};
use ebbtide_nova::model::Options;
use ebbtide_nova_cloud::{Cloud, CloudSettings};

fn now() -> Timestamp {
    Timestamp::from_millis(NOW / 1000)
}

fn reclaim() -> Reclaim {
    let terms = ReclaimTerms {
        owner: "slurm:1".to_owned(),
        reason: "job 1".to_owned(),
        deadline: ReclaimDeadline::None,
        max_cost: None,
    };
    Reclaim::new(terms, None, now())
}

/// A preemptible server of that age in minutes, which stops when it has to leave.
fn put(cloud: &mut Cloud, n: u128, minutes: i64, state: &str, locked: bool) {
    let mut record = instance(n, 0, 1, minutes, true);
    let specs = [
        ("ebbtide:preemptible", "true"),
        ("ebbtide:interruption", "stop"),
    ];
    record.flavor = kit::flavor(1, &specs);
    record.vm_state = Some(state.to_owned());
    record.locked = locked;
    settle(cloud, record);
}

fn id(n: u128) -> ServerId {
    server(n).into()
}

#[test]
fn every_server_of_the_host_leaves_or_stays_for_a_reason() {
    let settings = CloudSettings {
        protected: Seconds(600),
        ..CloudSettings::default()
    };
    let mut cloud = cloud_of(&[16, 16], Options::default(), settings);
    put(&mut cloud, 1, 30, "active", false);
    put(&mut cloud, 2, 20, "active", false);
    put(&mut cloud, 3, 5, "active", false);
    put(&mut cloud, 4, 30, "active", true);
    put(&mut cloud, 5, 30, "stopped", false);
    settle(&mut cloud, instance(6, 0, 1, 30, false));
    put(&mut cloud, 7, 30, "active", false);
    cloud.set_leaving(server(7), true);
    settle(&mut cloud, instance(8, 1, 1, 30, true));
    let host = cloud.service_host(&host_name(0)).expect("it is there");
    let plan = |silent| {
        let budgets = Budgets::unlimited();
        let plan = cloud.reclaim_plan(&host, &reclaim(), &budgets, silent, now());
        plan.unwrap()
    };
    let eviction = plan(false);
    // The cost module: the minutes of the started hour.
    assert_eq!(eviction.leave, [(id(2), 1200.0), (id(1), 1800.0)]);
    let until = now().plus(Seconds(300));
    let stay = [
        (id(3), StayReason::Protected { until }),
        (id(4), StayReason::Busy),
        (id(5), StayReason::Kept),
        (id(6), StayReason::Normal),
    ];
    assert_eq!(eviction.stay, stay);
    let unheard = plan(true);
    assert!(unheard.leave.is_empty());
    assert!(unheard.stay.contains(&(id(1), StayReason::HostSilent)));
    for n in 1..=8 {
        let may = matches!(n, 1..=3);
        assert_eq!(cloud.may_be_reclaimed(server(n), &host), may, "{n}");
    }
    assert_eq!(cloud.service_host("nowhere"), None);
    assert_eq!(cloud.name_of_service(&host), Some(host_name(0)));
}
