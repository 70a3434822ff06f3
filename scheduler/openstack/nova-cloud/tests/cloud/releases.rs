//! A cloud of which it turns out later which release it runs.

use crate::kit::{NOW, cloud_of, compute, decide, host_name, instance, request, settle};
use ebbtide_nova::model::Options;
use ebbtide_nova::release::Release;
use ebbtide_nova_cloud::{Cloud, CloudSettings};
use std::collections::BTreeMap;

fn options(release: u32) -> Options {
    let nothing_said = BTreeMap::<String, serde_json::Value>::new();
    Options::read_for(Release(release), &nothing_said).unwrap()
}

/// Where a request goes, with the number of alternates.
fn chosen(cloud: &Cloud) -> (String, usize) {
    let (spec, call) = request(1, 1);
    let (selected, _) = decide(cloud, spec, call, |_, _| false);
    let selected = selected.unwrap().remove(0);
    (selected[0].host.host.clone(), selected.len() - 1)
}

#[test]
fn other_options_decide_as_if_they_had_been_there_from_the_start() {
    // The second host has a newer hypervisor, which Nova weighs from 28 on.
    let make = |release: u32| {
        let mut cloud = cloud_of(&[8, 8], options(release), CloudSettings::default());
        let mut newer = compute(1, 8);
        newer.row.hypervisor_version = 9_000_000;
        cloud.put_compute(newer).unwrap();
        settle(&mut cloud, instance(1, 0, 1, 10, false));
        cloud
    };
    let (zed, newest) = (make(26), make(34));
    assert_eq!(chosen(&zed), (host_name(0), 1));
    assert_eq!(chosen(&newest), (host_name(1), 1));
    let mut followed = make(26);
    followed.set_options(options(34));
    assert_eq!(followed.options(), newest.options());
    assert_eq!(chosen(&followed), chosen(&newest));
    // A host that comes or changes afterwards is judged by the new ones as well.
    let mut oldest = compute(1, 8);
    oldest.row.hypervisor_version = 1;
    followed.put_compute(oldest).unwrap();
    assert_eq!(chosen(&followed), (host_name(0), 1));
    followed.set_options(options(26));
    assert_eq!(followed.options(), zed.options());
    // What is down is out, whatever the release.
    let down = ebbtide_nova_cloud::ServiceFacts {
        host: host_name(0),
        service: ebbtide_nova::model::Service {
            last_seen_up: Some(NOW - 3_600_000_000),
            ..Default::default()
        },
    };
    followed.put_service(down);
    assert_eq!(chosen(&followed), (host_name(1), 0));
}
