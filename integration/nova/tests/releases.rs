//! What an older Nova has not is left out.

#![allow(
    clippy::unwrap_used,
    reason = "a test program: what is missing shall fail loudly"
)]

use ebbtide_nova::filters::{Context, by_name};
use ebbtide_nova::hosts::new_state;
use ebbtide_nova::image::Image;
use ebbtide_nova::model::{Aggregate, Options, RequestSpec};
use ebbtide_nova::placement::{QueryContext, query};
use ebbtide_nova::python::{Value, json};
use ebbtide_nova::release::{Feature, Release};
use ebbtide_nova::weighing;
use std::collections::BTreeMap;
use std::sync::Arc;

fn of(release: Release) -> Options {
    Options {
        release,
        ..Options::default()
    }
}

fn weighers(release: u32) -> Vec<&'static str> {
    let options = of(Release(release));
    let known = weighing::classes().into_iter();
    known
        .filter(|class| weighing::by_class(class, &options).is_some())
        .collect()
}

#[test]
fn zed_has_ten_weighers_and_the_newest_thirteen() {
    assert_eq!(weighers(34).len(), 13);
    assert_eq!(weighers(35).len(), 13, "a later one counts as the newest");
    let zed = weighers(26);
    assert_eq!(zed.len(), 10);
    for later in [
        "HypervisorVersionWeigher",
        "ImagePropertiesWeigher",
        "NumInstancesWeigher",
    ] {
        assert!(!zed.contains(&later), "{later} came after Zed");
    }
}

#[test]
fn a_newer_hypervisor_is_no_better_host_in_zed() {
    let mut old = new_state("a", "a", "cell");
    old.hypervisor_version = Some(6_000_000);
    old.cpu_allocation_ratio = Some(1.0);
    let mut new = old.clone();
    new.hypervisor_version = Some(9_000_000);
    let spec = RequestSpec::default();
    let best = |release| {
        let weighed = weighing::weigh(&[&old, &new], &spec, &of(release)).unwrap();
        weighed.order[0]
    };
    assert_eq!((best(Release::ZED), best(Release::NEWEST)), (0, 1));
}

#[test]
fn zed_knows_one_key_for_tenants_only() {
    let filter = by_name("AggregateMultiTenancyIsolation").unwrap();
    let mut host = new_state("a", "a", "cell");
    host.aggregates = vec![Arc::new(aggregate(&[("filter_tenant_id2", "other")]))];
    let spec = RequestSpec {
        project_id: Some("p".to_owned()),
        ..RequestSpec::default()
    };
    let passes = |release| {
        let options = of(release);
        filter.passes(
            &host,
            &spec,
            &Context {
                options: &options,
                now: 0,
            },
        )
    };
    assert_eq!(passes(Release::ZED), Ok(true));
    assert_eq!(passes(Release::NEWEST), Ok(false));
}

fn aggregate(metadata: &[(&str, &str)]) -> Aggregate {
    Aggregate {
        id: 1,
        uuid: "a".to_owned(),
        name: "a".to_owned(),
        hosts: vec!["a".to_owned()],
        metadata: metadata
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
    }
}

#[test]
fn the_zone_filter_exists_where_nova_has_it() {
    let config = BTreeMap::from([
        (
            "filter_scheduler.enabled_filters".to_owned(),
            Value::List(vec![Value::from("AvailabilityZoneFilter")]),
        ),
        (
            "scheduler.query_placement_for_availability_zone".to_owned(),
            Value::Bool(false),
        ),
    ]);
    let read = |release| {
        let config = config.iter().map(|(key, value)| (key, value.clone()));
        Options::read_for(release, config)
    };
    assert_eq!(
        read(Release::NEWEST).map_err(|fault| fault.class),
        Err("NoSuchOptError")
    );
    let options = read(Release::ZED).unwrap();
    assert!(!options.query_placement_for_availability_zone);
    let filter = by_name("AvailabilityZoneFilter").unwrap();
    let context = Context {
        options: &options,
        now: 0,
    };
    let mut host = new_state("a", "a", "cell");
    let spec = |zone: &str| RequestSpec {
        availability_zone: Some(zone.to_owned()),
        ..RequestSpec::default()
    };
    assert_eq!(
        filter.passes(&host, &spec("nova"), &context),
        Ok(true),
        "the default zone"
    );
    assert_eq!(filter.passes(&host, &spec("az1"), &context), Ok(false));
    host.aggregates = vec![Arc::new(aggregate(&[("availability_zone", "az1, az2")]))];
    assert_eq!(filter.passes(&host, &spec("az2"), &context), Ok(true));
    assert_eq!(filter.passes(&host, &spec("nova"), &context), Ok(false));
    assert_eq!(filter.passes(&host, &spec(""), &context), Ok(true));
}

#[test]
fn later_prefilters_ask_zeds_placement_for_nothing() {
    let image = r#"{"id":"i","properties":{"hw_virtio_packed_ring":true}}"#;
    let spec = RequestSpec {
        image: Some(Image::read(&json::loads(image).unwrap()).unwrap()),
        scheduler_hints: Some(BTreeMap::new()),
        flavor: ebbtide_nova::model::Flavor {
            vcpus: 1,
            memory_mb: 1,
            extra_specs: Some(Default::default()),
            ..Default::default()
        },
        ..RequestSpec::default()
    };
    let asks = |release| {
        let options = of(release);
        let world = QueryContext {
            aggregates: &[],
            nodes: &[],
            min_compute_version: 0,
            options: &options,
        };
        let parts = query(&spec, &world).parts.unwrap();
        parts.root_required.contains("COMPUTE_NET_VIRTIO_PACKED")
    };
    assert!(asks(Release::NEWEST) && !asks(Release::ZED));
    assert!(
        Release::NEWEST.has(Feature::TpmSecretSecurity)
            && !Release(32).has(Feature::TpmSecretSecurity)
    );
}
