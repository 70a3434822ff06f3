//! A tenant that asks for as much as it may.

use crate::kit::{Region, create};
use ebbtide_proto::v1::servers_client::ServersClient;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tonic::Code;
use tonic::transport::Channel;

#[allow(clippy::disallowed_methods)] // Times are what is measured.
async fn timed(servers: &mut ServersClient<Channel>, token: &str, count: u32) -> Duration {
    let begin = Instant::now();
    create(servers, token, count).await.unwrap();
    begin.elapsed()
}

/// The time that 95 of 100 calls do not exceed.
async fn p95(servers: &mut ServersClient<Channel>, token: &str) -> Duration {
    let mut times = Vec::new();
    for _ in 0..100 {
        times.push(timed(servers, token, 1).await);
    }
    times.sort_unstable();
    times[94]
}

/// No limit of this kind in the way of what the test is about.
const NO_RATE: &str = "[limits]\ntenant_requests_per_second = 1000000\ntenant_burst = 1000000\n\
                       [quotas]\nservers = 1000000\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_requests_of_one_project_delay_another_by_one_of_them_at_most() {
    let region = Region::start(NO_RATE).await;
    let mut greedy = ServersClient::new(region.channel().await.unwrap());
    let mut modest = ServersClient::new(region.channel().await.unwrap());
    let alone = p95(&mut modest, &region.modest).await;
    let mut large = Vec::new();
    for _ in 0..10 {
        large.push(timed(&mut greedy, &region.greedy, 1000).await);
    }
    large.sort_unstable();
    let stop = Arc::new(AtomicBool::new(false));
    let attackers: Vec<_> = (0..26)
        .map(|_| {
            let (mut greedy, token, stop) =
                (greedy.clone(), region.greedy.clone(), Arc::clone(&stop));
            #[allow(clippy::disallowed_methods)] // A test's own tasks.
            tokio::spawn(async move {
                let mut count = 0_u32;
                while !stop.load(Ordering::Relaxed) {
                    create(&mut greedy, &token, 1000).await.unwrap();
                    count += 1;
                }
                count
            })
        })
        .collect();
    let beside = p95(&mut modest, &region.modest).await;
    stop.store(true, Ordering::Relaxed);
    let mut done = 0;
    for attacker in attackers {
        done += attacker.await.unwrap();
    }
    assert!(done >= 26, "the attack took place");
    // In the order of arrival it would be 26 of them. The margin is for a machine that does other
    // things, too.
    let bound = alone * 3 + large[8] * 8;
    println!(
        "alone {alone:?}, beside {done} large ones {beside:?}, one large one {:?}",
        large[8]
    );
    assert!(
        beside < bound,
        "{alone:?} alone, {beside:?} beside: above {bound:?}"
    );
    region.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_request_leaves_one_server_and_can_be_repeated() {
    // The list comes after the request: it needs what the request leaves of the bucket.
    let region = Region::start("[limits]\ntenant_burst = 1000\n").await;
    let mut greedy = ServersClient::new(region.channel().await.unwrap());
    let answer = create(&mut greedy, &region.greedy, 200).await.unwrap();
    let [server] = answer.servers.as_slice() else {
        panic!("{} servers", answer.servers.len());
    };
    let message = &server.fault_message;
    assert!(message.contains("none of the 200 servers"), "{message}");
    assert_eq!(region.list(&region.greedy).await.unwrap().len(), 1);
    region.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_charged_by_its_instances_and_a_quota_counts_servers_in_error() {
    let limits = "[limits]\ntenant_requests_per_second = 0.01\ntenant_burst = 60\n\
                  [quotas]\nservers = 1000\n[[quotas.projects]]\nname = \"modest\"\nservers = 2\n";
    let region = Region::start(limits).await;
    let mut greedy = ServersClient::new(region.channel().await.unwrap());
    create(&mut greedy, &region.greedy, 50).await.unwrap();
    let refused = create(&mut greedy, &region.greedy, 50).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    // Another project has a bucket of its own, and a quota of its own.
    for _ in 0..2 {
        create(&mut greedy, &region.modest, 1).await.unwrap();
    }
    let refused = create(&mut greedy, &region.modest, 1).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    let words = refused.message();
    assert!(
        words.contains("has 2 servers") && words.contains("quota"),
        "{words}"
    );
    region.end().await;
}
