//! A tenant that sends as many requests as it can.

use crate::region::{Region, create};
use ebbtide_proto::v1::servers_client::ServersClient;
use ebbtide_runtime::clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tonic::Code;
use tonic::transport::Channel;

async fn timed(servers: &mut ServersClient<Channel>, token: &str, count: u32) -> Duration {
    let begin = clock::instant();
    create(servers, token, count).await.unwrap();
    begin.elapsed()
}

/// The 50th, 95th and 99th percentile.
fn percentiles(mut times: Vec<Duration>) -> [Duration; 3] {
    times.sort_unstable();
    [50, 95, 99].map(|of| times[(times.len() * of).div_ceil(100) - 1])
}

/// This many creates at a rate below every limit.
async fn paced(region: &Region, servers: &mut ServersClient<Channel>, calls: u32) -> Vec<Duration> {
    let mut pace = tokio::time::interval(Duration::from_millis(30));
    let mut times = Vec::new();
    for _ in 0..calls {
        pace.tick().await;
        times.push(timed(servers, &region.modest, 1).await);
    }
    times
}

/// Requests this many servers again and again, as 26 clients at once; returns the number of
/// requests that were not refused.
fn attack(
    region: &Region,
    greedy: &ServersClient<Channel>,
    servers: u32,
    stop: &Arc<AtomicBool>,
) -> Vec<tokio::task::JoinHandle<u32>> {
    let client = |_| {
        let (mut greedy, token, stop) = (greedy.clone(), region.greedy.clone(), Arc::clone(stop));
        #[allow(clippy::disallowed_methods)] // A test's own tasks.
        tokio::spawn(async move {
            let mut count = 0_u32;
            while !stop.load(Ordering::Relaxed) {
                match create(&mut greedy, &token, servers).await {
                    Ok(_) => count += 1,
                    Err(status) => {
                        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
                        // Ten times the allowed rate, all clients together; they share the machine
                        // with the scheduler.
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            }
            count
        })
    };
    (0..26).map(client).collect()
}

/// The 95th percentile.
async fn p95(servers: &mut ServersClient<Channel>, token: &str) -> Duration {
    let mut times = Vec::new();
    for _ in 0..100 {
        times.push(timed(servers, token, 1).await);
    }
    times.sort_unstable();
    times[94]
}

/// Limits that are too high to affect the test.
const NO_RATE: &str = "[limits]\ntenant_requests_per_second = 1000000\ntenant_burst = 1000000\n\
                       [quotas]\nservers = 1000000\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_requests_of_one_project_delay_another_by_one_of_them_at_most() {
    let mut region = Region::start(NO_RATE).await;
    let mut greedy = ServersClient::new(region.channel().await.unwrap());
    let mut modest = ServersClient::new(region.channel().await.unwrap());
    let alone = p95(&mut modest, &region.modest).await;
    let mut large = Vec::new();
    for _ in 0..10 {
        large.push(timed(&mut greedy, &region.greedy, 1000).await);
    }
    large.sort_unstable();
    let stop = Arc::new(AtomicBool::new(false));
    let attackers = attack(&region, &greedy, 1000, &stop);
    let beside = p95(&mut modest, &region.modest).await;
    stop.store(true, Ordering::Relaxed);
    let mut done = 0;
    for attacker in attackers {
        done += attacker.await.unwrap();
    }
    assert!(done >= 26, "the attack took place");
    // `region_actor/fair/tests.rs` counts how many of them go first; the times depend on this
    // machine.
    println!(
        "p95 alone {alone:?}, beside {done} large ones {beside:?}; one large one {:?}",
        large[8]
    );
    let with_log = region.database_bytes();
    let begin = clock::instant();
    region.restart().await;
    println!(
        "{done} refused requests of 1000 servers: the database has {} KiB ({} with its log before the restart), a restart takes {:?}",
        region.database_bytes() / 1024,
        with_log / 1024,
        begin.elapsed()
    );
    let each = region.database_bytes() / u64::from(done);
    assert!(
        each < 128 * 1024,
        "{each} bytes for each of {done} refused requests"
    );
    let rows = region.list(&region.greedy).await.unwrap().len();
    assert!(rows <= done as usize + 10, "{rows} rows of {done} requests");
    region.end().await;
}

/// With the default limits, a tenant at its limit gets as many decisions as its rate limit allows,
/// whatever it sends; the gate refuses the rest. The test prints the times without checking them,
/// because they depend on the machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_one_tenant_at_its_limit_another_is_served_as_before() {
    let region = Region::start("").await;
    let mut modest = ServersClient::new(region.channel().await.unwrap());
    let greedy = ServersClient::new(region.channel().await.unwrap());
    let before = percentiles(paced(&region, &mut modest, 300).await);
    for (servers, at_most) in [(1000, 1), (40, 25)] {
        let stop = Arc::new(AtomicBool::new(false));
        let attackers = attack(&region, &greedy, servers, &stop);
        let refused = region.refusals("rate").await;
        let beside = percentiles(paced(&region, &mut modest, 300).await);
        stop.store(true, Ordering::Relaxed);
        let mut heard = 0;
        for attacker in attackers {
            heard += attacker.await.unwrap();
        }
        let refused = region.refusals("rate").await - refused;
        println!(
            "p50, p95, p99 of another tenant's create: {before:?} before, {beside:?} beside a tenant at its limit \
             ({heard} requests of {servers} servers heard, {refused} refused)"
        );
        assert!(refused > 26, "the attack took place: {refused}");
        // 200 requests at first and 50 a second. A refused request takes one as well.
        assert!(heard <= at_most, "{heard} requests of {servers} servers");
    }
    region.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_request_leaves_one_server_and_can_be_repeated() {
    // The list comes after the request: it needs what the request leaves of the rate limit.
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
    // Another project has a rate limit and a quota of its own.
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
