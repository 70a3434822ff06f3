//! Messages that are not what they should be: each is refused with its place, and none makes us
//! panic.

use super::kit::{at, json, lines, ordered};
use ebbtide_nova::model::{AllocationCandidate, NetworkMetadata};
use ebbtide_nova_objects::notification::{legacy_payload_after_versioned, versioned_payload};
use ebbtide_nova_objects::{
    DeleteInstanceInfo, NumaLimits, RpcContext, ScheduleRequest, SelectDestinations, Selection,
    SyncInstanceInfo, UpdateInstanceInfo, Value, read_aggregate, read_delete_aggregate, read_reply,
    read_update_aggregates, reply,
};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

/// A request of Nova 34 with everything in it that a request can have.
fn rich() -> Json {
    let lines = lines("requests.jsonl.gz");
    let wanted = |data: &Json| {
        !data["instance_group"].is_null()
            || data["requested_resources"]
                .as_array()
                .is_some_and(|all| !all.is_empty())
    };
    let mut merged: Option<Json> = None;
    for line in lines.iter().take(100) {
        let wire = json(at(&ordered(line), "wire"));
        let Some(merged) = &mut merged else {
            merged = Some(wire);
            continue;
        };
        let Some(fields) = wire["nova_object.data"].as_object() else {
            continue;
        };
        for (name, value) in fields {
            let own = &mut merged["nova_object.data"][name];
            let empty = own.is_null() || own.as_array().is_some_and(Vec::is_empty);
            let here = !value.is_null() || wanted(&wire["nova_object.data"]);
            if empty && here {
                *own = value.clone();
            }
        }
    }
    merged.unwrap()
}

fn read(spec: &Json) -> Result<ScheduleRequest, String> {
    let args = json!({"spec_obj": spec, "instance_uuids": ["x"]});
    SelectDestinations::read(&(&args).into())
        .map(|call| call.request)
        .map_err(|error| error.to_string())
}

/// The request with a value put into a place; `/` in the place goes into an object, its envelope
/// included.
fn with(place: &str, value: Json) -> Json {
    let mut spec = rich();
    let mut here = &mut spec["nova_object.data"];
    let (outer, last) = place.rsplit_once('/').unwrap_or(("", place));
    for name in outer.split('/').filter(|name| !name.is_empty()) {
        here = &mut here[name]["nova_object.data"];
    }
    here[last] = value;
    spec
}

#[test]
fn an_error_names_its_place() {
    assert_eq!(read(&rich()).map(drop), Ok(()));
    let cases = [
        (
            "flavor/vcpus",
            json!(-1),
            "EB-OBJECT-001: spec_obj.flavor.vcpus: -1 is not from 0 to 2147483647",
        ),
        (
            "flavor/memory_mb",
            json!(1e300),
            "EB-OBJECT-001: spec_obj.flavor.memory_mb: is not a whole number of 64 bits",
        ),
        (
            "flavor/root_gb",
            json!(null),
            "EB-OBJECT-001: spec_obj.flavor.root_gb: null is not a whole number",
        ),
        (
            "flavor",
            json!(null),
            "EB-OBJECT-003: spec_obj.flavor: is no Flavor object: there is no envelope",
        ),
        (
            "flavor/extra_specs",
            json!({"a": ["b"]}),
            "EB-OBJECT-001: spec_obj.flavor.extra_specs.a: a list is not text",
        ),
        (
            "force_hosts",
            json!("h"),
            "EB-OBJECT-001: spec_obj.force_hosts: text is not a list",
        ),
        (
            "force_hosts",
            json!(["h", null]),
            "EB-OBJECT-001: spec_obj.force_hosts[1]: null is not text",
        ),
        (
            "num_instances",
            json!("many"),
            "EB-OBJECT-001: spec_obj.num_instances: is not a whole number of 64 bits",
        ),
        (
            "numa_topology/cells",
            json!([1]),
            "EB-OBJECT-003: spec_obj.numa_topology.cells[0]: is no InstanceNUMACell object: there is no envelope",
        ),
        (
            "image/properties",
            json!({"nova_object.name": "Flavor"}),
            "EB-OBJECT-003: spec_obj.image.properties: is no ImageMetaProps object: it is a Flavor",
        ),
    ];
    for (place, value, message) in cases {
        assert_eq!(read(&with(place, value)).map(drop), Err(message.to_owned()));
    }
    let missing = json!({"nova_object.name": "RequestSpec", "nova_object.version": "1.14", "nova_object.data": {}});
    assert_eq!(
        read(&missing).map(drop),
        Err("EB-OBJECT-002: spec_obj.flavor: is missing".to_owned())
    );
    let unknown = SelectDestinations::read(&(&json!({"x": 1})).into()).unwrap_err();
    assert_eq!(
        (unknown.fault().class, unknown.wrong.to_string().as_str()),
        (
            "TypeError",
            "SchedulerManager.select_destinations() got an unexpected keyword argument 'x'"
        )
    );
}

#[test]
fn newer_minor_versions_are_read_and_other_major_ones_refused() {
    let mut newer = with("a_field_of_tomorrow", json!({"x": [1]}));
    newer["nova_object.version"] = "1.99".into();
    newer["nova_object.data"]["flavor"]["nova_object.version"] = "1.7".into();
    newer["nova_object.data"]["flavor"]["nova_object.data"]["tomorrow"] = json!(true);
    let (now, then) = (read(&rich()).unwrap(), read(&newer).unwrap());
    assert_eq!(now.spec, then.spec);
    for version in ["2.0", "0.1", "1", "1.x", "", "99999999999.1"] {
        let mut spec = rich();
        spec["nova_object.version"] = version.into();
        let args = json!({"spec_obj": spec});
        let error = SelectDestinations::read(&(&args).into()).unwrap_err();
        assert_eq!(
            (error.code(), error.fault().class),
            ("EB-OBJECT-004", "IncompatibleObjectVersion"),
            "{version}"
        );
    }
}

#[test]
fn unset_and_null_differ_where_nova_makes_a_difference() {
    let mut unset = rich();
    let fields = unset["nova_object.data"].as_object_mut().unwrap();
    for name in [
        "scheduler_hints",
        "network_metadata",
        "requested_networks",
        "instance_group",
    ] {
        fields.remove(name);
    }
    fields["flavor"]["nova_object.data"]
        .as_object_mut()
        .unwrap()
        .remove("extra_specs");
    let unset = read(&unset).unwrap();
    // Unset hints are none; null ones break every request in Nova, and the model says so.
    assert_eq!(unset.spec.scheduler_hints, Some(Default::default()));
    assert_eq!(
        read(&with("scheduler_hints", json!(null)))
            .unwrap()
            .spec
            .scheduler_hints,
        None
    );
    assert_eq!(unset.spec.flavor.extra_specs, None);
    assert_eq!(
        (unset.spec.network_metadata, unset.requested_networks),
        (None, None)
    );
    let group = |data: Json| json!({"nova_object.name": "InstanceGroup", "nova_object.version": "1.11", "nova_object.data": data});
    let without_hosts = read(&with(
        "instance_group",
        group(json!({"uuid": "g", "policy": "affinity"})),
    ))
    .unwrap();
    assert!(without_hosts.group_hosts_unset);
    let old = group(json!({"uuid": "g", "policies": ["anti-affinity"], "hosts": []}));
    let old = read(&with("instance_group", old)).unwrap();
    assert_eq!(old.spec.instance_group.unwrap().policy, "anti-affinity");
    assert!(!old.group_hosts_unset);
}

#[test]
fn a_cell_of_before_pinned_cpus_had_a_set_of_their_own_is_read_by_its_policy() {
    let cell = |policy: &str| {
        json!([{"nova_object.name": "InstanceNUMACell", "nova_object.version": "1.4", "nova_object.data":
            {"id": 0, "cpuset": [1, 0], "memory": 512, "cpu_policy": policy, "cpu_pinning_raw": {"0": 4, "1": 5}}}])
    };
    let topology = |policy: &str| {
        let object = json!({"nova_object.name": "InstanceNUMATopology", "nova_object.version": "1.3",
            "nova_object.data": {"cells": cell(policy)}});
        read(&with("numa_topology", object))
            .unwrap()
            .spec
            .numa_topology
            .unwrap()
            .cells
            .remove(0)
    };
    let (pinned, floating) = (topology("dedicated"), topology("shared"));
    assert_eq!((pinned.cpuset.len(), pinned.pcpuset.len()), (0, 2));
    assert_eq!((floating.cpuset.len(), floating.pcpuset.len()), (2, 0));
    assert_eq!(pinned.cpu_pinning, Some(vec![(0, 4), (1, 5)]));
}

#[test]
fn the_dictionaries_of_an_old_caller_are_read() {
    let args = json!({
        "request_spec": {
            "image": {"id": "i", "disk_format": "raw", "properties": {"hw_cpu_cores": "2"}},
            "instance_properties": {"uuid": "u1", "project_id": "p", "user_id": "u"},
            "instance_type": {"name": "f", "flavorid": "1", "vcpus": 2, "memory_mb": 4, "root_gb": 1, "extra_specs": {"a": "b"}},
            "num_instances": 2,
        },
        "filter_properties": {
            "force_hosts": ["h"], "limits": {"vcpu": 3}, "scheduler_hints": {"group": "g"},
            "group_updated": true, "group_policies": ["affinity"], "group_hosts": ["h"], "group_members": ["m"],
            "retry": {"num_attempts": 1, "hosts": [["h1", "n1"]]},
        },
        "return_alternates": true,
    });
    let call = SelectDestinations::read(&(&args).into()).unwrap();
    let spec = &call.request.spec;
    assert_eq!(
        (call.count(), call.return_objects, call.return_alternates),
        (2, false, false)
    );
    assert_eq!((spec.flavor.vcpus, spec.instance_uuid.as_str()), (2, "u1"));
    assert_eq!(spec.hint("group"), Some(&["g".to_owned()][..]));
    assert_eq!(spec.instance_group.as_ref().unwrap().policy, "affinity");
    assert_eq!(spec.limits["vcpu"], json!(3));
    assert_eq!(
        call.request.retry.unwrap().hosts,
        [("h1".to_owned(), "n1".to_owned())]
    );
    let nothing = SelectDestinations::read(&(&json!({"request_spec": {}})).into()).unwrap_err();
    assert_eq!(nothing.path, "request_spec.instance_type");
}

fn selection(numa: bool, claimed: bool) -> Selection {
    let candidate = AllocationCandidate {
        allocations: json!({"rp": {"resources": {"VCPU": 1}}}),
        mappings: json!({"": ["rp"]}),
    };
    Selection {
        compute_node_uuid: Some("25cec479-0807-4193-af45-6f20b3150bf1".to_owned()),
        service_host: "compute1".to_owned(),
        nodename: "nöde".to_owned(),
        cell_uuid: "40524efc-ecb9-42a7-b321-b93fe1ace751".to_owned(),
        numa_limits: numa.then(|| NumaLimits {
            cpu_allocation_ratio: 16.0,
            ram_allocation_ratio: 1.5,
            network_metadata: Some(NetworkMetadata {
                physnets: ["a".to_owned(), "b".to_owned()].into(),
                tunneled: true,
            }),
        }),
        allocation_request: claimed.then_some(candidate),
        availability_zone: "nova".to_owned(),
    }
}

#[test]
fn all_four_limits_are_there_and_null() {
    let limits = &selection(false, true).to_json()["nova_object.data"]["limits"];
    assert_eq!(
        limits["nova_object.data"],
        json!({"numa_topology": null, "vcpu": null, "disk_gb": null, "memory_mb": null})
    );
    let data = selection(true, false).to_json()["nova_object.data"].clone();
    assert_eq!(data["allocation_request"], json!("null"));
    assert_eq!(data["allocation_request_version"], json!(null));
    let numa = &data["limits"]["nova_object.data"]["numa_topology"];
    assert_eq!(
        numa["nova_object.data"]["cpu_allocation_ratio"],
        json!(16.0)
    );
}

#[test]
fn a_reply_is_read_as_it_was_written() {
    let all = vec![
        vec![selection(false, true), selection(true, true)],
        vec![selection(true, false)],
        Vec::new(),
    ];
    let objects = reply(&all, true);
    assert_eq!(read_reply(&(&objects).into()).unwrap(), all);
    let old = reply(&all, false);
    assert_eq!(
        old[0],
        json!({"host": "compute1", "nodename": "nöde", "limits": {}})
    );
    assert_eq!(
        old[1]["limits"]["numa_topology"]["nova_object.name"],
        json!("NUMATopologyLimits")
    );
    // These lines were checked once with Nova's own code, with `nova_objects.py read`. Repeat that
    // check after every change of the written form.
    if let Some(path) = std::env::var_os("EBBTIDE_WRITE_SELECTIONS") {
        std::fs::write(path, format!("{objects}\n{old}\n")).unwrap();
    }
}

/// Any JSON, with the names in it that readers look for.
fn any_json() -> impl Strategy<Value = Json> {
    let name = prop_oneof![
        Just("nova_object.name".to_owned()),
        Just("nova_object.data".to_owned()),
        Just("nova_object.version".to_owned()),
        Just("spec_obj".to_owned()),
        Just("request_spec".to_owned()),
        Just("filter_properties".to_owned()),
        Just("instance_info".to_owned()),
        Just("aggregates".to_owned()),
        Just("flavor".to_owned()),
        Just("objects".to_owned()),
        ".{0,4}",
    ];
    let word = prop_oneof![
        Just("RequestSpec".to_owned()),
        Just("Flavor".to_owned()),
        Just("InstanceList".to_owned()),
        Just("1.14".to_owned()),
        Just("2.6".to_owned()),
        Just("-".to_owned()),
        ".{0,6}",
    ];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        word.prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map(name.clone(), inner, 0..5)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

fn read_everything(value: &Json) {
    let value: Value = value.into();
    if let Ok(call) = SelectDestinations::read(&value) {
        assert!(
            call.count() >= 0
                && !(call.is_rebuild() && call.request.spec.scheduler_hints.is_none())
        );
    }
    drop(UpdateInstanceInfo::read(&value));
    drop(SyncInstanceInfo::read(&value));
    drop(DeleteInstanceInfo::read(&value));
    drop(read_update_aggregates(&value));
    drop(read_delete_aggregate(&value));
    drop(read_aggregate(&value));
    drop(read_reply(&value));
    let context = RpcContext::read(&value).unwrap_or_default();
    if let Ok(request) = ScheduleRequest::read(&value) {
        let told = (
            versioned_payload(&request),
            legacy_payload_after_versioned(&request, &context),
        );
        assert!(told.0.is_object() && told.1.is_object());
    }
}

/// Puts a value somewhere into a tree: `path` says where by turns.
fn put(tree: &mut Json, path: &[usize], value: Json) {
    let Some((first, rest)) = path.split_first() else {
        *tree = value;
        return;
    };
    match tree {
        Json::Array(items) if !items.is_empty() => {
            let place = first % items.len();
            put(&mut items[place], rest, value);
        }
        Json::Object(entries) if !entries.is_empty() => {
            let place = first % entries.len();
            if let Some(inner) = entries.values_mut().nth(place) {
                put(inner, rest, value);
            }
        }
        _ => *tree = value,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn no_json_makes_a_reader_panic(value in any_json()) {
        read_everything(&value);
    }

    #[test]
    fn no_value_at_any_place_of_a_request_makes_a_reader_panic_or_tells_a_secret(
        value in any_json(),
        path in prop::collection::vec(any::<usize>(), 1..12),
    ) {
        let mut spec = SPEC.with(Clone::clone);
        put(&mut spec, &path, value);
        read_everything(&spec);
        if let Err(error) = read(&spec) {
            prop_assert!(error.starts_with("EB-OBJECT-"), "{error}");
            prop_assert!(!error.contains("secret"), "{error}");
        }
    }
}

thread_local! {
    static SPEC: Json = rich();
}
