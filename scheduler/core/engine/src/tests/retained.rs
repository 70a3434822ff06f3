//! Servers that are stopped or hibernated when they are evacuated: their disks stay where they are.

use super::kit::*;
use crate::{ClassUsage, HostTable, Instance, InstancePhase};
use ebbtide_model::{GroupPolicy, ResourceClass};

fn usage(table: &HostTable, class: &ResourceClass) -> ClassUsage {
    let usage = table.usage("a").unwrap();
    let found = usage.classes.into_iter().find(|c| c.class == *class);
    found.unwrap()
}

fn disk(table: &HostTable) -> ClassUsage {
    usage(table, &ResourceClass::disk_gb())
}

fn wants_disk(vcpus: u32, disk_gb: u32) -> ebbtide_model::PlacementRequest {
    let mut request = wants(vcpus);
    request.flavor.disk_gb = disk_gb;
    request
}

fn stopped(instance: &Instance) -> Instance {
    Instance {
        phase: InstancePhase::Retained,
        ..instance.clone()
    }
}

#[test]
fn what_is_retained_counts_as_normal_in_every_phase() {
    for phase in [
        InstancePhase::Claimed,
        InstancePhase::Building,
        InstancePhase::Running,
        InstancePhase::Leaving,
        InstancePhase::Retained,
    ] {
        let instance = Instance {
            phase,
            ..keeper(1, "a", 3, 60, 10)
        };
        let table = cloud(&[("a", 8)], &[instance]);
        let (disk, cpu) = (
            disk(&table),
            usage(&table, &ResourceClass::vcpu()).free_full,
        );
        assert_eq!((disk.normal, disk.preemptible, disk.leaving), (60, 0, 0));
        assert_eq!((disk.free_normal, disk.free_full), (20, 20));
        assert_eq!(
            disk.claimed,
            if phase == InstancePhase::Claimed {
                60
            } else {
                0
            }
        );
        assert_eq!(
            cpu,
            if phase == InstancePhase::Retained {
                8
            } else {
                5
            }
        );
    }
}

#[test]
fn a_hibernating_victim_frees_no_disk_and_says_so() {
    let table = cloud(&[("a", 8)], &[keeper(1, "a", 8, 40, 10)]);
    let decision = decide(&table, &wants_disk(4, 40));
    assert_eq!(summary(&decision), [("a", vec![1])]);
    let victim = &placed(&decision)[0].victims[0];
    assert_eq!(victim.resources, sized(8));
    let mut after = table;
    apply(&mut after, &decision);
    assert_eq!((disk(&after).normal, disk(&after).leaving), (80, 0));
}

#[test]
fn a_request_that_needs_the_disk_never_ends_a_server_that_keeps_it() {
    // 80 GiB: 60 of them are kept whatever happens.
    let table = cloud(&[("a", 8)], &[keeper(1, "a", 2, 60, 10)]);
    let decision = decide(&table, &wants_disk(1, 40));
    let step = &decision.explanation.instances[0].filters;
    assert!(
        refused(&decision).reason.contains("capacity"),
        "h_n knows it: {step:?}"
    );

    // Another instance has the missing disk: only that one leaves, although the other is cheaper.
    let mut gives = spot(2, "a", 2, 50);
    gives.resources.set(ResourceClass::disk_gb(), 20).unwrap();
    let table = cloud(&[("a", 8)], &[keeper(1, "a", 2, 40, 1), gives]);
    assert_eq!(
        summary(&decide(&table, &wants_disk(1, 30))),
        [("a", vec![2])]
    );
}

#[test]
fn who_has_nothing_left_to_free_is_no_candidate() {
    let mut all = keeper(1, "a", 4, 10, 1);
    all.retained = all.resources.clone();
    let table = cloud(&[("a", 8)], &[all, spot(2, "a", 4, 50)]);
    assert_eq!(summary(&decide(&table, &wants(4))), [("a", vec![2])]);
    assert!(!refused(&decide(&table, &wants(5))).reason.is_empty());
}

#[test]
fn several_instances_share_victims_by_what_these_free() {
    let table = cloud(
        &[("a", 8)],
        &[keeper(1, "a", 4, 20, 10), keeper(2, "a", 4, 20, 20)],
    );
    let request = wants_disk(4, 20).times(2);
    assert_eq!(
        summary(&decide(&table, &request)),
        [("a", vec![1]), ("a", vec![2])]
    );
    let request = wants_disk(4, 21).times(2);
    assert_eq!(refused(&decide(&table, &request)).placed_before, 1);
}

#[test]
fn a_stopped_server_is_only_its_disk() {
    let mut member = keeper(1, "a", 8, 60, 10);
    member.group_id = Some(group_id(1));
    let mut table = cloud(&[("a", 8)], &[stopped(&member)]);
    table.put_group(&group(1, GroupPolicy::AntiAffinity));
    table.check_consistency().unwrap();
    let host = table.usage("a").unwrap();
    assert_eq!((host.servers, host.staying_preemptible_servers), (0, 0));
    assert_eq!((disk(&table).normal, disk(&table).free_full), (60, 20));
    assert!(usage_of_cpu_is_zero(&table));

    // It is no neighbour and no victim, and only its disk blocks other instances.
    let fits = decide(&table, &wants_disk(8, 20).joins(group_id(1)));
    assert_eq!(summary(&fits), [("a", vec![])]);
    assert!(!placed(&fits)[0].waits_for_room);
    for request in [wants_disk(1, 21), wants_disk(1, 21).preemptible()] {
        assert!(
            refused(&decide(&table, &request))
                .reason
                .contains("capacity")
        );
    }

    // It can be started again, and then its owner can delete it.
    table.put_instance(&member).unwrap();
    assert_eq!(table.usage("a").unwrap().staying_preemptible_servers, 1);
    table.check_consistency().unwrap();
    table.put_instance(&stopped(&member)).unwrap();
    assert!(table.remove_instance(member.id));
    assert_eq!((disk(&table).normal, disk(&table).free_full), (0, 80));
    table.check_consistency().unwrap();
}

fn usage_of_cpu_is_zero(table: &HostTable) -> bool {
    let cpu = usage(table, &ResourceClass::vcpu());
    (cpu.normal, cpu.preemptible, cpu.leaving) == (0, 0, 0)
}

#[test]
fn no_server_retains_more_than_it_takes() {
    let mut greedy = spot(1, "a", 2, 10);
    greedy.retained = resources(&[("MEMORY_MB", 9000), ("DISK_GB", 5)]);
    let table = cloud(&[("a", 8)], &[greedy]);
    let view = table.instance(server(1)).unwrap();
    assert_eq!(*view.retained, resources(&[("MEMORY_MB", 2000)]));
    assert_eq!(disk(&table).normal, 0);
}
