//! Each filter by itself: which hosts pass, and the reasons for those that do not.

use super::kit::*;
use crate::HostTable;
use ebbtide_model::{HostHealth, PlacementRequest};

/// Hosts that the filters leave, and the reasons of the filter `name`.
fn filtered(
    table: &HostTable,
    request: &PlacementRequest,
    name: &str,
) -> (Vec<String>, Vec<String>) {
    let decision = decide(table, request);
    let instance = &decision.explanation.instances[0];
    let mut left: Vec<String> = instance.ranking.iter().map(|r| r.host.clone()).collect();
    left.sort();
    let step = instance.filters.iter().find(|f| f.filter == name);
    let dropped = step.map(|s| {
        s.dropped
            .iter()
            .map(|d| format!("{}: {}", d.host, d.reason))
    });
    (left, dropped.into_iter().flatten().collect())
}

fn three() -> HostTable {
    cloud(&[("a", 4), ("b", 4), ("c", 4)], &[])
}

#[test]
fn ignored_hosts_are_dropped_and_forced_ones_kept_without_case() {
    let mut request = wants(1);
    request.ignore_hosts = vec!["A".to_owned()];
    let (left, reasons) = filtered(&three(), &request, "hosts");
    assert_eq!(left, ["b", "c"]);
    assert_eq!(reasons, ["a: the request ignores it"]);
    request.force_hosts = vec!["a".to_owned(), "B".to_owned()];
    let (left, reasons) = filtered(&three(), &request, "hosts");
    assert_eq!(left, ["b"]);
    assert_eq!(
        reasons,
        [
            "a: the request ignores it",
            "c: the request forces other hosts"
        ]
    );
}

#[test]
fn forced_hosts_skip_every_filter_but_capacity() {
    let mut table = cloud(&[("a", 4), ("b", 4)], &[normal(1, "b", 4)]);
    table.set_health("a", HostHealth::Disabled);
    table.set_health("b", HostHealth::Down);
    let mut request = wants(1).spec("trait:CUSTOM_X", "required");
    request.availability_zone = Some("elsewhere".to_owned());
    request.force_hosts = vec!["a".to_owned(), "b".to_owned()];
    let (left, reasons) = filtered(&table, &request, "capacity");
    assert_eq!(left, ["a"]);
    assert_eq!(reasons.len(), 1);
    assert!(
        reasons[0].contains("VCPU: needs 1, 0 of 4 free (normal only)"),
        "{reasons:?}"
    );
}

#[test]
fn hosts_that_are_down_or_disabled_are_dropped() {
    let mut table = three();
    table.set_health("a", HostHealth::Disabled);
    table.set_health("b", HostHealth::Down);
    let (left, reasons) = filtered(&table, &wants(1), "enabled-and-up");
    assert_eq!(left, ["c"]);
    assert_eq!(reasons, ["a: it is disabled", "b: it is down"]);
}

#[test]
fn only_hosts_of_the_zone_pass_and_hosts_without_are_in_nova() {
    let mut table = three();
    table.set_aggregates(&[
        aggregate(1, &["a", "c"], &[("availability_zone", "east")]),
        aggregate(2, &["c"], &[("availability_zone", "west")]),
        aggregate(3, &["b"], &[("ssd", "true")]),
    ]);
    for (zone, expected) in [
        ("east", vec!["a", "c"]),
        ("west", vec!["c"]),
        ("nova", vec!["b"]),
        ("East", vec![]),
    ] {
        let mut request = wants(1);
        request.availability_zone = Some(zone.to_owned());
        assert_eq!(
            filtered(&table, &request, "availability-zone").0,
            expected,
            "{zone}"
        );
    }
    let mut request = wants(1);
    request.availability_zone = Some("east".to_owned());
    let (_, reasons) = filtered(&table, &request, "availability-zone");
    assert_eq!(reasons, ["b: it is in zone nova"]);
}

#[test]
fn aggregates_have_to_match_every_demand() {
    let mut table = three();
    table.set_aggregates(&[
        aggregate(1, &["a"], &[("ssd", "true"), ("cores", "16")]),
        aggregate(2, &["b"], &[("ssd", "false, true"), ("cores", "8")]),
        aggregate(3, &["b"], &[("cores", "32, many")]),
    ]);
    for (key, demand, expected) in [
        ("ssd", "true", vec!["a", "b"]),
        ("ssd", "false", vec!["b"]),
        ("cores", ">= 16", vec!["a", "b"]),
        ("cores", "<= 8", vec!["b"]),
        ("cores", "== 32", vec!["b"]),
        ("cores", "<or> 16 <or> 64", vec!["a"]),
        ("cores", "<or>", vec![]),
        ("gpu", "true", vec![]),
    ] {
        let spec = format!("aggregate_instance_extra_specs:{key}");
        let request = wants(1).spec(&spec, demand);
        assert_eq!(
            filtered(&table, &request, "aggregates").0,
            expected,
            "{key} {demand}"
        );
    }
    let request = wants(1).spec("aggregate_instance_extra_specs:ssd", "false");
    let (_, reasons) = filtered(&table, &request, "aggregates");
    assert_eq!(
        reasons,
        [
            r#"a: ssd must match "false", its aggregates say "true""#,
            r#"c: ssd must match "false", and none of its aggregates has the key"#
        ]
    );
}

#[test]
fn required_traits_are_there_and_forbidden_ones_are_not() {
    let mut table = three();
    for (position, (name, traits)) in [
        ("a", vec!["HW_GPU"]),
        ("b", vec!["HW_GPU", "CUSTOM_OLD"]),
        ("c", vec![]),
    ]
    .into_iter()
    .enumerate()
    {
        let mut host = host(name, i64::try_from(position).unwrap(), 4);
        host.traits = traits.into_iter().map(|t| t.parse().unwrap()).collect();
        table.put_host(&host);
    }
    let request = wants(1)
        .spec("trait:HW_GPU", "required")
        .spec("trait:CUSTOM_OLD", "forbidden");
    let (left, reasons) = filtered(&table, &request, "traits");
    assert_eq!(left, ["a"]);
    assert_eq!(
        reasons,
        [
            "b: it has CUSTOM_OLD, which is forbidden",
            "c: it has no HW_GPU, which is required"
        ]
    );
}

#[test]
fn capacity_is_that_of_the_state_that_the_request_sees() {
    let table = cloud(&[("a", 8)], &[normal(1, "a", 5), spot(2, "a", 2, 0)]);
    for (request, reason) in [
        (wants(4), "VCPU: needs 4, 3 of 8 free (normal only)"),
        (wants(2).preemptible(), "VCPU: needs 2, 1 of 8 free (all)"),
    ] {
        let (left, reasons) = filtered(&table, &request, "capacity");
        assert!(left.is_empty());
        assert!(reasons[0].contains(reason), "{reasons:?}");
    }
}

#[test]
fn filters_stop_after_the_first_that_leaves_nothing() {
    let mut table = three();
    for name in ["a", "b", "c"] {
        table.set_health(name, HostHealth::Down);
    }
    let decision = decide(&table, &wants(99));
    let names: Vec<&str> = decision.explanation.instances[0]
        .filters
        .iter()
        .map(|f| f.filter.as_str())
        .collect();
    assert_eq!(names, ["hosts", "enabled-and-up"]);
}

#[test]
fn hosts_that_take_a_flavor_are_those_that_an_instance_of_it_could_be_on_if_they_were_empty() {
    let mut table = cloud(
        &[("a", 4), ("b", 4), ("c", 4), ("d", 4)],
        &[normal(1, "a", 4)],
    );
    let aggregate = aggregate(1, &["a", "b", "d"], &[("disk", "ssd")]);
    table.set_aggregates(&[aggregate]);
    table.set_health("b", HostHealth::Down);
    let mut request = wants(1);
    assert_eq!(
        table.hosts_that_take(&request.flavor).unwrap(),
        ["a", "c", "d"]
    );
    let spec = "aggregate_instance_extra_specs:disk".to_owned();
    request.flavor.extra_specs.insert(spec, "ssd".to_owned());
    // The full one is among them.
    assert_eq!(table.hosts_that_take(&request.flavor).unwrap(), ["a", "d"]);
    let (left, _) = filtered(&table, &request, "aggregates");
    assert_eq!(left, ["d"]);
    let spec = "trait:HW_CPU_X86_AVX2".to_owned();
    request
        .flavor
        .extra_specs
        .insert(spec, "required".to_owned());
    assert!(table.hosts_that_take(&request.flavor).unwrap().is_empty());
    let spec = "trait:HW_GPU".to_owned();
    request
        .flavor
        .extra_specs
        .insert(spec, "perhaps".to_owned());
    table.hosts_that_take(&request.flavor).unwrap_err();
}
