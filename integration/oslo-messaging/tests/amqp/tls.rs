//! TLS, several brokers, and logins that fail.

use std::time::Duration;

use ebbtide_harness::{Process, ProcessCommand};
use oslo_messaging::{
    CallOptions, Map, MessagingError, RabbitOptions, RpcClient, ServerOptions, Transport,
    TransportStatus, TransportUrl,
};

use crate::support::{Book, PATIENCE, Place, soon};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls");

/// TLS in front of the broker.
struct TlsBroker {
    process: Process,
    port: u16,
    _folder: tempfile::TempDir,
}

impl TlsBroker {
    async fn start(place: &Place, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = place.address();
        let broker_port = address.rsplit_once(':').unwrap().1;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/tls_proxy.py");
        let process = ProcessCommand::new("tls", "/usr/bin/python3")
            .args([script, FOLDER, broker_port])
            .args(more.iter().copied())
            .spawn(folder.path().join("tls.log"))
            .unwrap();
        let line = process.wait_for_line("READY", PATIENCE).await.unwrap();
        let port = line.rsplit(' ').next().unwrap().trim().parse().unwrap();
        Self {
            process,
            port,
            _folder: folder,
        }
    }

    /// The URL through TLS, under this host name.
    fn url(&self, place: &Place, host: &str, query: &str) -> TransportUrl {
        let url = place
            .url
            .replacen(&place.address(), &format!("{host}:{}", self.port), 1);
        format!("{url}?ssl=true&{query}").parse().unwrap()
    }
}

fn transport(url: &TransportUrl, place: &Place) -> Transport {
    let options = RabbitOptions::for_url(url, |_| None).unwrap();
    Transport::start(url, options, &place.exchange).unwrap()
}

async fn echo(place: &Place, transport: &Transport) {
    let server = place
        .serve(transport, "h1", ServerOptions::default(), &Book::default())
        .await;
    let client = RpcClient::new(transport);
    let options = CallOptions::default();
    let (target, none) = (place.target(), Map::new());
    soon(
        "a reply",
        client.call(&target, &none, "echo", &none, &options),
    )
    .await
    .unwrap();
    server.stop(Duration::from_secs(5)).await;
}

async fn problem(transport: &Transport) -> MessagingError {
    let status = soon(
        "a problem",
        transport.status_change(&TransportStatus::Down(None)),
    )
    .await;
    match status {
        TransportStatus::Down(Some(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_is_trusted_by_its_ca_and_its_name_only() {
    let place = Place::shared().await;
    let broker = TlsBroker::start(&place, &[]).await;
    let ca = format!("ssl_ca_file={FOLDER}/ca.pem");
    let good = transport(&broker.url(&place, "localhost", &ca), &place);
    soon("a connection", good.wait_connected(PATIENCE))
        .await
        .unwrap();
    echo(&place, &good).await;
    good.close().await;
    assert_eq!(good.status(), TransportStatus::Closed);
    // A name that the certificate does not contain, and a CA that the client does not trust.
    for (host, query) in [("127.0.0.1", ca.as_str()), ("localhost", "")] {
        let bad = transport(&broker.url(&place, host, query), &place);
        let error = problem(&bad).await;
        assert_eq!(error.code(), "EB-OSLO-004", "{host} {query}: {error}");
        assert!(error.to_string().contains("certificate"), "{error}");
        bad.close().await;
    }
    assert!(
        broker.process.exit_status().is_none(),
        "the proxy itself has ended"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_wants_a_client_certificate_gets_it() {
    let place = Place::shared().await;
    let broker = TlsBroker::start(&place, &["client"]).await;
    let ca = format!("ssl_ca_file={FOLDER}/ca.pem");
    let with = format!("{ca}&ssl_cert_file={FOLDER}/client.pem&ssl_key_file={FOLDER}/client.key");
    let good = transport(&broker.url(&place, "localhost", &with), &place);
    soon("a connection", good.wait_connected(PATIENCE))
        .await
        .unwrap();
    echo(&place, &good).await;
    good.close().await;
    let bad = transport(&broker.url(&place, "localhost", &ca), &place);
    assert_eq!(problem(&bad).await.code(), "EB-OSLO-004");
    bad.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_down_or_refuses_is_passed_over_for_the_next_one() {
    let place = Place::shared().await;
    let address = place.address();
    let dead = format!("127.0.0.1:{}", ebbtide_harness::free_port().unwrap());
    let (before, after) = place.url.split_once(&address).unwrap();
    let credentials = before.trim_start_matches("rabbit://");
    // A port without a listener, a wrong password, and the right one.
    let url = format!("{before}{dead},wrong:geheim@{address},{credentials}{address}{after}");
    let several = transport(&url.parse().unwrap(), &place);
    let connected = ebbtide_harness::eventually(PATIENCE, async || {
        match several.wait_connected(PATIENCE).await {
            Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    });
    soon("a connection", connected).await;
    echo(&place, &several).await;
    several.close().await;

    let wrong = format!("rabbit://wrong:geheim@{address}{after}");
    let refused = transport(&wrong.parse().unwrap(), &place);
    let error = soon("a refusal", refused.wait_connected(PATIENCE))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "EB-OSLO-005");
    assert!(
        !error.to_string().contains("geheim") && !format!("{refused:?}").contains("geheim"),
        "{error}"
    );
    refused.close().await;

    let nowhere = format!("{before}{address}/no-such-vhost");
    let refused = transport(&nowhere.parse().unwrap(), &place);
    let error = soon("a refusal", refused.wait_connected(PATIENCE))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "EB-OSLO-006", "{error}");
    refused.close().await;
}
