//! Connections that send nothing, or as little as they can.

use crate::region::{Region, with};
use ebbtide_proto::v1;
use ebbtide_proto::v1::scheduler_client::SchedulerClient;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
const HALF: &[u8] = b"PRI * HTTP/2";
/// Far above all deadlines of these tests.
const PATIENCE: Duration = Duration::from_secs(20);

async fn say(address: SocketAddr, words: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(words).await.unwrap();
    stream
}

/// Waits until the other side has closed the connection.
async fn closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    // A reset also closes the connection.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest))
        .await
        .expect("the connection stays open");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_of_one_address_keep_no_other_client_out() {
    // As by default, but smaller, so that the test works with the open-file limit of every
    // environment.
    let limits = "[limits]\nconnections = 200\nconnections_per_address = 100\nunauthenticated_per_address = 20\n";
    let region = Region::start(limits).await;
    let channel = region.channel().await.unwrap();
    let mut scheduler = SchedulerClient::new(channel);
    let watch = with(v1::WatchRequest::default(), &region.operator);
    let mut events = scheduler.watch(watch).await.unwrap().into_inner();
    let mut held = Vec::new();
    for _ in 0..100 {
        held.push(say(region.grpc, b"").await);
        held.push(say(region.grpc, HALF).await);
        held.push(say(region.grpc, PREFACE).await);
        held.push(say(region.http, b"").await);
        // Other clients can connect all the time.
        if held.len() % 100 == 0 {
            region.list(&region.modest).await.unwrap();
        }
    }
    region.list(&region.operator).await.unwrap();
    assert!(region.refusals("evicted").await > 0);
    // An event stream that was open before is still open.
    let channel = region.channel().await.unwrap();
    let mut servers = v1::servers_client::ServersClient::new(channel);
    let created = crate::region::create(&mut servers, &region.modest, 1).await;
    created.unwrap();
    let event = timeout(PATIENCE, events.message()).await.unwrap();
    assert!(event.unwrap().is_some());
    drop(events);
    region.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_is_ended_and_an_idle_watch_is_not() {
    // Long enough for a client that waits for its turn on a busy machine.
    let limits = "[limits]\nfirst_bytes_seconds = 1\nheaders_seconds = 1.5\n\
                  unauthenticated_idle_seconds = 2\nidle_seconds = 3\n";
    let region = Region::start(limits).await;
    let channel = region.channel().await.unwrap();
    let mut scheduler = SchedulerClient::new(channel);
    let watch = with(v1::WatchRequest::default(), &region.operator);
    let mut events = scheduler.watch(watch).await.unwrap().into_inner();
    let mut held = Vec::new();
    for (address, words) in [
        (region.grpc, b"".as_slice()),
        (region.grpc, HALF),
        (region.grpc, PREFACE),
        (region.http, b""),
        (region.http, b"GET /healthz HT"),
        // Kept alive, and never used again.
        (region.http, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"),
    ] {
        held.push(say(address, words).await);
    }
    for stream in held {
        closed(stream).await;
    }
    // Headers that arrive byte by byte do not move the deadline.
    let mut dripping = say(region.http, b"GET /healthz HTTP/1.1\r\n").await;
    let dripped = timeout(PATIENCE, async {
        while dripping.write_all(b"A: b\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    dripped.await.expect("the connection stays open");
    assert!(region.refusals("silent").await >= 6);
    // During all that time, which is longer than any deadline, nothing was sent on the event
    // stream.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let channel = region.channel().await.unwrap();
    let mut servers = v1::servers_client::ServersClient::new(channel);
    crate::region::create(&mut servers, &region.modest, 1)
        .await
        .unwrap();
    let event = timeout(PATIENCE, events.message()).await.unwrap();
    assert!(event.unwrap().is_some());
    drop(events);
    region.end().await;
}
