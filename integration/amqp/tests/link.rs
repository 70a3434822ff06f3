//! A link against ports of this process: which host is tried when. Logins need a broker; the tests
//! of the bus and of oslo-messaging have one.
#![allow(clippy::unwrap_used)] // Helpers of tests, too, stop at the first surprise.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ebbtide_amqp::{
    Backoff, Broker, ClientError, ConnectionPurpose, DialFailure, Dialer, HostChoice, Link,
    LinkEvent, LinkPolicy, LinkState, TlsFiles,
};
use ebbtide_runtime::login::Login;
use tokio::net::TcpSocket;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(60);

/// Long compared with everything that a test waits for.
const LONG_PAUSE: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
struct Problem(String);

impl From<DialFailure> for Problem {
    fn from(failure: DialFailure) -> Self {
        Self(format!("{}: {:?}", failure.broker, failure.problem))
    }
}

impl ClientError for Problem {
    fn code(&self) -> &'static str {
        "EB-TEST-001"
    }

    fn refused(operation: String, detail: String) -> Self {
        Self(format!("{operation}: {detail}"))
    }

    fn closed() -> Self {
        Self("closed".to_owned())
    }

    fn lost(broker: &str, problem: String) -> Self {
        Self(format!("{broker}: {problem}"))
    }
}

/// The same pause after each round.
struct Fixed(Duration);

impl Backoff for Fixed {
    fn after_loss(&mut self) -> Duration {
        self.0
    }

    fn after_round(&mut self) -> Duration {
        self.0
    }

    fn after_return(&mut self) -> Duration {
        Duration::ZERO
    }

    fn reset(&mut self) {}
}

/// The hosts from the last to the first; one that returned comes first.
struct Backwards(Vec<usize>);

impl HostChoice for Backwards {
    fn round(&mut self) -> Vec<usize> {
        self.0.clone()
    }

    fn connected(&mut self, _host: usize) {}

    fn lost(&mut self, _host: usize) {}

    fn returned(&mut self, host: usize) {
        self.0.retain(|other| *other != host);
        self.0.insert(0, host);
    }
}

/// A port that refuses connections and that no other process can take.
fn refusing_port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

struct Attempts {
    link: Link<Problem>,
    stop: CancellationToken,
    hosts: Arc<Mutex<Vec<String>>>,
}

impl Attempts {
    fn start(addresses: &[SocketAddr], pause: Duration, port_probe: Option<Duration>) -> Self {
        let broker = |(index, address): (usize, &SocketAddr)| {
            let uri = format!("amqp://u:p@{address}").parse().unwrap();
            Broker::new(uri, format!("host-{index}"))
        };
        let dialer = Dialer {
            brokers: Login::new(addresses.iter().enumerate().map(broker).collect()),
            tls: TlsFiles::default(),
            connection_name: "test".to_owned(),
            connect_timeout: Duration::from_secs(10),
            goodbye: "the test ends",
        };
        let policy = LinkPolicy {
            task: "test-link",
            purpose: ConnectionPurpose::Publish,
            backoff: Box::new(Fixed(pause)),
            hosts: Box::new(Backwards((0..addresses.len()).rev().collect())),
            port_probe,
        };
        let hosts: Arc<Mutex<Vec<String>>> = Arc::default();
        let (seen, stop) = (Arc::clone(&hosts), CancellationToken::new());
        let observer = move |event: LinkEvent<'_, Problem>| {
            if let LinkEvent::Failed(host, _) = event {
                seen.lock().unwrap().push(host.to_owned());
            }
        };
        let link = Link::start(Arc::new(dialer), policy, observer, stop.clone());
        Self { link, stop, hosts }
    }

    /// Waits for this many failed attempts and names their hosts.
    async fn failed(&self, count: usize) -> Vec<String> {
        let mut state = self.link.watch();
        let enough = state.wait_for(|_| self.hosts.lock().unwrap().len() >= count);
        tokio::time::timeout(PATIENCE, enough)
            .await
            .unwrap()
            .unwrap();
        self.hosts.lock().unwrap().clone()
    }

    async fn stop(self) {
        self.stop.cancel();
        let mut state = self.link.watch();
        self.link.finish(PATIENCE).await;
        assert!(matches!(*state.borrow_and_update(), LinkState::Closed));
        assert!(self.link.session().await.is_none());
    }
}

#[tokio::test]
async fn every_round_tries_the_hosts_in_the_order_of_the_strategy() {
    let (ports, addresses): (Vec<_>, Vec<_>) = (0..3).map(|_| refusing_port()).unzip();
    let attempts = Attempts::start(&addresses, Duration::from_millis(1), None);
    let hosts = attempts.failed(6).await;
    let round = ["host-2", "host-1", "host-0"];
    assert_eq!(hosts[..6], [round, round].concat());
    assert!(attempts.link.problem().is_some() && attempts.link.current().is_none());
    attempts.stop().await;
    drop(ports);
}

#[tokio::test]
async fn a_pause_ends_when_a_port_that_refused_connections_accepts_them() {
    let (mut ports, addresses): (Vec<_>, Vec<_>) = (0..3).map(|_| refusing_port()).unzip();
    let probe = Some(Duration::from_millis(10));
    let attempts = Attempts::start(&addresses, LONG_PAUSE, probe);
    attempts.failed(3).await;
    let listener = ports.remove(1).listen(8).unwrap();
    // The probe, and then the attempt: it gets no answer, so that no broker is needed.
    for _ in 0..2 {
        let accepted = tokio::time::timeout(PATIENCE, listener.accept()).await;
        drop(accepted.unwrap().unwrap());
    }
    let hosts = attempts.failed(4).await;
    assert_eq!(hosts[3], "host-1", "the returned host comes first");
    attempts.stop().await;
}

#[tokio::test]
async fn without_probes_a_pause_is_kept() {
    let (port, address) = refusing_port();
    let attempts = Attempts::start(&[address], LONG_PAUSE, None);
    attempts.failed(1).await;
    let listener = port.listen(8).unwrap();
    let accepted = tokio::time::timeout(Duration::from_millis(300), listener.accept()).await;
    assert!(accepted.is_err(), "the link connected during its pause");
    attempts.stop().await;
}
