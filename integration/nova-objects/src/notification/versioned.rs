//! The payload as a versioned object (`RequestSpecPayload` 1.1). It holds the name of a
//! destination's cell and not its URLs.

use super::source::{SourceObject, first_instance};
use crate::ScheduleRequest;
use crate::object::payload;
use ebbtide_nova::model::InstanceGroup;
use ebbtide_nova::python::Value;
use serde_json::{Map, Value as Json, json};

const FLAVOR: [&str; 14] = [
    "flavorid",
    "memory_mb",
    "vcpus",
    "root_gb",
    "ephemeral_gb",
    "name",
    "swap",
    "rxtx_factor",
    "vcpu_weight",
    "disabled",
    "is_public",
    "extra_specs",
    "projects",
    "description",
];

const IMAGE: [&str; 17] = [
    "id",
    "name",
    "status",
    "visibility",
    "protected",
    "checksum",
    "owner",
    "size",
    "virtual_size",
    "container_format",
    "disk_format",
    "created_at",
    "updated_at",
    "tags",
    "direct_url",
    "min_ram",
    "min_disk",
];

/// The one image property that Nova keeps to itself.
const UNTOLD: &str = "hw_ephemeral_encryption_secret_uuid";

const NUMA_CELL: [&str; 9] = [
    "id",
    "cpuset",
    "pcpuset",
    "cpuset_reserved",
    "memory",
    "pagesize",
    "cpu_pinning_raw",
    "cpu_policy",
    "cpu_thread_policy",
];

const PCI_REQUEST: [&str; 5] = ["count", "spec", "alias_name", "request_id", "numa_policy"];

const GROUP: [&str; 5] = ["uuid", "name", "user_id", "project_id", "policies"];

/// The RequestSpecPayload of both notifications. What the scheduler changes while it works (the
/// instance, the hosts of the group, the node of the destination) is taken from the request, the
/// rest from the message.
#[must_use]
pub fn versioned_payload(request: &ScheduleRequest) -> Json {
    let spec = &request.spec;
    let field = |name: &str| SourceObject::of(request.wire.fields()?.get(name)?);
    let object = |name: &str, write: &dyn Fn(&SourceObject<'_>) -> Json| {
        field(name).map_or(Json::Null, |source| write(&source))
    };
    let head = |list: &Option<Vec<String>>| json!(list.as_ref().and_then(|list| list.first()));
    let first = first_instance(request);
    let group = spec
        .instance_group
        .as_ref()
        .map(|group| server_group(group, field("instance_group").as_ref()));
    let data = [
        ("instance_uuid", json!(spec.instance_uuid)),
        ("project_id", json!(spec.project_id)),
        ("user_id", json!(spec.user_id)),
        ("availability_zone", json!(spec.availability_zone)),
        (
            "flavor",
            object("flavor", &|flavor| {
                payload("FlavorPayload", "1.4", flavor.pick(&FLAVOR))
            }),
        ),
        ("force_hosts", head(&spec.force_hosts)),
        ("force_nodes", head(&spec.force_nodes)),
        ("ignore_hosts", json!(spec.ignore_hosts)),
        ("instance_group", json!(group)),
        ("image", object("image", &image)),
        (
            "numa_topology",
            object("numa_topology", &|topology| numa_topology(topology, first)),
        ),
        (
            "pci_requests",
            object("pci_requests", &|requests| pci_requests(requests, first)),
        ),
        ("num_instances", spec.num_instances.into()),
        ("requested_destination", destination(request)),
        ("retry", retry(request)),
        ("scheduler_hints", json!(spec.scheduler_hints)),
        (
            "security_groups",
            object("security_groups", &security_groups),
        ),
    ];
    let mut data: Map<String, Json> = data
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    if data["security_groups"].is_null() {
        data.insert("security_groups".to_owned(), json!([]));
    }
    payload("RequestSpecPayload", "1.1", data)
}

fn image(image: &SourceObject<'_>) -> Json {
    let mut data = image.pick(&IMAGE);
    let properties = image.object("properties");
    let minor = properties
        .as_ref()
        .map_or(0, |properties| properties_payload_minor(properties.minor()));
    let fields = properties.map_or_else(Map::new, |properties| {
        let names = properties.fields.keys().map(String::as_str);
        let names: Vec<&str> = names.filter(|name| *name != UNTOLD).collect();
        properties.pick(&names)
    });
    let properties = payload("ImageMetaPropsPayload", &format!("1.{minor}"), fields);
    data.insert("properties".to_owned(), properties);
    payload("ImageMetaPayload", "1.0", data)
}

/// The payload's minor version follows that of ImageMetaProps; two of its changes were forgotten
/// there (1.36 and 1.37).
fn properties_payload_minor(minor: u32) -> u32 {
    match minor {
        0..36 => minor.saturating_sub(22),
        36 | 37 => 13,
        _ => minor - 24,
    }
}

fn numa_topology(topology: &SourceObject<'_>, instance_uuid: &str) -> Json {
    let cell = |cell: SourceObject<'_>| {
        let mut data = cell.pick(&NUMA_CELL);
        let threads = cell.object("cpu_topology").map(|topology| {
            let data = topology.pick(&["sockets", "cores", "threads"]);
            payload("VirtCPUTopologyPayload", "1.0", data)
        });
        data.insert("cpu_topology".to_owned(), json!(threads));
        payload("InstanceNUMACellPayload", "1.2", data)
    };
    let cells: Vec<Json> = topology.items("cells").map(cell).collect();
    let mut data = topology.pick(&["emulator_threads_policy"]);
    data.insert("cells".to_owned(), cells.into());
    with_instance(topology, data, instance_uuid, "InstanceNUMATopologyPayload")
}

fn pci_requests(requests: &SourceObject<'_>, instance_uuid: &str) -> Json {
    let request = |request: SourceObject<'_>| {
        payload(
            "InstancePCIRequestPayload",
            "1.1",
            request.pick(&PCI_REQUEST),
        )
    };
    let all: Vec<Json> = requests.items("requests").map(request).collect();
    let mut data = Map::new();
    data.insert("requests".to_owned(), all.into());
    with_instance(requests, data, instance_uuid, "InstancePCIRequestsPayload")
}

/// Their own instance, or that of the request.
fn with_instance(
    source: &SourceObject<'_>,
    mut data: Map<String, Json>,
    instance_uuid: &str,
    name: &str,
) -> Json {
    let own = match source.fields.get("instance_uuid") {
        Some(Value::Str(own)) => own,
        _ => instance_uuid,
    };
    data.insert("instance_uuid".to_owned(), own.into());
    payload(name, "1.0", data)
}

fn server_group(group: &InstanceGroup, source: Option<&SourceObject<'_>>) -> Json {
    let mut data = source.map_or_else(Map::new, |source| source.pick(&GROUP));
    for (name, value) in [
        ("uuid", json!(group.uuid)),
        ("members", json!(group.members)),
        ("hosts", json!(group.hosts)),
        ("policy", json!(group.policy)),
        ("rules", json!(group.rules)),
    ] {
        data.insert(name.to_owned(), value);
    }
    payload("ServerGroupPayload", "1.1", data)
}

fn destination(request: &ScheduleRequest) -> Json {
    let Some(destination) = &request.spec.requested_destination else {
        return Json::Null;
    };
    let mut data = Map::new();
    for (name, value) in [("host", &destination.host), ("node", &destination.node)] {
        if let Some(Some(value)) = value {
            data.insert(name.to_owned(), value.as_str().into());
        }
    }
    if let Some(cell) = &request.cell {
        let cell_data = [
            ("uuid", json!(cell.uuid)),
            ("name", json!(cell.name)),
            ("disabled", json!(cell.disabled)),
        ];
        let cell_data = cell_data.map(|(name, value)| (name.to_owned(), value));
        let cell = payload("CellMappingPayload", "2.0", cell_data.into_iter().collect());
        data.insert("cell".to_owned(), cell);
    }
    let aggregates = destination.aggregates.clone().flatten();
    data.insert("aggregates".to_owned(), json!(aggregates));
    payload("DestinationPayload", "1.0", data)
}

fn retry(request: &ScheduleRequest) -> Json {
    let Some(retry) = &request.retry else {
        return Json::Null;
    };
    let nodes: Vec<&String> = retry.hosts.iter().map(|(_, node)| node).collect();
    let mut data = Map::new();
    data.insert("num_attempts".to_owned(), retry.num_attempts.into());
    data.insert("hosts".to_owned(), json!(nodes));
    payload("SchedulerRetriesPayload", "1.0", data)
}

fn security_groups(groups: &SourceObject<'_>) -> Json {
    let identifier = |group: SourceObject<'_>| match group.fields.get("uuid") {
        Some(_) => group.json("uuid"),
        None => group.json("name"),
    };
    groups.items("objects").map(identifier).collect()
}
