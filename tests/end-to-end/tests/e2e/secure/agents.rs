//! Agents act for their own host only: with the real RabbitMQ, its rights, and its validated
//! user-id.

use super::kit::soon;
use ebbtide_bus::{
    AmqpBus, AmqpConfig, Bus, BusIdentity, Definitions, Login, OutgoingMessage, QueuePrefix,
};
use ebbtide_harness::RabbitMq;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Region, RegionOptions};
use ebbtide_model::message::{Body, Heartbeat, Message};
use ebbtide_model::{MessageId, ServerId};
use ebbtide_proto::v1;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use uuid::Uuid;

pub(crate) const PASSWORD: &str = "geheim";

pub(super) fn url(broker: &RabbitMq, user: &str) -> String {
    broker
        .url()
        .replace("guest:guest", &format!("{user}:{PASSWORD}"))
}

pub(super) async fn connected(broker: &RabbitMq, user: &str, identity: BusIdentity) -> AmqpBus {
    let mut config = AmqpConfig::new(vec![url(broker, user).parse().unwrap()], "a thief");
    config.identity = identity;
    config.operation_timeout = Duration::from_secs(5);
    AmqpBus::connect(config, PATIENCE).await.unwrap()
}

pub(crate) fn heartbeat(host: &str) -> OutgoingMessage {
    let heartbeat = Heartbeat {
        host: host.to_owned(),
        session: Uuid::from_u128(7),
        sequence: 1_000_000,
        inventory: BTreeMap::new(),
        traits: Default::default(),
        servers: Vec::new(),
        storage: None,
    };
    outgoing(Body::Heartbeat(heartbeat), host)
}

fn outgoing(body: Body, host: &str) -> OutgoingMessage {
    let id = Uuid::from_u128(99);
    let message = Message {
        id: MessageId(id),
        source: format!("/ebbtide/agent/{host}"),
        time: "2026-01-01T00:00:00Z".parse().unwrap(),
        body,
    };
    OutgoingMessage::cloud_event(id, message.to_bytes().unwrap())
}

/// Makes the logins of the scheduler and of these hosts' agents, with the rights that `ebbtide
/// init` gives them.
pub(crate) async fn make_logins(broker: &RabbitMq, region: &Region, hosts: &[&str]) {
    let prefix = QueuePrefix::new(region.prefix()).unwrap();
    let login = |user: &str| Login::new(user, PASSWORD, [1, 2, 3, 4]);
    let mut definitions = Definitions::default();
    definitions.scheduler(&login("ebbtide"), &prefix, "/");
    for host in hosts {
        let login = login(&format!("agent-{host}"));
        definitions.agent(&login, &prefix, "/", host).unwrap();
    }
    let file = broker.directory().join("definitions.json");
    std::fs::write(&file, serde_json::to_string(&definitions).unwrap()).unwrap();
    // The broker's user reads it, not the test's.
    let mode = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&file, mode).unwrap();
    let file = file.display().to_string();
    broker
        .control(&["import_definitions", &file])
        .await
        .unwrap();
}

pub(super) async fn cloud(queue_type: &str) -> (RabbitMq, Region) {
    cloud_with(queue_type, "").await
}

/// The same, with lines for the `[region]` section.
pub(super) async fn cloud_with(queue_type: &str, region: &str) -> (RabbitMq, Region) {
    let broker = RabbitMq::start().await.unwrap();
    let hosts = ["host-1.example", "host-2.example"];
    let mut region = Region::prepare(RegionOptions {
        hosts: hosts.map(str::to_owned).to_vec(),
        broker_url: Some(url(&broker, "ebbtide")),
        agent_urls: hosts
            .iter()
            .map(|host| ((*host).to_owned(), url(&broker, &format!("agent-{host}"))))
            .collect(),
        bus: format!("queue_type = \"{queue_type}\""),
        region: region.to_owned(),
        scheduler_bus: "agent_identity = \"user-id\"".to_owned(),
        agent_bus: "identity = \"user-id\"".to_owned(),
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    make_logins(&broker, &region, &hosts).await;
    region.start_scheduler().await.unwrap();
    for host in hosts {
        region.start_agent(host).unwrap();
    }
    region.wait_for_hosts_up().await.unwrap();
    (broker, region)
}

#[tokio::test]
async fn a_region_works_with_logins_that_can_do_no_more_than_they_need() {
    for queue_type in ["classic", "quorum"] {
        let (_broker, region) = cloud(queue_type).await;
        crate::kit::preemptible(&region, "spot", 8, 0).await;
        crate::kit::flavor(&region, "whole", 8, &[]).await;
        let (cattle, _) =
            crate::kit::create(&region, "cattle", crate::kit::request("spot", 2)).await;
        for server in &cattle {
            crate::kit::until(&region, &server.id, "active").await;
        }
        let (pets, _) = crate::kit::create(&region, "pet", crate::kit::request("whole", 1)).await;
        crate::kit::until(&region, &pets[0].id, "active").await;
        assert!(!region.scheduler_log().contains("EB-ACCESS-012"));
    }
}

#[tokio::test]
async fn a_stolen_login_speaks_for_no_other_host_and_reads_no_other_hosts_notices() {
    let (broker, region) = cloud("classic").await;
    let prefix = QueuePrefix::new(region.prefix()).unwrap();
    let thief = connected(&broker, "agent-host-1.example", BusIdentity::Agent).await;

    // A lie about another host gets as far as the dead letters, with the code. (Believed, it would
    // empty the host.)
    thief
        .publish(&prefix.scheduler(), &heartbeat("host-2.example"))
        .await
        .unwrap();
    let guest = AmqpConfig::new(vec![broker.url().parse().unwrap()], "operator");
    let operator = AmqpBus::connect(guest, PATIENCE).await.unwrap();
    let mut letters = operator.consume(&prefix.dead_letter(), 1).await.unwrap();
    let letter = tokio::time::timeout(PATIENCE, letters.next())
        .await
        .unwrap()
        .unwrap();
    let note = letter.dead_letter.clone().unwrap();
    assert!(note.reason.starts_with("EB-ACCESS-012"), "{note:?}");
    letter.ack().await;
    let mut admin = region.admin().await.unwrap();
    let host = v1::GetHostRequest {
        name: "host-2.example".to_owned(),
    };
    let host = admin
        .get_host(host)
        .await
        .unwrap()
        .into_inner()
        .host
        .unwrap();
    assert!(
        !host.resources.is_empty() && host.health == "up",
        "{host:?}"
    );
    // The scheduler also rejects a message without a verified agent login. Even the scheduler's own
    // login may not report for a host.
    operator
        .publish(&prefix.scheduler(), &heartbeat("host-2.example"))
        .await
        .unwrap();
    let letter = tokio::time::timeout(PATIENCE, letters.next())
        .await
        .unwrap()
        .unwrap();
    assert!(
        letter
            .dead_letter
            .as_ref()
            .unwrap()
            .reason
            .starts_with("EB-ACCESS-012")
    );
    letter.ack().await;
    let address = region.address("http").unwrap().replace("http://", "");
    soon(async || {
        let metrics = super::limits::get(&address, "/metrics", None).await;
        match metrics.contains("ebbtide_refusals_total{kind=\"report\"} 2") {
            true => Ok(()),
            false => Err(metrics),
        }
    })
    .await;

    // Another host's notices can neither be read nor written, whichever way is tried.
    let other = prefix.agent("host-2.example").unwrap();
    let refused = |what: &str, error: ebbtide_bus::BusError| {
        assert_eq!(error.code(), "EB-BUS-008", "{what}: {error}");
        assert!(error.to_string().contains("refused"), "{what}: {error}");
    };
    refused("read", thief.consume(&other, 1).await.unwrap_err());
    refused("declare", thief.declare(&other).await.unwrap_err());
    let delete = ebbtide_model::message::Delete {
        storage: None,
        server_id: ServerId(Uuid::from_u128(5)),
    };
    let order = outgoing(Body::Delete(delete), "host-2.example");
    refused("write", thief.publish(&other, &order).await.unwrap_err());
    let plain = connected(&broker, "agent-host-1.example", BusIdentity::None).await;
    refused(
        "report past the exchange",
        plain
            .publish(&prefix.scheduler(), &heartbeat("host-2.example"))
            .await
            .unwrap_err(),
    );
    refused(
        "read reports",
        plain.consume(&prefix.scheduler(), 1).await.unwrap_err(),
    );
}
