//! Cells that servers hold and that their hosts do not have. What Nova makes of such a server is in
//! `integration/nova/tests/numa_pci/odd_guests.rs`.

use crate::kit::{cloud_of, compute, instance, server, settle};
use crate::needs::{cells, guest, held, options, plan_for, victims};
use ebbtide_nova::model::{InstanceNumaTopology, NumaTopology, RequestSpec};
use ebbtide_nova::numa;
use ebbtide_nova_cloud::{Cloud, CloudSettings, NoPlanReason};

/// Four pinned CPUs, which fill a cell.
fn four() -> InstanceNumaTopology {
    guest(1, 4, "dedicated", None, None)
}

/// Two servers fill the cells of a host; the first is the cheaper victim. What Nova's databases say
/// of the first one is changed.
fn full(change: impl Fn(&mut InstanceNumaTopology)) -> Cloud {
    full_on(|_| {}, change)
}

/// The same with another report of the host.
fn full_on(
    report: impl Fn(&mut Option<NumaTopology>),
    change: impl Fn(&mut InstanceNumaTopology),
) -> Cloud {
    let mut cloud = cloud_of(&[16], options(), CloudSettings::default());
    let mut topology = cells();
    let mut guests = Vec::new();
    for _ in 0..2 {
        let mut own = four();
        let nothing = numa::PciNeeds {
            requests: &[],
            stats: None,
            mapping: ebbtide_nova::pci::ProviderMapping::Groups(&[]),
        };
        assert!(numa::fit(&topology, &mut own, None, &nothing, false).unwrap());
        topology = numa::usage_with(&topology, &own).unwrap();
        guests.push(own);
    }
    change(&mut guests[0]);
    let mut facts = compute(0, 16);
    facts.row.numa_topology = Some(topology);
    report(&mut facts.row.numa_topology);
    cloud.put_compute(facts).unwrap();
    for (number, (own, minutes)) in (0..).zip(guests.into_iter().zip([10, 50])) {
        let mut record = instance(number, 0, 4, minutes, true);
        record.held = held(Some(own), Vec::new());
        settle(&mut cloud, record);
    }
    cloud
}

fn pinned(spec: &mut RequestSpec) {
    spec.numa_topology = Some(four());
}

#[test]
fn a_server_that_does_not_fit_the_cells_of_its_host_is_no_victim() {
    let plan = plan_for(&full(|_| {}), 1, pinned).unwrap();
    assert_eq!(victims(&plan), [server(0)], "the cheaper one");
    type Change = fn(&mut InstanceNumaTopology);
    let cases: [(&str, Change); 3] = [
        ("a CPU that the host does not have", |own| {
            own.cells[0].cpu_pinning = Some(vec![(0, 99)]);
        }),
        ("a CPU that is not pinned", |own| {
            own.cells[0].cpu_pinning = Some(vec![(0, 0)]);
        }),
        ("CPUs that are pinned nowhere", |own| {
            own.cells[0].cpu_pinning = None;
        }),
    ];
    for (what, change) in cases {
        let plan = plan_for(&full(change), 1, pinned).unwrap();
        assert_eq!(victims(&plan), [server(1)], "{what}");
    }
    // In a cell that the host does not have, it frees nothing, and the other one does.
    let elsewhere = full(|own| own.cells[0].id = 7);
    let plan = plan_for(&elsewhere, 1, pinned).unwrap();
    assert_eq!(victims(&plan), [server(1)]);
}

#[test]
fn a_host_that_reports_no_cells_gets_no_plan_and_the_explanation_says_which_filter_refuses() {
    let cloud = full_on(|topology| *topology = None, |_| {});
    let none = plan_for(&cloud, 1, pinned).unwrap_err();
    assert_eq!(none.reason, NoPlanReason::NotEnoughVictims);
    let told = format!("{:?}", none.explanation);
    assert!(
        told.contains("NUMATopologyFilter refuses the host"),
        "{told}"
    );
}
