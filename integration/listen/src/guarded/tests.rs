use super::*;
use crate::{ConnectionLimits, ConnectionSlots, Reporter};
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

struct TestHarness {
    client: DuplexStream,
    server: GuardedConnection<DuplexStream>,
    session: ConnectionHandle,
    began: Instant,
}

fn rig(protocol: Protocol) -> TestHarness {
    let slots = ConnectionSlots::new(ConnectionLimits::default(), Reporter::new("test", |_| {}));
    let session = slots.take(Ipv4Addr::LOCALHOST.into()).unwrap();
    let (client, server) = tokio::io::duplex(64);
    let server = GuardedConnection::new(server, session.clone(), protocol, Deadlines::default());
    TestHarness {
        client,
        server,
        session,
        began: clock::timer(),
    }
}

impl TestHarness {
    /// Reads to the end; how long that took.
    async fn end(&mut self) -> Duration {
        let mut all = Vec::new();
        self.server.read_to_end(&mut all).await.unwrap();
        clock::timer() - self.began
    }

    fn why(&self) -> Option<CloseReason> {
        self.session.state.lock().closed
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_byte_ends() {
    let mut rig = rig(Protocol::Http2);
    assert_eq!(rig.end().await, Deadlines::default().first_bytes);
    assert_eq!(rig.why(), Some(CloseReason::Silent));
}

#[tokio::test(start_paused = true)]
async fn half_a_preface_ends_and_a_whole_one_has_longer() {
    let mut half = rig(Protocol::Http2);
    half.client.write_all(b"PRI * HTTP/2").await.unwrap();
    assert_eq!(half.end().await, Deadlines::default().opening);
    let mut whole = rig(Protocol::Http2);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    whole.client.write_all(preface).await.unwrap();
    assert_eq!(whole.end().await, Deadlines::default().unauthenticated_idle);
}

#[tokio::test(start_paused = true)]
async fn headers_that_drip_end_when_they_were_due() {
    let mut rig = rig(Protocol::Http1);
    let mut received = [0; 1];
    let due = rig.began + Deadlines::default().opening;
    while clock::timer() + Duration::from_secs(2) < due {
        rig.client.write_all(b"x").await.unwrap();
        assert_eq!(rig.server.read(&mut received).await.unwrap(), 1);
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(rig.end().await, Deadlines::default().opening);
}

#[tokio::test(start_paused = true)]
async fn a_call_in_progress_keeps_the_connection_and_its_end_begins_the_idle_time() {
    for (authenticated, idle) in [
        (false, Deadlines::default().unauthenticated_idle),
        (true, Deadlines::default().idle),
    ] {
        let mut rig = rig(Protocol::Http2);
        let call = rig.session.call();
        if authenticated {
            rig.session.authenticated();
        }
        let day = Duration::from_secs(86_400);
        let waited = tokio::time::timeout(day, rig.end()).await;
        assert!(waited.is_err(), "a watch of a day stays");
        drop(call);
        assert_eq!(rig.end().await, day + idle);
        assert_eq!(rig.why(), Some(CloseReason::Idle));
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_last_call_sets_the_deadline_of_a_reader_that_waits() {
    let mut rig = rig(Protocol::Http2);
    let call = rig.session.call();
    let minute = Duration::from_secs(60);
    let ended = async {
        tokio::time::sleep(minute).await;
        drop(call);
        std::future::pending::<()>().await;
    };
    let took = tokio::select! {
        took = rig.end() => took,
        () = ended => unreachable!(),
    };
    assert_eq!(took, minute + Deadlines::default().unauthenticated_idle);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_given_up() {
    let mut rig = rig(Protocol::Http1);
    let _call = rig.session.call();
    let error = rig.server.write_all(&[0; 1_000]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(clock::timer() - rig.began, Deadlines::STALL);
    assert_eq!(rig.why(), Some(CloseReason::Stalled));
}
