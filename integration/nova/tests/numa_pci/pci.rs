use super::build::{cell, devices, host, pool, tagged};
use ebbtide_nova::model::{PciPool, PciRequest, RequestGroup};
use ebbtide_nova::pci::{PciStats, ProviderMapping, apply};
use proptest::prelude::*;
use serde_json::{Value, json};

const ANY: ProviderMapping<'static> = ProviderMapping::Groups(&[]);

fn counts(pools: &[PciPool]) -> Vec<i64> {
    pools.iter().map(|pool| pool.count).collect()
}

fn with_spec(tag: &str, value: &str, mut request: PciRequest) -> PciRequest {
    for spec in &mut request.spec {
        spec.insert(tag.to_owned(), json!(value));
    }
    request
}

/// What is left after a request that may fail, and the class of the fault.
fn take(
    pools: &[PciPool],
    requests: &[PciRequest],
    mapping: ProviderMapping<'_>,
    cells: Option<&[i64]>,
) -> (Vec<i64>, Option<&'static str>) {
    let topology = host([cell(0, 0..2), cell(1, 2..4), cell(2, 4..6)]);
    let mut pools = pools.to_vec();
    let done = apply(&mut pools, Some(&topology), requests, mapping, cells);
    (counts(&pools), done.err().map(|fault| fault.class))
}

#[test]
fn each_numa_policy_says_how_far_a_device_may_be() {
    let pools = [pool(Some(0), 1), pool(None, 1), pool(Some(1), 5)];
    let failed = Some("PciDeviceRequestFailed");
    for (policy, count, expected) in [
        ("required", 1, (vec![1, 5], None)),
        ("required", 2, (vec![1, 1, 5], failed)),
        ("legacy", 2, (vec![5], None)),
        ("legacy", 3, (vec![1, 1, 5], failed)),
        ("preferred", 3, (vec![4], None)),
        ("socket", 1, (vec![1, 5], None)),
        ("socket", 2, (vec![1, 1, 5], failed)),
    ] {
        let request = devices(count, Some(policy));
        let found = take(&pools, &[request], ANY, Some(&[0]));
        assert_eq!(found, expected, "{count} {policy}");
    }
}

#[test]
fn a_guest_without_numa_topology_takes_devices_from_anywhere() {
    let found = take(
        &[pool(Some(1), 2)],
        &[devices(2, Some("required"))],
        ANY,
        None,
    );
    assert_eq!(found, (vec![], None));
}

#[test]
fn special_devices_are_given_to_those_who_name_them() {
    for (tag, value) in [
        ("dev_type", "type-PF"),
        ("dev_type", "vdpa"),
        ("remote_managed", "true"),
    ] {
        let pools = [tagged(tag, value, pool(None, 1))];
        assert!(
            take(&pools, &[devices(1, None)], ANY, None).1.is_some(),
            "{value}"
        );
        let named = with_spec(tag, value, devices(1, None));
        assert_eq!(take(&pools, &[named], ANY, None), (vec![], None), "{value}");
    }
}

#[test]
fn tags_match_without_case() {
    let pools = [tagged("physical_network", "PhysNet1", pool(None, 1))];
    for (network, found) in [("physnet1", true), ("physnet2", false)] {
        let request = with_spec("physical_network", network, devices(1, None));
        assert_eq!(take(&pools, &[request], ANY, None).1.is_none(), found);
    }
}

#[test]
fn any_alternative_will_do() {
    let mut request = devices(1, None);
    let mut other = request.spec[0].clone();
    other.insert("product_id".to_owned(), json!("beef"));
    request.spec.insert(0, other);
    assert_eq!(
        take(&[pool(None, 1)], &[request], ANY, None),
        (vec![], None)
    );
}

#[test]
fn a_failed_request_keeps_what_the_ones_before_it_took() {
    let requests = [devices(1, None), devices(5, None)];
    let found = take(&[pool(None, 3)], &requests, ANY, None);
    assert_eq!(found, (vec![2], Some("PciDeviceRequestFailed")));
}

#[test]
fn devices_come_from_the_providers_that_placement_chose() {
    let pools = [
        tagged("rp_uuid", "left", pool(None, 4)),
        tagged("rp_uuid", "right", pool(None, 4)),
    ];
    let mappings = json!({"": ["root"], "nic-request-0": ["right"], "nic-request-1": ["right"], "gpu-0": ["left"]});
    let chosen = ProviderMapping::Candidate(&mappings);
    assert_eq!(
        take(&pools, &[devices(2, None)], chosen, None),
        (vec![4, 2], None)
    );
    let group = |requester: &str, provider: &str| RequestGroup {
        requester_id: Some(requester.to_owned()),
        provider_uuids: vec![provider.to_owned()],
        ..RequestGroup::default()
    };
    let groups = [
        group("nic-request-0", "left"),
        group("nic-request-1", "right"),
    ];
    let claimed = ProviderMapping::Groups(&groups);
    assert_eq!(
        take(&pools, &[devices(2, None)], claimed, None),
        (vec![3, 3], None)
    );
}

#[test]
fn one_provider_in_two_pools_serves_no_request() {
    let pools = [
        tagged("rp_uuid", "same", pool(Some(0), 4)),
        tagged("rp_uuid", "same", pool(Some(1), 4)),
    ];
    let mappings = json!({"nic-request-0": ["same"]});
    let found = take(
        &pools,
        &[devices(1, None)],
        ProviderMapping::Candidate(&mappings),
        None,
    );
    assert_eq!(found.1, Some("PciDeviceRequestFailed"));
}

#[test]
fn broken_mappings_fail_the_request_with_the_class_of_nova() {
    for (mappings, class) in [
        (json!({"nic-request-0": []}), "IndexError"),
        (json!({"nic-request-0": null}), "TypeError"),
    ] {
        let found = take(
            &[pool(None, 1)],
            &[devices(1, None)],
            ProviderMapping::Candidate(&mappings),
            None,
        );
        assert_eq!(found.1, Some(class));
    }
    let mut nameless = devices(1, None);
    nameless.request_id = None;
    let mappings = json!({"": ["root"]});
    let chosen = ProviderMapping::Candidate(&mappings);
    assert_eq!(
        take(&[pool(None, 1)], &[nameless.clone()], chosen, None).1,
        Some("TypeError")
    );
    // A port's request has no alias and takes any pool.
    nameless.alias_name = None;
    assert_eq!(
        take(&[pool(None, 1)], &[nameless], chosen, None),
        (vec![], None)
    );
}

fn some_pool() -> impl Strategy<Value = PciPool> {
    (prop::option::of(0..3i64), 1..4i64, 0..3usize).prop_map(|(node, count, kind)| {
        let dev_type = ["type-VF", "type-PF", "type-PCI"][kind];
        tagged("dev_type", dev_type, pool(node, count))
    })
}

fn some_request() -> impl Strategy<Value = PciRequest> {
    let policies = [
        None,
        Some("required"),
        Some("legacy"),
        Some("preferred"),
        Some("socket"),
    ];
    (
        1..4i64,
        prop::sample::select(policies.to_vec()),
        any::<bool>(),
    )
        .prop_map(|(count, policy, pf)| {
            let request = devices(count, policy);
            if pf {
                with_spec("dev_type", "type-PF", request)
            } else {
                request
            }
        })
}

proptest! {
    #[test]
    fn what_is_supported_can_be_taken_and_is_taken_exactly(
        pools in prop::collection::vec(some_pool(), 0..5),
        requests in prop::collection::vec(some_request(), 1..4),
        on in prop::option::of(0..3i64),
    ) {
        let topology = host([cell(0, 0..2), cell(1, 2..4), cell(2, 4..6)]);
        let cells = on.map(|id| vec![id]);
        let stats = PciStats { pools: &pools, topology: Some(&topology) };
        let supported = stats.supports(&requests, ANY, cells.as_deref()).expect("no fault");
        let (left, fault) = take(&pools, &requests, ANY, cells.as_deref());
        prop_assert_eq!(supported, fault.is_none());
        if supported {
            let wanted: i64 = requests.iter().map(|request| request.count).sum();
            let had: i64 = counts(&pools).iter().sum();
            prop_assert_eq!(left.iter().sum::<i64>(), had - wanted);
        }
        prop_assert!(left.iter().all(|count| *count > 0), "an empty pool stays: {:?}", left);
    }

    #[test]
    fn more_devices_never_make_a_request_impossible(
        pools in prop::collection::vec(some_pool(), 1..5),
        request in some_request(),
    ) {
        let requests = [request];
        let supported = |pools: &[PciPool]| {
            let stats = PciStats { pools, topology: None };
            stats.supports(&requests, ANY, None)
        };
        let before = supported(&pools);
        let mut more = pools;
        more[0].count += 1;
        if before == Ok(true) {
            prop_assert_eq!(supported(&more), Ok(true));
        }
    }
}

#[test]
fn a_mapping_of_null_is_none() {
    let nothing = Value::Null;
    let found = take(
        &[pool(None, 1)],
        &[devices(1, None)],
        ProviderMapping::Candidate(&nothing),
        None,
    );
    assert_eq!(found, (vec![], None));
}
