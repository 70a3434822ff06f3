//! The old payload: the request as dictionaries (`RequestSpec.to_legacy_request_spec_dict`).
//!
//! Nova puts whole Python objects into it. Among them are PCI requests with all their internals and
//! with the context of the request, the user's token included. Ebbtide writes the same keys, so
//! that consumers find all of them, but the token is null.

use super::source::{SourceObject, first_instance, plain};
use crate::{RpcContext, ScheduleRequest};
use ebbtide_nova::python::Value;
use ebbtide_nova::python::to_json;
use serde_json::{Map, Value as Json, json};

/// The payload of both notifications in the old form.
#[must_use]
pub fn legacy_payload(request: &ScheduleRequest, context: &RpcContext) -> Json {
    written(request, context, false)
}

/// The same after a versioned notification of this request went out: Nova's own has then left the
/// instance's UUID in the PCI requests and the NUMA topology. So it is in `.end` where both forms
/// are sent.
#[must_use]
pub fn legacy_payload_after_versioned(request: &ScheduleRequest, context: &RpcContext) -> Json {
    written(request, context, true)
}

fn written(request: &ScheduleRequest, context: &RpcContext, after_versioned: bool) -> Json {
    let spec = &request.spec;
    let field = |name: &str| request.wire.fields().and_then(|fields| fields.get(name));
    let or_empty = |value: Option<&Value>| match value {
        None | Some(Value::None) => json!({}),
        Some(value) => plain(value),
    };
    let mut instance = Map::new();
    if let Some(topology) = field("numa_topology") {
        let mut topology = plain(topology);
        if let (Json::Object(topology), true) = (&mut topology, after_versioned) {
            let uuid = || first_instance(request).into();
            topology.entry("instance_uuid").or_insert_with(uuid);
        }
        instance.insert("numa_topology".to_owned(), topology);
    }
    if let Some(requests) = field("pci_requests") {
        let mut dumped = dumped(requests, context);
        if let (Json::Object(dumped), true) = (&mut dumped, after_versioned) {
            add_instance_uuid(dumped, first_instance(request));
        }
        instance.insert("pci_requests".to_owned(), dumped);
    }
    for (name, value) in [
        ("project_id", json!(spec.project_id)),
        ("user_id", json!(spec.user_id)),
        ("availability_zone", json!(spec.availability_zone)),
        ("uuid", json!(spec.instance_uuid)),
        ("root_gb", spec.flavor.root_gb.into()),
        ("ephemeral_gb", spec.flavor.ephemeral_gb.into()),
        ("memory_mb", spec.flavor.memory_mb.into()),
        ("vcpus", spec.flavor.vcpus.into()),
    ] {
        instance.insert(name.to_owned(), value);
    }
    json!({"request_spec": {
        "num_instances": spec.num_instances,
        "image": or_empty(field("image")),
        "instance_properties": instance,
        "instance_type": or_empty(field("flavor")),
    }})
}

fn add_instance_uuid(dumped: &mut Map<String, Json>, uuid: &str) {
    if dumped.contains_key("_obj_instance_uuid") {
        return;
    }
    dumped.insert("_obj_instance_uuid".to_owned(), uuid.into());
    if let Some(Json::Array(changed)) = dumped.get_mut("_changed_fields") {
        changed.push("instance_uuid".into());
    }
}

/// A versioned object without the interface of a dictionary, with all its insides.
fn dumped(value: &Value, context: &RpcContext) -> Json {
    match value {
        Value::List(items) => items.iter().map(|item| dumped(item, context)).collect(),
        value => match SourceObject::of(value) {
            None => to_json(value),
            Some(object) => {
                let mut all = Map::new();
                all.insert("_changed_fields".to_owned(), json!(object.changes));
                all.insert("_context".to_owned(), insides(context));
                all.insert("VERSION".to_owned(), object.version.into());
                for (name, field) in object.fields.iter() {
                    all.insert(format!("_obj_{name}"), dumped(field, context));
                }
                Json::Object(all)
            }
        },
    }
}

/// The attributes of Nova's context that differ from the keys of a message.
const RENAMED: [(&str, &str); 6] = [
    ("_user_id", "user_id"),
    ("_project_id", "project_id"),
    ("_domain_id", "domain"),
    ("_user_domain_id", "user_domain"),
    ("_project_domain_id", "project_domain"),
    ("_read_deleted", "read_deleted"),
];

/// Those that are named alike.
const ALIKE: [&str; 14] = [
    "user_name",
    "project_name",
    "system_scope",
    "is_admin",
    "is_admin_project",
    "read_only",
    "show_deleted",
    "resource_uuid",
    "roles",
    "request_id",
    "global_request_id",
    "remote_address",
    "timestamp",
    "quota_class",
];

/// Those that a message does not carry.
const NULL: [&str; 17] = [
    "auth_token",
    "domain_name",
    "user_domain_name",
    "project_domain_name",
    "service_token",
    "service_user_id",
    "service_user_name",
    "service_user_domain_id",
    "service_user_domain_name",
    "service_project_id",
    "service_project_name",
    "service_project_domain_id",
    "service_project_domain_name",
    "db_connection",
    "mq_connection",
    "cell_uuid",
    "user_auth_plugin",
];

fn insides(context: &RpcContext) -> Json {
    let field = |name: &str| context.field(name).map_or(Json::Null, to_json);
    let renamed = RENAMED.iter().map(|(name, key)| (*name, field(key)));
    let alike = ALIKE.iter().map(|name| (*name, field(name)));
    let null = NULL.iter().map(|name| (*name, Json::Null));
    let lists = [
        ("service_roles", json!([])),
        ("service_catalog", field("service_catalog")),
    ];
    renamed
        .chain(alike)
        .chain(null)
        .chain(lists)
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
