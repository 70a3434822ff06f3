//! TLS to the real RabbitMQ, with certificates on both sides.

use super::certificates::Authority;
use super::kit::soon;
use ebbtide_harness::{RabbitMq, ServerSettings, free_port};
use ebbtide_integration_tests::{Region, RegionOptions};

#[tokio::test]
async fn scheduler_and_agents_reach_a_broker_that_wants_certificates() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let ca = ours.write(dir.path(), "ca");
    let server = ours.server(dir.path(), "server");
    let client = ours.client(dir.path(), "client", &["dns:region.example"]);
    let stranger = theirs.client(dir.path(), "stranger", &["dns:region.example"]);
    let port = free_port().unwrap();
    let conf = format!(
        "listeners.ssl.default = 127.0.0.1:{port}\nssl_options.cacertfile = {{dir}}/ca.pem\nssl_options.certfile = {{dir}}/server.crt\n\
         ssl_options.keyfile = {{dir}}/server.key\nssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = true\n"
    );
    let settings = ServerSettings::temporary()
        .file("rabbitmq.conf", conf)
        .file("ca.pem", ours.pem())
        .file("server.crt", &server.certificate_pem)
        .file("server.key", &server.key_pem);
    let _broker = RabbitMq::start_with(settings).await.unwrap();
    let url = format!("amqps://guest:guest@localhost:{port}/%2f");
    let bus = |pair: Option<&super::certificates::Pair>| {
        let mut text = format!("ca = {:?}\n", ca.display().to_string());
        if let Some(pair) = pair {
            text += &format!(
                "certificate = {:?}\nkey = {:?}\n",
                pair.certificate.display().to_string(),
                pair.key.display().to_string()
            );
        }
        text
    };
    let options = |bus: String| RegionOptions {
        hosts: vec!["host-A".to_owned()],
        broker_url: Some(url.clone()),
        bus,
        ..RegionOptions::default()
    };
    // Up means: the agent's heartbeat has come through the broker.
    let _region = Region::start(options(bus(Some(&client)))).await.unwrap();

    for pair in [None, Some(&stranger)] {
        let mut region = Region::prepare(options(bus(pair))).await.unwrap();
        region.start_scheduler().await.unwrap();
        let address = region.address("http").unwrap().replace("http://", "");
        soon(async || {
            let ready = super::limits::get(&address, "/readyz", None).await;
            match ready.contains("no broker after") {
                true => Ok(()),
                false => Err(ready),
            }
        })
        .await;
    }
}
