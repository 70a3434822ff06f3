//! Hosts and servers as the API shows them.

use crate::kit::{NOW, cloud_of, host_name, instance, server, service, settle};
use ebbtide_model::{HostHealth, ServerStatus};
use ebbtide_nova::model::Options;
use ebbtide_nova_cloud::CloudSettings;
use proptest::prelude::*;

/// Hosts of the cloud.
const HOSTS: u128 = 3;
/// CPUs of each.
const VCPUS: i64 = 16;

/// A server: its host, its CPUs, whether it is preemptible, whether it is leaving.
fn placed() -> impl Strategy<Value = (u128, i64, bool, bool)> {
    (0..HOSTS, 1..3i64, any::<bool>(), any::<bool>())
}

proptest! {
    #[test]
    fn a_host_is_the_sum_of_its_servers(placed in prop::collection::vec(placed(), 0..20)) {
        let hosts = [VCPUS; HOSTS as usize];
        let mut cloud = cloud_of(&hosts, Options::default(), CloudSettings::default());
        for (number, (host, vcpus, preemptible, leaving)) in (0..).zip(&placed) {
            settle(&mut cloud, instance(number, *host, *vcpus, 60, *preemptible));
            cloud.set_leaving(server(number), *leaving && *preemptible);
        }
        let views = cloud.host_summaries(NOW);
        prop_assert_eq!(views.len(), hosts.len());
        for (number, view) in (0..).zip(&views) {
            let on = |fits: fn(bool, bool) -> bool| {
                let here = placed.iter().filter(|(host, ..)| *host == number);
                let fitting = here.filter(|(.., preemptible, leaving)| fits(*preemptible, *leaving));
                fitting.fold((0, 0), |(count, sum), (_, vcpus, ..)| (count + 1, sum + vcpus))
            };
            let (normal, _) = on(|preemptible, _| !preemptible);
            let (preemptible, _) = on(|preemptible, _| preemptible);
            let (_, all) = on(|_, _| true);
            // A server that is leaving cannot be evicted once more.
            let (evictable, freeable) = on(|preemptible, leaving| preemptible && !leaving);
            prop_assert_eq!(&view.host.name, &host_name(number));
            prop_assert_eq!(view.health, HostHealth::Up);
            prop_assert_eq!(
                (view.normal_servers, view.preemptible_servers, view.usage.staying_preemptible_servers),
                (normal, preemptible, evictable)
            );
            let mut classes = view.usage.classes.iter();
            let cpus = classes.find(|class| class.class.as_str() == "VCPU").unwrap();
            prop_assert_eq!(
                (cpus.capacity, cpus.free_full, cpus.free_normal, cpus.preemptible),
                (VCPUS, VCPUS - all, VCPUS - all + freeable, freeable)
            );
            prop_assert_eq!(cpus.normal + cpus.preemptible + cpus.leaving, all);
        }
        let servers = cloud.servers();
        prop_assert_eq!(servers.len(), placed.len());
        for shown in &servers {
            prop_assert_eq!(cloud.server(shown.id.0), Some(shown.clone()));
            let (host, _, preemptible, leaving) = placed[(shown.id.0.as_u128() & 0xffff) as usize];
            prop_assert_eq!(shown.host.clone(), Some(host_name(host)));
            prop_assert_eq!(shown.is_preemptible(), preemptible);
            let evacuating = shown.status == ServerStatus::Evacuating;
            prop_assert_eq!(evacuating, preemptible && leaving);
        }
    }
}

#[test]
fn the_health_of_a_host_is_that_of_its_service() {
    let mut cloud = cloud_of(&[4, 4, 4], Options::default(), CloudSettings::default());
    let mut disabled = service(0);
    disabled.service.disabled = true;
    disabled.service.disabled_reason = Some("repair".to_owned());
    let mut forced = service(1);
    forced.service.forced_down = true;
    cloud.put_service(disabled);
    cloud.put_service(forced);
    let health = |now: i64| -> Vec<_> {
        let views = cloud.host_summaries(now).into_iter();
        views
            .map(|view| (view.health, view.host.disabled_reason))
            .collect()
    };
    let repair = (HostHealth::Disabled, Some("repair".to_owned()));
    let down = (HostHealth::Down, None);
    assert_eq!(
        health(NOW),
        [repair.clone(), down.clone(), (HostHealth::Up, None)]
    );
    // A minute after the last heartbeat it is down (`service_down_time`).
    let late = NOW - 3_000_000 + 60_000_001;
    assert_eq!(health(late), [repair, down.clone(), down]);
}

#[test]
fn the_states_of_nova_have_words_of_ours() {
    let mut cloud = cloud_of(&[64], Options::default(), CloudSettings::default());
    let states = [
        ("building", ServerStatus::Building),
        ("active", ServerStatus::Active),
        ("paused", ServerStatus::Active),
        ("rescued", ServerStatus::Active),
        ("stopped", ServerStatus::Stopped),
        ("suspended", ServerStatus::Stopped),
        ("shelved_offloaded", ServerStatus::Hibernated),
        ("soft-delete", ServerStatus::Deleting),
        ("error", ServerStatus::Error),
    ];
    for (number, (state, _)) in (0..).zip(states) {
        let mut record = instance(number, 0, 1, 60, false);
        record.vm_state = Some(state.to_owned());
        cloud.put_instance(record);
    }
    for (number, (state, word)) in (0..).zip(states) {
        let shown = cloud.server(server(number)).unwrap();
        assert_eq!(shown.status, word, "{state}");
        assert_eq!(shown.flavor.name, "m1");
    }
}
