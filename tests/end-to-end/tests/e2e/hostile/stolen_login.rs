//! The stolen login of an agent where everything is as large clouds have it: AMQP over TLS, quorum
//! queues, several schedulers on PostgreSQL.

use crate::kit::{create, flavor, preemptible, request, until};
use crate::secure::agents::{PASSWORD, heartbeat, make_logins};
use crate::secure::certificates::Authority;
use ebbtide_bus::{AmqpBus, AmqpConfig, Bus, BusIdentity, QueueKind, QueuePrefix};
use ebbtide_harness::{RabbitMq, ServerSettings, free_port};
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Database, Region, RegionOptions};
use ebbtide_proto::v1;

const HOSTS: [&str; 2] = ["host-1.example", "host-2.example"];

#[tokio::test]
async fn a_stolen_login_gets_no_further_over_tls_with_quorum_queues_and_postgresql() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new("ours");
    let ca = authority.write(dir.path(), "ca");
    let server = authority.server(dir.path(), "server");
    let port = free_port().unwrap();
    let conf = format!(
        "listeners.ssl.default = 127.0.0.1:{port}\nssl_options.cacertfile = {{dir}}/ca.pem\nssl_options.certfile = {{dir}}/server.crt\n\
         ssl_options.keyfile = {{dir}}/server.key\nssl_options.verify = verify_none\n"
    );
    let settings = ServerSettings::temporary()
        .file("rabbitmq.conf", conf)
        .file("ca.pem", authority.pem())
        .file("server.crt", &server.certificate_pem)
        .file("server.key", &server.key_pem);
    let broker = RabbitMq::start_with(settings).await.unwrap();
    let url = |user: &str| format!("amqps://{user}:{PASSWORD}@localhost:{port}/%2f");
    let ca_line = format!("ca = {:?}\n", ca.display().to_string());
    let mut region = Region::prepare(RegionOptions {
        database: Database::Postgres,
        hosts: HOSTS.map(str::to_owned).to_vec(),
        broker_url: Some(url("ebbtide")),
        agent_urls: HOSTS
            .iter()
            .map(|host| ((*host).to_owned(), url(&format!("agent-{host}"))))
            .collect(),
        bus: format!("queue_type = \"quorum\"\n{ca_line}"),
        scheduler_bus: "agent_identity = \"user-id\"".to_owned(),
        agent_bus: "identity = \"user-id\"".to_owned(),
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    make_logins(&broker, &region, &HOSTS).await;
    region.start_scheduler().await.unwrap();
    let _second = region.start_peer("second").await.unwrap();
    for host in HOSTS {
        region.start_agent(host).unwrap();
    }
    region.wait_for_hosts_up().await.unwrap();

    // It works: a preemption from end to end.
    preemptible(&region, "spot", 8, 0).await;
    flavor(&region, "whole", 8, &[]).await;
    let (cattle, _) = create(&region, "cattle", request("spot", 2)).await;
    for server in &cattle {
        until(&region, &server.id, "active").await;
    }
    let (pets, _) = create(&region, "pet", request("whole", 1)).await;
    let pet = until(&region, &pets[0].id, "active").await;
    let left = cattle
        .iter()
        .find(|server| server.host != pet.host)
        .unwrap();

    // A lie about the other host, in its name.
    let (liar, other) = match left.host == HOSTS[0] {
        true => (HOSTS[1], HOSTS[0]),
        false => (HOSTS[0], HOSTS[1]),
    };
    let mut config = AmqpConfig::new(
        vec![url(&format!("agent-{liar}")).parse().unwrap()],
        "thief",
    );
    config.identity = BusIdentity::Agent;
    config.queue_kind = QueueKind::Quorum;
    config.tls_files.ca = Some(ca);
    let thief = AmqpBus::connect(config, PATIENCE).await.unwrap();
    let prefix = QueuePrefix::new(region.prefix()).unwrap();
    let lie = heartbeat(other);
    thief.publish(&prefix.scheduler(), &lie).await.unwrap();
    let mut guest = AmqpConfig::new(vec![broker.url().parse().unwrap()], "operator");
    guest.queue_kind = QueueKind::Quorum;
    let operator = AmqpBus::connect(guest, PATIENCE).await.unwrap();
    let mut letters = operator.consume(&prefix.dead_letter(), 1).await.unwrap();
    let letter = tokio::time::timeout(PATIENCE, letters.next()).await;
    let letter = letter.unwrap().unwrap();
    let reason = letter.dead_letter.as_ref().unwrap().reason.clone();
    assert!(reason.starts_with("EB-ACCESS-012"), "{reason}");
    letter.ack().await;

    // Another host's notices can be neither read nor written, and reports of others not read.
    let others = prefix.agent(other).unwrap();
    for (what, refused) in [
        ("read", thief.consume(&others, 1).await.map(drop)),
        ("write", thief.publish(&others, &lie).await),
        (
            "reports",
            thief.consume(&prefix.scheduler(), 1).await.map(drop),
        ),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.code(), "EB-BUS-008", "{what}: {error}");
    }
    let get = v1::GetServerRequest {
        id: left.id.clone(),
    };
    let mut servers = region.servers().await.unwrap();
    let there = servers.get_server(get).await.unwrap().into_inner();
    assert_eq!(there.server.unwrap().status, "active");
    crate::kit::nothing_is_overcommitted(&region).await;
}
