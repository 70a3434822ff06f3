//! Requests as Nova 34's own objects write them, against the model that the oracle's corpus gives.

use super::kit::{at, json, lines, normal, ordered, set_everywhere};
use ebbtide_conformance::case::Case;
use ebbtide_nova::model::{Options, RequestSpec};
use ebbtide_nova::placement::{self, QueryContext};
use ebbtide_nova_objects::notification::{legacy_payload, versioned_payload};
use ebbtide_nova_objects::{RpcContext, ScheduleRequest, SelectDestinations, Value};
use serde_json::{Value as Json, json};

fn vectors() -> impl Iterator<Item = Value> {
    lines("requests.jsonl.gz")
        .into_iter()
        .map(|line| ordered(&line))
}

#[test]
fn a_request_that_nova_wrote_is_the_one_that_decisions_are_checked_with() {
    let mut count = 0;
    for line in vectors() {
        let case = Case::from_value(at(&line, "case")).unwrap();
        let mut expected = case.request_spec().unwrap();
        // Null limits and no limits are one on the wire, and this one is a limit of the host's
        // alone.
        expected
            .limits
            .retain(|name, limit| !limit.is_null() && name != "numa_topology");
        let read = ScheduleRequest::read(at(&line, "wire"))
            .unwrap_or_else(|error| panic!("{}: {error}", case.id));
        let mut spec = read.spec;
        // The corpus has neither, and another test looks at them.
        spec.level = Default::default();
        for group in &mut spec.requested_resources {
            group.aggregates.clear();
            group.forbidden_aggregates.clear();
            group.in_tree = None;
        }
        // Image properties have no order of their own.
        let image = |spec: &mut RequestSpec| spec.image.take();
        let (ours, theirs) = (image(&mut spec), image(&mut expected));
        assert_eq!(ours.is_some(), theirs.is_some());
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            assert_eq!(
                (&ours.id, &ours.name, &ours.disk_format),
                (&theirs.id, &theirs.name, &theirs.disk_format)
            );
            let ours: Vec<_> = ours.properties.iter().collect();
            assert_eq!(
                ours,
                theirs.properties.iter().collect::<Vec<_>>(),
                "{}",
                case.id
            );
        }
        assert_eq!(spec, expected, "{}", case.id);
        count += 1;
    }
    assert_eq!(count, 700);
}

#[test]
fn what_the_door_needs_besides_is_read() {
    let (mut levels, mut networks, mut retries, mut ids, mut places) = (0, 0, 0, 0, 0);
    for line in vectors() {
        let read = ScheduleRequest::read(at(&line, "wire")).unwrap();
        let added = json(at(&line, "added"));
        if let Some(level) = added.get("level") {
            assert_eq!(
                json!({"root_required": read.spec.level.root_required, "root_forbidden": read.spec.level.root_forbidden,
                    "same_subtree": read.spec.level.same_subtree}),
                *level
            );
            levels += 1;
        } else {
            assert_eq!(read.spec.level, Default::default());
        }
        if let Some(expected) = added.get("networks") {
            let all: Vec<Json> = read
                .requested_networks
                .unwrap()
                .iter()
                .map(|network| json!([network.network_id, network.port_id, network.tag]))
                .collect();
            assert_eq!(Json::from(all), *expected);
            networks += 1;
        }
        if let Some(retry) = added.get("retry") {
            let read = read.retry.unwrap();
            assert_eq!(json!([read.num_attempts, read.hosts]), *retry);
            retries += 1;
        }
        assert_eq!(read.id, added.get("id").and_then(Json::as_i64));
        ids += usize::from(read.id.is_some());
        let groups = &read.spec.requested_resources;
        places += groups
            .iter()
            .filter(|group| group.in_tree.is_some() && group.aggregates.len() == 2)
            .count();
    }
    for (what, count) in [
        ("levels", levels),
        ("networks", networks),
        ("retries", retries),
        ("ids", ids),
    ] {
        assert!(count >= 50, "{what}: {count}");
    }
    assert!(places >= 5, "{places}");
}

/// The parameters of a query that ports bring: of groups with a suffix, and which groups stay
/// together.
fn of_ports(query: &str) -> Vec<&str> {
    let own = |parameter: &&str| {
        let name = parameter.split('=').next().unwrap_or_default();
        let suffixed = ["member_of", "in_tree", "required", "resources"]
            .iter()
            .any(|prefix| name.len() > prefix.len() && name.starts_with(prefix));
        suffixed || name == "same_subtree"
    };
    query.split('&').filter(own).collect()
}

#[test]
fn placement_is_asked_for_what_ports_bring_as_nova_asks() {
    let options = Options::default();
    let world = QueryContext {
        aggregates: &[],
        nodes: &[],
        min_compute_version: 0,
        options: &options,
    };
    let (mut compared, mut together) = (0, 0);
    for line in vectors() {
        let mut spec = ScheduleRequest::read(at(&line, "wire")).unwrap().spec;
        // No host is known here, and hints of null fail before the query is there.
        (
            spec.force_hosts,
            spec.force_nodes,
            spec.requested_destination,
        ) = (None, None, None);
        let asked = placement::query(&spec, &world);
        let Some(ours) = &asked.query else {
            continue;
        };
        let theirs = at(&line, "query").text();
        assert_eq!(of_ports(ours), of_ports(&theirs), "{ours}\n{theirs}");
        compared += usize::from(ours.contains("in_tree"));
        together += usize::from(ours.contains("same_subtree="));
    }
    assert!(compared >= 5 && together >= 50, "{compared} {together}");
}

#[test]
fn notifications_are_those_that_nova_makes() {
    let context = RpcContext::read(&(&json!({"request_id": "req-1"})).into()).unwrap();
    for line in vectors() {
        let read = ScheduleRequest::read(at(&line, "wire")).unwrap();
        assert_eq!(
            normal(&versioned_payload(&read)),
            normal(&json(at(&line, "versioned")))
        );
        let mut legacy = legacy_payload(&read, &context);
        set_everywhere(&mut legacy, "_context", &"CONTEXT".into());
        assert_eq!(
            normal(&legacy["request_spec"]),
            normal(&json(at(&line, "legacy")))
        );
    }
}

#[test]
fn an_object_inside_the_dictionaries_of_an_old_caller_reads_as_in_a_new_request() {
    let mut count = 0;
    for line in vectors() {
        let wire = at(&line, "wire");
        let data = at(wire, "nova_object.data");
        let new = ScheduleRequest::read(wire).unwrap();
        let field = |name: &str| json(at(data, name));
        let args = json!({
            "request_spec": {
                "num_instances": field("num_instances"),
                "image": field("image"),
                "instance_type": field("flavor"),
                "instance_properties": {
                    "uuid": field("instance_uuid"),
                    "project_id": field("project_id"),
                    "user_id": field("user_id"),
                    "availability_zone": field("availability_zone"),
                    "pci_requests": field("pci_requests"),
                    "numa_topology": field("numa_topology").as_object().map(|topology| json!(topology).to_string()),
                },
            },
            "filter_properties": {
                "ignore_hosts": field("ignore_hosts"),
                "force_hosts": field("force_hosts"),
                "force_nodes": field("force_nodes"),
                "limits": field("limits"),
                "instance_group": field("instance_group"),
                "scheduler_hints": field("scheduler_hints"),
                "requested_destination": field("requested_destination"),
            },
        });
        let old = SelectDestinations::read(&(&args).into()).unwrap();
        let mut expected = new.spec.clone();
        // These came with the object, and serde's JSON sorts the extra specs.
        expected.requested_resources.clear();
        expected.network_metadata = None;
        expected.level = Default::default();
        expected.is_bfv = false;
        let mut spec = old.request.spec;
        spec.flavor.extra_specs = expected.flavor.extra_specs.clone();
        assert_eq!(spec, expected);
        assert_eq!(old.instance_uuids, None);
        count += 1;
    }
    assert_eq!(count, 700);
}
