//! Vectors, and JSON without the order of what are sets in Nova.

use ebbtide_nova_objects::{Value, parse};
use flate2::read::GzDecoder;
use serde_json::Value as Json;
use std::io::Read as _;

/// The lines of a vector file.
pub(crate) fn lines(name: &str) -> Vec<String> {
    let path = format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The member of an object.
pub(crate) fn at<'a>(value: &'a Value, name: &str) -> &'a Value {
    match value {
        Value::Dict(dict) => dict
            .get(name)
            .unwrap_or_else(|| panic!("there is no {name}")),
        other => panic!("{other:?} has no {name}"),
    }
}

/// Text as a value that keeps the order.
pub(crate) fn ordered(text: &str) -> Value {
    parse(text).unwrap()
}

/// As JSON of serde's.
pub(crate) fn json(value: &Value) -> Json {
    ebbtide_nova::python::to_json(value)
}

/// Sorts lists that are sets in Nova: names of changed fields, CPUs, networks.
pub(crate) fn normal(value: &Json) -> Json {
    match value {
        Json::Array(items) => items.iter().map(normal).collect(),
        Json::Object(entries) => Json::Object(
            entries
                .iter()
                .map(|(key, value)| {
                    let mut value = normal(value);
                    let set = [
                        "nova_object.changes",
                        "_changed_fields",
                        "cpuset",
                        "pcpuset",
                        "cpuset_reserved",
                        "physnets",
                        "hw_numa_cpus",
                    ];
                    if set.contains(&key.as_str()) {
                        sort(&mut value);
                    }
                    (key.clone(), value)
                })
                .collect(),
        ),
        other => other.clone(),
    }
}

fn sort(value: &mut Json) {
    if let Json::Array(items) = value {
        items.iter_mut().for_each(sort);
        items.sort_by_key(|item| (item.as_i64().unwrap_or(0), item.to_string()));
    }
}

/// Sets every member of this name, wherever it stands.
pub(crate) fn set_everywhere(value: &mut Json, name: &str, to: &Json) {
    match value {
        Json::Array(items) => items
            .iter_mut()
            .for_each(|item| set_everywhere(item, name, to)),
        Json::Object(entries) => {
            for (key, value) in entries {
                if key == name {
                    *value = to.clone();
                } else {
                    set_everywhere(value, name, to);
                }
            }
        }
        _ => {}
    }
}

/// Removes every member of this name, wherever it stands.
pub(crate) fn remove_everywhere(value: &mut Json, name: &str) {
    match value {
        Json::Array(items) => items
            .iter_mut()
            .for_each(|item| remove_everywhere(item, name)),
        Json::Object(entries) => {
            entries.remove(name);
            entries
                .iter_mut()
                .for_each(|(_, value)| remove_everywhere(value, name));
        }
        _ => {}
    }
}
