//! In languages where the contract is written by hand: every part of what a weigher is handed
//! arrives as it was sent.

use crate::installed::{environment, packages};
use crate::support::run;
use ebbtide_model::Resources;
use ebbtide_plugin_kit::{Language, NewProject, ProjectKind, write};
use ebbtide_wasm::{Grants, PluginSettings, Sandbox, SandboxLimits, WasmWeigher};
use ebbtide_weigher_api::{
    Bounds, Column, Details, FactColumn, HostBatch, PreemptibleRows, RequestDetails, RequestView,
    Texts, Weigher,
};
use std::path::Path;

/// 10^6 for each processor that is wanted, 10^5 if it is preemptible, 10^4 for each letter of the
/// flavor's name and 10^3 for each of the project's; and of each host 10^2 for each letter of its
/// rack, and the ages of its preemptible instances.
const C: &str = r#"
#include "ebbtide_plugin.h"
#include <string.h>

bool plugin_describe(eb_pairs settings, eb_description *description, eb_text *error) {
    (void)settings, (void)error;
    static const eb_text needs[] = {EB_TEXT("text:rack"), EB_TEXT("preemptible_age_seconds")};
    *description = (eb_description){-2.5, {needs, 2}, {true, -1}, {true, 1e9}};
    return true;
}

bool plugin_weigh(eb_pairs settings, const eb_request *request, eb_rows hosts, double *numbers, eb_text *error) {
    (void)settings, (void)error;
    double common = request->project_id.len * 1e3 + request->preemptible * 1e5 + strlen(eb_find(request->properties, "flavor")) * 1e4;
    for (size_t i = 0; i < request->resources.len; i++) {
        eb_text class = request->resources.ptr[i].resource_class;
        if (class.len == 4 && memcmp(class.ptr, "VCPU", 4) == 0) {
            common += request->resources.ptr[i].amount * 1e6;
        }
    }
    const eb_column *rack = &hosts.columns.ptr[0], *ages = &hosts.columns.ptr[1];
    if (rack->kind != EB_TEXTS || ages->kind != EB_GROUPS) {
        return false;
    }
    for (uint32_t i = 0; i < hosts.len; i++) {
        numbers[i] = common + rack->texts.texts.ptr[rack->texts.codes.ptr[i]].len * 1e2;
        for (uint32_t at = ages->groups.offsets.ptr[i]; at < ages->groups.offsets.ptr[i + 1]; at++) {
            numbers[i] += ages->groups.numbers.ptr[at];
        }
    }
    return true;
}
"#;

const GO: &str = r#"package main

func describe(settings Pairs) (Description, error) {
	least, most := -1.0, 1e9
	return Description{DefaultMultiplier: -2.5, Needs: []string{"text:rack", "preemptible_age_seconds"}, Min: &least, Max: &most}, nil
}

func weigh(settings Pairs, request Request, hosts Rows) ([]float64, error) {
	common := float64(len(request.ProjectID))*1e3 + float64(len(request.Properties["flavor"]))*1e4 + float64(request.Resources["VCPU"])*1e6
	if request.Preemptible {
		common += 1e5
	}
	rack, ages := hosts.Columns[0], hosts.Columns[1]
	numbers := make([]float64, hosts.Len)
	for i := range numbers {
		numbers[i] = common + float64(len(rack.Texts[rack.Codes[i]]))*1e2
		for _, age := range ages.Numbers[ages.Offsets[i]:ages.Offsets[i+1]] {
			numbers[i] += age
		}
	}
	return numbers, nil
}
"#;

fn project(into: &Path, name: &str, language: Language) {
    let project = NewProject {
        name: name.to_owned(),
        kind: ProjectKind::Weigher,
        language,
    };
    write(&project, into).unwrap();
}

fn reads_everything(component: &Path) {
    let bytes = std::fs::read(component).unwrap();
    let compiled = Sandbox::new().unwrap().compile(&bytes).unwrap();
    let settings = PluginSettings::new();
    let weigher = compiled
        .weigher(
            "abi",
            &settings,
            SandboxLimits::default(),
            Grants::default(),
        )
        .unwrap();
    assert_eq!(weigher.default_multiplier().to_bits(), (-2.5_f64).to_bits());
    let bounds = Bounds {
        min: Some(-1.0),
        max: Some(1e9),
    };
    assert_eq!(weigher.bounds(), bounds);
    assert_eq!(weigher.reads(), ["text:rack", "preemptible_age_seconds"]);
    assert_eq!(weighed(&weigher), [2_344_207.0, 2_344_000.0, 2_344_650.0]);
}

fn weighed(weigher: &WasmWeigher) -> Vec<f64> {
    let mut resources = Resources::new();
    for (class, amount) in [("DISK_GB", 20), ("VCPU", 2), ("MEMORY_MB", 4096)] {
        resources.set(class.parse().unwrap(), amount).unwrap();
    }
    let request = RequestView {
        project_id: "four",
        resources: &resources,
        preemptible: true,
        group_policy: None,
        details: RequestDetails {
            flavor: "twenty-four letters long",
            extra_specs: &[("a", "b")],
            image_id: None,
            scheduler_hints: &[],
        },
    };
    let columns: [Vec<f64>; Column::COUNT] = Default::default();
    let racks = Texts {
        codes: vec![1, 0, 2],
        texts: vec![String::new(), "r1".to_owned(), "row-31".to_owned()],
    };
    let facts = [("text:rack".parse().unwrap(), FactColumn::Texts(racks))];
    let hosts = HostBatch {
        len: 3,
        columns: &columns,
        preemptibles: Some(PreemptibleRows {
            offsets: &[0, 2, 2, 3],
            age_seconds: &[3.0, 4.0, 50.0],
        }),
        details: Details {
            facts: &facts,
            ..Details::default()
        },
    };
    weigher
        .carrier()
        .weigh_and_measure(weigher.described(), &request, &hosts)
        .unwrap()
        .0
}

#[test]
fn a_weigher_in_c_reads_texts_groups_and_the_request() {
    packages("plugins-c");
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("abi");
    project(&into, "abi", Language::C);
    std::fs::write(into.join("src/plugin.c"), C).unwrap();
    run(&into, "make", &[]);
    reads_everything(&into.join("abi.wasm"));
}

#[test]
fn a_weigher_in_go_reads_texts_groups_and_the_request() {
    let go = environment("go", crate::installed::GO).join("go");
    packages("plugins-c"); // for make
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("abi");
    project(&into, "abi", Language::Go);
    std::fs::write(into.join("plugin.go"), GO).unwrap();
    std::fs::remove_file(into.join("plugin_test.go")).unwrap();
    run(&into, "make", &[&format!("GO={}", go.display())]);
    reads_everything(&into.join("abi.wasm"));
}
