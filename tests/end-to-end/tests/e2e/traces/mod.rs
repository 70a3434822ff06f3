//! Traces of a preemption over scheduler and agents, at a real collector.

mod collector;

use self::collector::{Collector, Manner, Seen, drawn};
use super::kit::{create, evacuations, fill, request, until};
use super::start::get;
use ebbtide_bus::{AmqpBus, AmqpConfig, BrokerUrl, Bus, QueuePrefix};
use ebbtide_harness::{Signal, eventually, free_port};
use ebbtide_integration_tests::region::{PATIENCE, SIMULATED};
use ebbtide_integration_tests::{Region, RegionOptions};
use ebbtide_proto::v1;
use std::collections::BTreeSet;

/// What a caller sends: the trace, and its own span in it.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";
/// The kinds of OTLP.
const INTERNAL: i32 = 1;
const SERVER: i32 = 2;
const PRODUCER: i32 = 4;
const CONSUMER: i32 = 5;

/// A region whose scheduler and agents send their spans to `endpoint`.
async fn region_with_traces(endpoint: &str, sample: &str) -> Region {
    let telemetry = format!("[telemetry]\notlp_endpoint = \"{endpoint}\"\n");
    let hosts = RegionOptions::default().hosts;
    let drivers = hosts
        .iter()
        .map(|host| (host.clone(), format!("{telemetry}{SIMULATED}")));
    Region::start(RegionOptions {
        drivers: drivers.collect(),
        sections: format!("{telemetry}sample = {sample}\n"),
        ..RegionOptions::default()
    })
    .await
    .unwrap()
}

/// Creates a normal server whose caller traces.
async fn create_traced(region: &Region, name: &str) -> (v1::Server, v1::Decision) {
    let mut create = tonic::Request::new(v1::CreateServersRequest {
        max_price: String::new(),
        name: name.to_owned(),
        request: Some(request("half", 1)),
    });
    let context = format!("00-{TRACE}-{CALLER}-01");
    create
        .metadata_mut()
        .insert("traceparent", context.parse().unwrap());
    let mut servers = region.servers().await.unwrap();
    let created = servers.create_servers(create).await.unwrap().into_inner();
    (created.servers[0].clone(), created.decision.unwrap())
}

/// The only span of this name among the children of `parent`.
fn child<'a>(spans: &'a [Seen], parent: &str, name: &str) -> &'a Seen {
    let mut found = spans
        .iter()
        .filter(|s| s.parent == parent && s.name == name);
    let (first, second) = (found.next(), found.next());
    assert!(second.is_none(), "{name} twice: {spans:#?}");
    first.unwrap_or_else(|| panic!("no {name} below {parent}: {spans:#?}"))
}

fn is_of(span: &Seen, kind: i32, service: &str, instance: Option<&str>) {
    assert_eq!(span.kind, kind, "{span:?}");
    assert_eq!(span.service, service, "{span:?}");
    if let Some(instance) = instance {
        assert_eq!(span.instance, instance, "{span:?}");
    }
    assert!(span.start <= span.end, "{span:?}");
}

#[tokio::test]
async fn one_trace_has_all_of_a_preemption() {
    let collector = Collector::start(Manner::Takes).await;
    let region = region_with_traces(&collector.endpoint, "1.0").await;
    fill(&region, 1).await;
    let (server, decision) = create_traced(&region, "urgent").await;
    let victim = &decision.placements[0].victims[0].server_id;
    let host = decision.placements[0].host.as_str();
    until(&region, &server.id, "active").await;
    let spans = eventually(PATIENCE, async || {
        let spans = collector.trace(TRACE);
        let names: BTreeSet<&str> = spans.iter().map(|s| s.name.as_str()).collect();
        // The agent's span of a command ends with its acknowledgement, and each process sends its
        // own spans.
        let last = ["started", "start server", "evacuation", "grace period"];
        match last.iter().all(|name| names.contains(name)) {
            true => Ok(spans),
            false => Err(format!("{names:?}")),
        }
    })
    .await;
    // What docs/operate/traces.md shows.
    eprintln!("{}", drawn(&spans));
    let (scheduler, agent) = ("ebbtide-scheduler", "ebbtide-agent");

    let call = child(&spans, CALLER, "ebbtide.v1.Servers/CreateServers");
    is_of(call, SERVER, scheduler, None);
    assert_eq!(call.attributes["rpc.method"], "CreateServers");
    let decided = child(&spans, &call.id, "decision");
    is_of(decided, INTERNAL, scheduler, None);
    assert_eq!(decided.attributes["ebbtide.decision_id"], decision.id);
    assert_eq!(decided.attributes["ebbtide.victims"], "1");
    assert_eq!(
        decided.attributes["ebbtide.outcome"],
        "placed-by-preemption"
    );
    let claim = child(&spans, &call.id, "claim");
    is_of(claim, INTERNAL, scheduler, None);
    assert!(decided.end <= claim.start, "claim before decision");
    let notice = child(&spans, &claim.id, "notice");
    is_of(notice, PRODUCER, scheduler, None);
    assert_eq!(notice.attributes["ebbtide.server_id"], *victim);
    // No victim without a claim.
    assert!(claim.end <= notice.start, "notice before claim");

    let evacuation = child(&spans, &notice.id, "evacuation");
    is_of(evacuation, CONSUMER, agent, Some(host));
    assert_eq!(evacuation.attributes["ebbtide.server_id"], *victim);
    let phases = ["guest notice", "grace period", "terminate", "look"];
    let phases = phases.map(|name| child(&spans, &evacuation.id, name));
    for pair in phases.windows(2) {
        is_of(pair[0], INTERNAL, agent, Some(host));
        assert!(pair[0].end <= pair[1].start, "{pair:#?}");
    }
    let grace = phases[1].end - phases[1].start;
    assert!(grace >= 900_000_000, "of one second, {grace} ns");
    let draining = child(&spans, &evacuation.id, "report draining");
    is_of(
        child(&spans, &draining.id, "draining"),
        INTERNAL,
        scheduler,
        None,
    );
    let reported = child(&spans, &evacuation.id, "report gone");
    is_of(reported, PRODUCER, agent, Some(host));
    let gone = child(&spans, &reported.id, "gone");
    is_of(gone, INTERNAL, scheduler, None);

    let start = child(&spans, &gone.id, "start");
    is_of(start, PRODUCER, scheduler, None);
    assert_eq!(start.attributes["ebbtide.server_id"], server.id);
    let starting = child(&spans, &start.id, "start server");
    is_of(starting, CONSUMER, agent, Some(host));
    is_of(
        child(&spans, &starting.id, "start"),
        INTERNAL,
        agent,
        Some(host),
    );
    let reported = child(&spans, &starting.id, "report started");
    let started = child(&spans, &reported.id, "started");
    assert_eq!(started.attributes["ebbtide.server_id"], server.id);

    // Nothing of the trace hangs in the air.
    let ids: BTreeSet<&str> = spans.iter().map(|s| s.id.as_str()).collect();
    for span in &spans {
        let known = span.parent == CALLER || ids.contains(span.parent.as_str());
        assert!(known, "{span:?}");
    }
    let page = get(&region.address("http").unwrap(), "/metrics").await;
    assert!(
        page.contains(&format!("trace_id=\"{TRACE}\"")),
        "no exemplar: {page}"
    );
    assert!(page.contains(&format!("decision_id=\"{}\"", decision.id)));
    let sent = count(&page, "sent");
    assert!(sent > 0, "{page}");
}

/// Spans of the scheduler with this outcome.
fn count(page: &str, outcome: &str) -> u64 {
    let name = format!("ebbtide_trace_spans_total{{outcome=\"{outcome}\"}} ");
    let line = page.lines().find_map(|line| line.strip_prefix(&name));
    line.unwrap_or_else(|| panic!("no {name}: {page}"))
        .parse()
        .unwrap()
}

#[tokio::test]
async fn the_end_of_a_process_sends_its_last_spans() {
    let collector = Collector::start(Manner::Takes).await;
    // What a caller traces is traced, whatever share of the rest is.
    let region = region_with_traces(&collector.endpoint, "0.0").await;
    fill(&region, 60).await;
    create_traced(&region, "urgent").await;
    region.signal_scheduler(Signal::Term).unwrap();
    let ended = region.scheduler_process().unwrap().wait_exit(PATIENCE);
    assert!(ended.await.unwrap().success(), "{}", region.scheduler_log());
    let calls = collector.named("ebbtide.v1.Servers/CreateServers");
    let parents: Vec<&str> = calls.iter().map(|span| span.parent.as_str()).collect();
    assert_eq!(parents, [CALLER], "{}", region.scheduler_log());
}

#[tokio::test]
async fn a_collector_that_is_away_or_hangs_keeps_no_request_waiting() {
    let hanging = Collector::start(Manner::Hangs).await;
    let away = format!("http://127.0.0.1:{}", free_port().unwrap());
    for endpoint in [&hanging.endpoint, &away] {
        let region = region_with_traces(endpoint, "1.0").await;
        fill(&region, 0).await;
        for round in 0..4 {
            let wanted = request("half", 1);
            let (servers, _) = create(&region, &format!("urgent-{round}"), wanted).await;
            until(&region, &servers[0].id, "active").await;
        }
        assert_eq!(evacuations(&region).await.len(), 4);
        let page = region.address("http").unwrap();
        eventually(PATIENCE, async || {
            match count(&get(&page, "/metrics").await, "lost") {
                0 => Err("no span is lost yet"),
                _ => Ok(()),
            }
        })
        .await;
        let text = get(&page, "/metrics").await;
        assert_eq!(count(&text, "sent"), 0);
        let log = region.scheduler_log();
        assert_eq!(log.matches("EB-TELEMETRY-001").count(), 1, "{log}");
        region.signal_scheduler(Signal::Term).unwrap();
        let ended = region.scheduler_process().unwrap().wait_exit(PATIENCE);
        assert!(ended.await.unwrap().success(), "{}", region.scheduler_log());
    }
}

#[tokio::test]
async fn nothing_is_written_into_messages_while_traces_are_off() {
    let mut region = Region::start(RegionOptions::default()).await.unwrap();
    fill(&region, 60).await;
    for host in RegionOptions::default().hosts {
        region.kill_agent(&host);
    }
    let (_, decision) = create_traced(&region, "urgent").await;
    let broker: BrokerUrl = region.broker_url().parse().unwrap();
    let bus = AmqpBus::open(AmqpConfig::new(vec![broker], "traces")).unwrap();
    let prefix = QueuePrefix::new(region.prefix()).unwrap();
    let queue = prefix.agent(&decision.placements[0].host).unwrap();
    let mut messages = bus.consume(&queue, 1).await.unwrap();
    let notice = messages.next().await.unwrap();
    assert_eq!(notice.traceparent, None);
    let text = String::from_utf8(notice.body.clone()).unwrap();
    assert!(text.contains("evacuation.notice"), "{text}");
    assert!(!text.contains("traceparent"), "{text}");
    let page = get(&region.address("http").unwrap(), "/metrics").await;
    assert!(page.contains(&format!("decision_id=\"{}\"", decision.id)));
    assert!(!page.contains("trace_id"), "{page}");
    for outcome in ["sent", "refused", "lost", "dropped"] {
        assert_eq!(count(&page, outcome), 0, "{outcome}");
    }
    notice.ack().await;
    bus.close().await;
}
