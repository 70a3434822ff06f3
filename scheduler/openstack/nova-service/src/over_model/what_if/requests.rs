//! What a what-if asks, and what it does not know.

use super::{Clouds, FLAVOR, Flavor, PROJECT, ServerRequest};
use crate::over_model::newcomer;
use crate::{WhatIf, WhatIfError, WhatIfImage};
use ebbtide_model::ServerId;
use ebbtide_nova_databases::instance_uuid;
use ebbtide_nova_objects::{SelectDestinations, Value as Wire};
use serde_json::Value;
use std::collections::BTreeMap;

#[tokio::test]
async fn the_request_of_a_what_if_is_the_conductors() {
    let cloud = Clouds::of_hosts(1).await;
    for group in [None, Some(("anti-affinity", vec![instance_uuid(1)]))] {
        let wanted = ServerRequest {
            instances: [1, 2].map(newcomer).into(),
            flavor: Flavor {
                vcpus: 3,
                preemptible: true,
            },
            group,
            hints: BTreeMap::from([("different_host".to_owned(), vec![instance_uuid(2)])]),
            zone: Some("nova".to_owned()),
            from_volume: true,
        };
        cloud.sells(&wanted.flavor).await;
        if let Some((policy, members)) = &wanted.group {
            cloud.groups(policy, members).await;
        }
        let args = Wire::from(&Value::Object(wanted.arguments()));
        let mut sent = SelectDestinations::read(&args).unwrap().request.spec;
        // The scheduler looks at neither.
        sent.user_id = None;
        sent.image.as_mut().unwrap().name = Some(String::new());
        let nova = cloud.bench.selector.facts.database.nova();
        let options = cloud.bench.selector.facts.nova_options();
        let asked = wanted.question().request(nova, &options).await;
        assert_eq!(asked.unwrap(), sent);
    }
}

#[tokio::test]
async fn what_the_scheduler_does_not_know_is_refused() {
    let cloud = Clouds::of_hosts(1).await;
    let small = Flavor {
        vcpus: 1,
        preemptible: false,
    };
    cloud.sells(&small).await;
    let good = WhatIf {
        servers: vec![ServerId(newcomer(1))],
        project_id: PROJECT.to_owned(),
        flavor: FLAVOR.to_owned(),
        ..WhatIf::default()
    };
    assert!(good.knows_no_image_properties());
    assert!(cloud.what_if(&good).await.is_ok());
    let image = |key: &str, value: &str| {
        Some(WhatIfImage {
            properties: BTreeMap::from([(key.to_owned(), value.to_owned())]),
            ..WhatIfImage::default()
        })
    };
    let with = |image: Option<WhatIfImage>| WhatIf {
        image,
        ..good.clone()
    };
    let pinned = cloud
        .what_if(&with(image("hw_cpu_policy", "dedicated")))
        .await;
    assert!(pinned.is_ok(), "{pinned:?}");
    let three = cloud.what_if(&with(image("hw_numa_nodes", "3"))).await;
    let refused = three.unwrap_err().to_string();
    assert!(
        refused
            .starts_with("flavor: Nova refuses flavor and image with ImageNUMATopologyAsymmetric"),
        "{refused}"
    );
    let wrong = cloud.what_if(&with(image("hw_machine_type", "q35"))).await;
    assert!(wrong.is_ok(), "{wrong:?}");
    let wrong = cloud
        .what_if(&with(image("hw_vif_model", "none of Nova's")))
        .await;
    assert!(matches!(wrong, Err(WhatIfError::Field { .. })), "{wrong:?}");
    for (project, disabled, public) in [("p2", "FALSE", "FALSE"), (PROJECT, "TRUE", "TRUE")] {
        let sql = format!("UPDATE flavors SET disabled = {disabled}, is_public = {public}");
        cloud.bench.nova.api.sql(&sql).await;
        let question = WhatIf {
            project_id: project.to_owned(),
            ..good.clone()
        };
        let gone = cloud.what_if(&question).await;
        assert!(matches!(gone, Err(WhatIfError::NoFlavor(_))), "{gone:?}");
    }
    let api = &cloud.bench.nova.api;
    api.sql("UPDATE flavors SET disabled = FALSE, is_public = TRUE")
        .await;
    cloud
        .bench
        .sells_with("pci_passthrough:alias", "gpu:1")
        .await;
    let device = cloud.what_if(&good).await;
    assert!(matches!(device, Err(WhatIfError::Unknown(_))), "{device:?}");
    let of_group = WhatIf {
        group: Some("another's".to_owned()),
        ..good.clone()
    };
    let spec = "DELETE FROM flavor_extra_specs";
    api.sql(spec).await;
    let none = cloud.what_if(&of_group).await;
    assert!(matches!(none, Err(WhatIfError::NoGroup(_))), "{none:?}");
}
