//! Many readers of events at the same time.

use super::kit::OpenStack;
use crate::curl::{HttpService, ask};
use crate::region::with;
use ebbtide_config::CallerLimits;
use ebbtide_proto::v1;
use ebbtide_proto::v1::scheduler_client::SchedulerClient;
use ebbtide_runtime::clock;
use futures::future::join_all;
use serde_json::json;
use std::time::Duration;
use tonic::Streaming;
use tonic::transport::Endpoint;

/// Readers at the same time.
const WATCHERS: u32 = 1000;
/// Connections that they share.
const CONNECTIONS: usize = 8;
/// Events that each of them reads.
const EVENTS: u64 = 12;

async fn watch(cloud: &OpenStack) -> Vec<Streaming<v1::WatchEvent>> {
    let address = format!("http://{}", cloud.address());
    let channels = join_all((0..CONNECTIONS).map(|_| {
        let endpoint = Endpoint::new(address.clone()).unwrap();
        async move { endpoint.connect().await.unwrap() }
    }));
    let channels = channels.await;
    let streams = channels.into_iter().cycle().take(WATCHERS as usize);
    let streams = streams.map(|channel| async move {
        let mut scheduler = SchedulerClient::new(channel);
        let request = with(v1::WatchRequest::default(), &cloud.keystone.admin);
        scheduler.watch(request).await.unwrap().into_inner()
    });
    join_all(streams).await
}

/// Reads so many events, each of which follows the one before it.
async fn read(mut events: Streaming<v1::WatchEvent>) {
    let mut before = None;
    for _ in 0..EVENTS {
        let event = events.message().await.unwrap().expect("the stream goes on");
        let lagged = matches!(event.event, Some(v1::watch_event::Event::Lagged(_)));
        assert!(!lagged, "events were missed after {before:?}");
        if let Some(before) = before {
            assert_eq!(event.sequence, before + 1);
        }
        before = Some(event.sequence);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_watchers_miss_no_event_and_one_more_is_refused() {
    let limits = CallerLimits {
        watchers: WATCHERS,
        ..CallerLimits::default()
    };
    let cloud = OpenStack::start_with("", limits, async |_, _, _| ()).await;
    let began = clock::now();
    let streams = watch(&cloud).await;
    let opened = clock::now().millis_since(began);
    let refused = ask(&cloud, &cloud.keystone.admin, "/v1/events", &[]).await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.json()["code"], json!("EB-ACCESS-008"));
    let began = clock::now();
    let readers = join_all(streams.into_iter().map(read));
    let changes = async {
        for vm_state in ["stopped", "active"].into_iter().cycle() {
            cloud.servers_become(vm_state).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    };
    let read = tokio::time::timeout(Duration::from_secs(120), async {
        tokio::select! {
            read = readers => read,
            () = changes => unreachable!("changes go on"),
        }
    });
    read.await.unwrap();
    println!(
        "{WATCHERS} watchers: opened in {opened} ms, each read {EVENTS} events within {} ms",
        clock::now().millis_since(began)
    );
    cloud.end().await;
}
