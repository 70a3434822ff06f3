//! Settings and ages.

use crate::common;

use common::SETTINGS;
use ebbtide_burst::age::Ages;
use ebbtide_burst::{AgeSettings, BurstSettings, CloudSettings};
use std::collections::BTreeSet;

#[test]
fn what_makes_no_sense_is_refused_with_its_key() {
    for (instead_of, write, words) in [
        ("threshold = 0.25", "threshold = 2.0", "threshold"),
        (
            "nodes = \"c[1-6]\"",
            "nodes = \"c[1-3]\"",
            "declare more in slurm.conf",
        ),
        ("nodes = \"c[1-6]\"", "nodes = \"\"", "slurm.nodes"),
        ("long_partitions = [\"long\"]", "", "which jobs are long"),
        (
            "preemptible_price = \"0.10\"",
            "preemptible_price = \"0\"",
            "preemptible_price",
        ),
        (
            "preemptible_price = \"0.10\"",
            "preemptible_price = \"0.40\"",
            "price ratio",
        ),
        (
            "margin_seconds = 3",
            "margin_seconds = -1",
            "policy.margin_seconds",
        ),
        ("margin_seconds = 3", "margin_secnds = 3", "margin_secnds"),
        ("short_servers = 2", "short_servers = 0", "short jobs only"),
        ("flavor = \"p.node\"", "", "flavor"),
        (
            "[policy]",
            "[openstack]\nflavor = \"p\"\nimage = \"i\"\n[policy]",
            "servers come from one cloud",
        ),
    ] {
        assert!(SETTINGS.contains(instead_of));
        let error = BurstSettings::parse(&SETTINGS.replace(instead_of, write)).unwrap_err();
        assert!(["EB-BURST-004", "EB-BURST-003"].contains(&error.code()));
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn servers_come_from_an_openstack_with_a_flavor_and_an_image() {
    let region = SETTINGS.split("[region]").nth(1).unwrap();
    let region = region.split("[policy]").next().unwrap();
    let without = SETTINGS.replace(&format!("[region]{region}"), "");
    let error = BurstSettings::parse(&without).unwrap_err();
    assert!(
        error.to_string().contains("where servers come from"),
        "{error}"
    );
    let openstack =
        "[openstack]\ncloud = \"mine\"\nflavor = \"p.node\"\nimage = \"slurm\"\n[policy]";
    let settings = BurstSettings::parse(&without.replace("[policy]", openstack)).unwrap();
    let CloudSettings::OpenStack(own) = settings.cloud().unwrap() else {
        panic!("{:?}", settings.cloud())
    };
    assert_eq!(
        (own.cloud.as_deref(), own.network.as_str()),
        (Some("mine"), "auto")
    );
}

#[test]
fn prices_give_the_ratio_and_the_budget_of_nodes() {
    let settings = BurstSettings::parse(SETTINGS).unwrap();
    assert_eq!(settings.ratio(), 3.0);
    assert_eq!(settings.elastic().unwrap().budget(), 6);
}

#[test]
fn an_instance_near_its_end_fits_no_long_job_any_more() {
    let settings = AgeSettings {
        model: Some("bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.45".to_owned()),
        job_hours: vec![6.0, 1.0],
        features: vec!["spot".to_owned()],
        weight: 100,
    };
    let ages = Ages::new(&settings).unwrap();
    assert_eq!(ages.all_features(), ["spot", "fits_1h", "fits_6h"]);
    let of = |age: f64| ages.label(age, String::new()).unwrap();
    assert_eq!(of(0.0).features, ["spot", "fits_1h", "fits_6h"]);
    // Past infancy it is better than a new one.
    assert!(of(5.0).weight < of(0.0).weight);
    // The paper's figure 5: after about 18 h a new instance is better for six hours.
    assert_eq!(of(20.0).features, ["spot", "fits_1h"]);
    assert_eq!(of(23.5).features, ["spot"]);
}

#[test]
fn lengths_without_a_model_and_models_that_are_none_are_refused() {
    let lengths = AgeSettings {
        job_hours: vec![1.0],
        ..AgeSettings::default()
    };
    assert!(
        Ages::new(&lengths)
            .unwrap_err()
            .to_string()
            .contains("age.job_hours")
    );
    let model = AgeSettings {
        model: Some("marble:a=1".to_owned()),
        ..AgeSettings::default()
    };
    assert!(
        Ages::new(&model)
            .unwrap_err()
            .to_string()
            .contains("marble")
    );
}

/// The keys that are expected, as the parser says it of one that is not.
fn accepted(section: &str) -> BTreeSet<String> {
    let text = match section {
        "" => format!("unheard_of = 1\n{SETTINGS}"),
        "age" | "openstack" => format!("{SETTINGS}\n[{section}]\nunheard_of = 1"),
        _ => SETTINGS.replace(
            &format!("[{section}]"),
            &format!("[{section}]\nunheard_of = 1"),
        ),
    };
    let error = BurstSettings::parse(&text).unwrap_err().to_string();
    let (_, list) = error.split_once("expected one of ").expect(&error);
    let names = list.split('`').skip(1).step_by(2);
    let sections = ["slurm", "region", "openstack", "policy", "age"];
    let keys = names.filter(|name| !(section.is_empty() && sections.contains(name)));
    let dot = if section.is_empty() { "" } else { "." };
    keys.map(|key| format!("{section}{dot}{key}")).collect()
}

#[test]
fn the_table_of_the_document_names_exactly_the_keys_that_are_accepted() {
    let page = include_str!("../../../docs/tenants/burst.md");
    let (_, table) = page.split_once("## All keys of burst.toml").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    let named: Vec<String> = rows
        .map(|row| row.split_once('`').unwrap().0.to_owned())
        .collect();
    let each: BTreeSet<String> = named.iter().cloned().collect();
    assert_eq!(each.len(), named.len(), "each has one row");
    let sections = ["", "slurm", "region", "openstack", "policy", "age"];
    let all: BTreeSet<String> = sections.into_iter().flat_map(accepted).collect();
    assert_eq!(each, all);
}
