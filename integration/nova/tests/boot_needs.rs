//! What nova-api makes of flavors and images, against what Nova 26 and 34 made of them
//! (`oracle/boot_needs.py`).

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that cannot go on fails.

use ebbtide_nova::boot::{BootError, boot_needs};
use ebbtide_nova::image::Image;
use ebbtide_nova::model::{Flavor, InstanceNumaTopology, Options, OrderedMap};
use ebbtide_nova::python::Value as PyValue;
use ebbtide_nova::python::json::loads;
use ebbtide_nova::release::Release;
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/vectors/boot_needs.jsonl.gz");

fn cases() -> Vec<(Value, PyValue)> {
    let file = std::fs::File::open(CORPUS).unwrap();
    let lines = BufReader::new(GzDecoder::new(file)).lines();
    lines
        .map(|line| line.unwrap())
        .map(|line| (serde_json::from_str(&line).unwrap(), loads(&line).unwrap()))
        .collect()
}

/// Extra specs in the order of the case: Nova stops at the first that decides.
fn flavor(case: &PyValue) -> Flavor {
    let get = |value: &PyValue, key: &str| match value {
        PyValue::Dict(entries) => entries.get(key).cloned().unwrap(),
        other => panic!("{other:?} is no dict"),
    };
    let given = get(case, "flavor");
    let number = |key: &str| match get(&given, key) {
        PyValue::Int(number) => i64::try_from(number).unwrap(),
        other => panic!("{other:?} is no number"),
    };
    let PyValue::Dict(given_specs) = get(&given, "extra_specs") else {
        panic!("no extra specs")
    };
    let mut specs = OrderedMap::default();
    for (key, value) in given_specs.iter() {
        specs.insert(key.clone(), value.text());
    }
    Flavor {
        name: "f".to_owned(),
        vcpus: number("vcpus"),
        memory_mb: number("memory_mb"),
        extra_specs: Some(specs),
        ..Flavor::default()
    }
}

fn options(case: &Value) -> Options {
    let aliases = case["alias"].as_array().unwrap().iter();
    let aliases = aliases.map(|alias| alias.as_str().unwrap().to_owned());
    Options {
        release: Release(u32::try_from(case["release"].as_u64().unwrap()).unwrap()),
        pci_alias: aliases.collect(),
        pci_in_placement: case["pci_in_placement"].as_bool().unwrap(),
        ..Options::default()
    }
}

fn shown(topology: &InstanceNumaTopology) -> Value {
    let cells = topology.cells.iter().map(|cell| {
        json!({"id": cell.id, "cpuset": cell.cpuset, "pcpuset": cell.pcpuset,
            "memory": cell.memory, "pagesize": cell.pagesize, "cpu_policy": cell.cpu_policy,
            "cpu_thread_policy": cell.cpu_thread_policy})
    });
    json!({"cells": cells.collect::<Vec<_>>(),
        "emulator_threads_policy": topology.emulator_threads_policy})
}

/// Our answer in the oracle's form; `None`: not known here.
fn answer(case: &Value, in_order: &PyValue) -> Option<Value> {
    let image = json!({"name": "i", "properties": case["image"]});
    let image = match Image::read(&PyValue::from(&image)) {
        Ok(image) => image,
        Err(fault) => return Some(json!({"error": fault.class, "where": "image"})),
    };
    match boot_needs(&flavor(in_order), &image, &options(case)) {
        Ok(needs) => {
            let pci = needs.pci_requests.iter().map(|request| {
                json!({"count": request.count, "spec": request.spec,
                    "alias_name": request.alias_name, "numa_policy": request.numa_policy})
            });
            let groups = needs.requested_resources.iter().map(|group| {
                json!({"resources": group.resources, "required_traits": group.required_traits})
            });
            Some(json!({"numa": needs.numa_topology.as_ref().map(shown),
                "pci": pci.collect::<Vec<_>>(), "groups": groups.collect::<Vec<_>>()}))
        }
        Err(BootError::Refused(fault)) => Some(json!({"error": fault.class})),
        Err(BootError::Unknown(_)) => None,
    }
}

#[test]
fn a_flavor_and_an_image_need_what_novas_api_makes_of_them() {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut unknown = 0;
    let mut wrong = Vec::new();
    for (n, (case, in_order)) in cases().iter().enumerate() {
        let wanted = &case["answer"];
        let kind = match wanted["error"].as_str() {
            Some(class) => class.to_owned(),
            None if !wanted["groups"].as_array().unwrap().is_empty() => "groups".to_owned(),
            None if !wanted["pci"].as_array().unwrap().is_empty() => "devices".to_owned(),
            None if wanted["numa"].is_null() => "nothing".to_owned(),
            None => "cells".to_owned(),
        };
        *seen.entry(kind).or_default() += 1;
        match answer(case, in_order) {
            Some(answer) if answer == *wanted => {}
            Some(answer) => wrong.push(format!("case {n}: {case}\nours: {answer}")),
            None => unknown += 1,
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ\n{}",
        wrong.len(),
        wrong[..wrong.len().min(5)].join("\n")
    );
    assert_eq!(
        unknown, 0,
        "no alias of the cases has traits that only Nova knows"
    );
    for kind in ["cells", "devices", "groups", "nothing"] {
        assert!(
            seen.get(kind).is_some_and(|count| *count >= 10),
            "{kind}: {seen:?}"
        );
    }
    let classes = seen
        .keys()
        .filter(|kind| kind.starts_with(char::is_uppercase))
        .count();
    assert!(classes >= 25, "{seen:?}");
}

#[test]
fn what_only_others_know_is_said_and_not_guessed() {
    let mut flavor = Flavor {
        vcpus: 1,
        memory_mb: 512,
        ..Flavor::default()
    };
    let mut why = |key: &str, value: &str, options: &Options| {
        let mut specs = OrderedMap::default();
        specs.insert(key, value.to_owned());
        flavor.extra_specs = Some(specs);
        match boot_needs(&flavor, &Image::default(), options) {
            Err(BootError::Unknown(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    let mut options = Options::default();
    assert!(why("accel:device_profile", "fpga", &options).contains("Cyborg"));
    assert!(why("pci_passthrough:alias", "gpu:1", &options).contains("no [pci] alias"));
    options.pci_in_placement = true;
    let alias = r#"{"name": "gpu", "resource_class": "PGPU", "traits": "HW_GPU_API_VULKAN"}"#;
    options.pci_alias = vec![alias.to_owned()];
    assert!(why("pci_passthrough:alias", "gpu:1", &options).contains("HW_GPU_API_VULKAN"));
}
