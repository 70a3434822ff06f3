//! What comes from outside and makes no sense.

use super::kit::{code, create, fill, flavor, request, server, until, until_evacuation};
use ebbtide_bus::{AmqpBus, AmqpConfig, Bus, OutgoingMessage, QueuePrefix};
use ebbtide_harness::eventually;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Region, RegionOptions};
use ebbtide_model::message::{Body, Draining, Evacuated, EvacuationEnd, Message};
use ebbtide_model::{EvacuationId, MessageId, ServerId, Timestamp};
use ebbtide_proto::v1;
use uuid::Uuid;

async fn bus(region: &Region) -> (AmqpBus, QueuePrefix) {
    let url = region.broker_url().parse().unwrap();
    let bus = AmqpBus::connect(AmqpConfig::new(vec![url], "a stranger"), PATIENCE)
        .await
        .unwrap();
    (bus, QueuePrefix::new(region.prefix()).unwrap())
}

#[tokio::test]
async fn every_bad_request_is_refused_with_its_code() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    flavor(&region, "small", 1, &[]).await;
    let bad: Vec<(&str, v1::PlacementRequest, &str)> = vec![
        ("unknown flavor", request("huge", 1), "EB-REGION-002"),
        ("no flavor", request("", 1), "EB-REGION-002"),
        ("too many", request("small", 1001), "EB-SERVICE-002"),
        (
            "absurdly many",
            request("small", u32::MAX),
            "EB-SERVICE-002",
        ),
        (
            "unknown group",
            v1::PlacementRequest {
                group: "none".into(),
                ..request("small", 1)
            },
            "EB-REGION-002",
        ),
        (
            "ids that are none",
            v1::PlacementRequest {
                server_ids: vec!["x".into()],
                ..request("small", 1)
            },
            "EB-SERVICE-002",
        ),
        (
            "fewer ids than servers",
            v1::PlacementRequest {
                server_ids: vec![Uuid::nil().to_string()],
                ..request("small", 2)
            },
            "EB-SERVICE-002",
        ),
        (
            "the same id twice",
            v1::PlacementRequest {
                server_ids: vec![Uuid::nil().to_string(); 2],
                ..request("small", 2)
            },
            "EB-MODEL-003",
        ),
        (
            "a host name with a blank",
            v1::PlacementRequest {
                force_hosts: vec!["a b".into()],
                ..request("small", 1)
            },
            "EB-MODEL-004",
        ),
        (
            "a project of blanks",
            v1::PlacementRequest {
                project_id: "  ".into(),
                ..request("small", 1)
            },
            "EB-MODEL-004",
        ),
        (
            "too many alternates",
            v1::PlacementRequest {
                alternates: 101,
                ..request("small", 1)
            },
            "EB-SERVICE-002",
        ),
    ];
    let mut servers = region.servers().await.unwrap();
    for (what, request, expected) in bad {
        let create = v1::CreateServersRequest {
            max_price: String::new(),
            name: "x".to_owned(),
            request: Some(request),
        };
        let status = servers.create_servers(create).await.expect_err(what);
        assert_eq!(code(&status), expected, "{what}: {status:?}");
        assert!(!status.message().is_empty());
    }
    let nameless = v1::CreateServersRequest {
        max_price: String::new(),
        name: String::new(),
        request: Some(request("small", 1)),
    };
    assert_eq!(
        code(&servers.create_servers(nameless).await.unwrap_err()),
        "EB-MODEL-004"
    );
    let nothing = v1::CreateServersRequest {
        max_price: String::new(),
        name: "x".to_owned(),
        request: None,
    };
    assert_eq!(
        code(&servers.create_servers(nothing).await.unwrap_err()),
        "EB-SERVICE-002"
    );
    // And the region is as well as before.
    let (made, _) = create(&region, "fine", request("small", 1)).await;
    until(&region, &made[0].id, "active").await;
}

#[tokio::test]
async fn every_bad_flavor_is_refused_with_its_key() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    let mut admin = region.admin().await.unwrap();
    for (vcpus, key, value, expected) in [
        (0, "", "", "EB-MODEL-003"),
        (u32::MAX, "", "", "EB-MODEL-003"),
        (1, "ebbtide:preemptible", "perhaps", "EB-MODEL-005"),
        (1, "ebbtide:premptible", "true", "EB-MODEL-005"),
        (1, "ebbtide:grace_seconds", "-5", "EB-MODEL-005"),
        (1, "ebbtide:price_per_hour", "NaN", "EB-MODEL-005"),
        (1, "resources:VCPUS", "1", "EB-MODEL-005"),
        (1, "resources:CUSTOM_GPU", "99999999999", "EB-MODEL-005"),
    ] {
        let extra_specs = [(key.to_owned(), value.to_owned())]
            .into_iter()
            .filter(|(k, _)| !k.is_empty());
        let flavor = v1::Flavor {
            name: "bad".to_owned(),
            vcpus,
            extra_specs: extra_specs.collect(),
            ..v1::Flavor::default()
        };
        let status = admin
            .create_flavor(v1::CreateFlavorRequest {
                flavor: Some(flavor),
            })
            .await
            .expect_err(key);
        assert_eq!(code(&status), expected, "{key}={value}: {status:?}");
        assert!(status.message().contains(key), "{status:?}");
    }
}

#[tokio::test]
async fn a_resource_class_that_no_host_has_is_no_valid_host() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    flavor(&region, "gpu", 1, &[("resources:VGPU", "1")]).await;
    let (servers, decision) = create(&region, "gpu", request("gpu", 1)).await;
    assert_eq!(servers[0].status, "error");
    assert_eq!(servers[0].fault_code, "EB-FAULT-001");
    let none = decision.no_valid_host.unwrap();
    assert_eq!(
        none.dropped
            .iter()
            .find(|f| f.filter == "capacity")
            .unwrap()
            .dropped,
        4
    );
}

#[tokio::test]
async fn malformed_messages_go_to_the_dead_letters_with_the_reason() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    let (bus, prefix) = bus(&region).await;
    let junk: [&[u8]; 4] = [
        b"not json at all",
        b"{\"specversion\":\"9.9\"}",
        b"{\"specversion\":\"1.0\",\"id\":\"018f0000-0000-7000-8000-000000000000\",\"source\":\"/x\",\"type\":\"org.ebbtide.unknown\",\"time\":\"2026-01-01T00:00:00Z\",\"data\":{}}",
        b"\xff\xfe\x00",
    ];
    for (n, body) in junk.iter().enumerate() {
        let id = Uuid::from_u128(1000 + n as u128);
        bus.publish(
            &prefix.scheduler(),
            &OutgoingMessage::cloud_event(id, body.to_vec()),
        )
        .await
        .unwrap();
    }
    let mut dead = bus.consume(&prefix.dead_letter(), 10).await.unwrap();
    // They are dealt with beside the reader, in any order.
    let mut expected: Vec<&[u8]> = junk.to_vec();
    while !expected.is_empty() {
        let letter = dead.next().await.unwrap();
        let place = expected.iter().position(|body| letter.body == *body);
        expected.remove(place.expect("each message has one dead letter"));
        let note = letter.dead_letter.clone().unwrap();
        assert!(note.reason.starts_with("EB-MODEL-"), "{}", note.reason);
        assert_eq!(note.queue, prefix.scheduler().as_str());
        letter.ack().await;
    }
    // The agents' queues are as careful.
    let queue = prefix.agent("host-A").unwrap();
    bus.publish(
        &queue,
        &OutgoingMessage::cloud_event(Uuid::from_u128(2000), b"{}".to_vec()),
    )
    .await
    .unwrap();
    let letter = dead.next().await.unwrap();
    assert_eq!(letter.dead_letter.clone().unwrap().queue, queue.as_str());
    letter.ack().await;
    bus.close().await;
    region.wait_for_hosts_up().await.unwrap();
}

#[tokio::test]
async fn reports_about_evacuations_that_never_were_change_nothing() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    let cattle = fill(&region, 1).await;
    let victim = cattle.values().next().unwrap().clone();
    let (bus, prefix) = bus(&region).await;
    let server_id: ServerId = victim.parse().unwrap();
    let host = server(&region, &victim).await.host;
    let evacuation_id = EvacuationId(Uuid::from_u128(77));
    let at = Timestamp::from_millis(1_790_000_000_000);
    let bodies = [
        Body::Draining(Draining {
            evacuation_id,
            host: host.clone(),
            server_id,
            notified_at: at,
            deadline_at: at,
        }),
        Body::Evacuated(Evacuated {
            evacuation_id,
            host,
            server_id,
            how: EvacuationEnd::Terminated,
            at,
            unbilled_seconds: None,
            storage: None,
        }),
    ];
    for (n, body) in bodies.into_iter().enumerate() {
        let id = MessageId(Uuid::from_u128(3000 + n as u128));
        let message = Message {
            id,
            source: "/a/stranger".to_owned(),
            time: at,
            body,
        };
        let sent = OutgoingMessage::cloud_event(id.0, message.to_bytes().unwrap());
        // Twice: duplicates are as harmless.
        bus.publish(&prefix.scheduler(), &sent).await.unwrap();
        bus.publish(&prefix.scheduler(), &sent).await.unwrap();
    }
    bus.close().await;
    eventually(PATIENCE, async || {
        let log = region.scheduler_log();
        let followed = log.matches("not followed").count();
        if followed >= 4 {
            Ok(())
        } else {
            Err(format!("{followed} of 4 reports were looked at"))
        }
    })
    .await;
    assert_eq!(server(&region, &victim).await.status, "active");
}

#[tokio::test]
async fn a_repeated_acknowledgement_frees_the_room_once() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    fill(&region, 0).await;
    let (servers, decision) = create(&region, "urgent", request("half", 1)).await;
    let placement = &decision.placements[0];
    let victim = placement.victims[0].server_id.clone();
    let evacuation = until_evacuation(&region, &victim, "evacuated").await;
    until(&region, &servers[0].id, "active").await;
    let (bus, prefix) = bus(&region).await;
    let at = Timestamp::from_millis(1_790_000_000_000);
    let body = Body::Evacuated(Evacuated {
        evacuation_id: evacuation.id.parse().unwrap(),
        host: placement.host.clone(),
        server_id: victim.parse().unwrap(),
        how: EvacuationEnd::Terminated,
        at,
        unbilled_seconds: None,
        storage: None,
    });
    let id = MessageId(Uuid::from_u128(4000));
    let message = Message {
        id,
        source: "/ebbtide/agent".to_owned(),
        time: at,
        body,
    };
    for _ in 0..3 {
        bus.publish(
            &prefix.scheduler(),
            &OutgoingMessage::cloud_event(id.0, message.to_bytes().unwrap()),
        )
        .await
        .unwrap();
    }
    bus.close().await;
    // Another round trip through the same queue and region actor comes after those three.
    region.wait_for_hosts_up().await.unwrap();
    let mut admin = region.admin().await.unwrap();
    let get = v1::GetHostRequest {
        name: placement.host.clone(),
    };
    let host = admin
        .get_host(get)
        .await
        .unwrap()
        .into_inner()
        .host
        .unwrap();
    let cpu = host
        .resources
        .iter()
        .find(|r| r.resource_class == "VCPU")
        .unwrap();
    assert_eq!(
        (cpu.normal, cpu.preemptible, cpu.free_full),
        (4, 4, 0),
        "{cpu:?}"
    );
}
