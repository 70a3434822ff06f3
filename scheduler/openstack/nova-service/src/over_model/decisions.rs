//! Every request becomes a record in the ledger's database, and no request waits for it.

use super::full_host::victim;
use super::preemptions::Stage;
use super::{Bench, LONG, host, newcomer, other_claims, place};
use crate::Tasks;
use crate::decisions::{DecisionOptions, Decisions};
use crate::metrics::Metrics;
use ebbtide_harness::SharedServers;
use ebbtide_model::{Decision, DecisionOutcome, NoValidHost, ServerId};
use ebbtide_nova_cloud::Counts;
use ebbtide_placement_model::{Model, ScriptedStep, TransportFault};
use ebbtide_store::{DecisionFilter, DecisionStore, StoreConfig};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

fn options(url: &str, queue: usize) -> DecisionOptions {
    DecisionOptions {
        store: StoreConfig::new(url).unwrap(),
        scheduler: "scheduler-1".to_owned(),
        keep: Some(Duration::from_secs(24 * 3600)),
        queue,
    }
}

/// A bench that records, until it is read.
pub(super) struct RecordingBench {
    pub(super) bench: Bench,
    store: StoreConfig,
    metrics: Metrics,
    tasks: Tasks,
}

impl RecordingBench {
    pub(super) async fn of_hosts(hosts: i64) -> Self {
        let bench = Bench::of_hosts(hosts).await;
        let url = format!("sqlite:{}", bench.file("decisions.db").display());
        Self::with(bench, options(&url, 1000))
    }

    fn with(mut bench: Bench, options: DecisionOptions) -> Self {
        let tasks = Tasks::new(CancellationToken::new());
        let metrics = Metrics::default();
        let (facts, store) = (bench.selector.facts.clone(), options.store.clone());
        bench.selector.decisions = Decisions::start(Some(options), &facts, &tasks, &metrics);
        Self {
            bench,
            store,
            metrics,
            tasks,
        }
    }

    /// The scheduler stops. How many records were written and lost.
    async fn stopped(&self) -> [u64; 3] {
        self.tasks.stop().cancel();
        self.bench.selector.decisions.finish();
        assert!(self.tasks.finish(LONG).await, "the recorder ends");
        let page = self.metrics.text(Counts::default(), 0);
        ["recorded", "queue_full", "failed"].map(|kind| {
            let name = format!("ebbtide_decision_records_total{{kind=\"{kind}\"}} ");
            let line = page.lines().find_map(|line| line.strip_prefix(&name));
            line.map_or(0, |number| number.parse().unwrap())
        })
    }

    /// All records, newest first, after the scheduler has stopped.
    pub(super) async fn records(&self) -> Vec<Decision> {
        self.stopped().await;
        self.found(&DecisionFilter::default()).await
    }

    async fn found(&self, filter: &DecisionFilter) -> Vec<Decision> {
        let mut config = self.store.clone();
        config.sqlite_max_pages = None;
        let store = DecisionStore::open(&config).await.unwrap();
        let found = store.decisions(filter).await.unwrap();
        store.close().await;
        found
    }
}

fn refusal(decision: &Decision) -> &NoValidHost {
    match &decision.outcome {
        DecisionOutcome::NoValidHost(refusal) => refusal,
        placed @ DecisionOutcome::Placed(_) => panic!("{placed:?}"),
    }
}

pub(super) fn host_of(decision: &Decision) -> String {
    match &decision.outcome {
        DecisionOutcome::Placed(placements) => placements[0].host.clone(),
        refused @ DecisionOutcome::NoValidHost(_) => panic!("{refused:?}"),
    }
}

/// Asks for two instances, and looks at what is recorded of them.
async fn a_placed_request_is_found_in_every_way(recording: RecordingBench) {
    let answer = recording.bench.ask(newcomer(1), 3).await.unwrap();
    recording.bench.ask(newcomer(2), 3).await.unwrap();
    let records = recording.records().await;
    assert_eq!(records.len(), 2);
    let request = DecisionFilter {
        request_id: Some(format!("req-{}", newcomer(1))),
        ..DecisionFilter::default()
    };
    let server = DecisionFilter {
        server_id: Some(ServerId(newcomer(1))),
        project_id: Some("806f9478362a4a8684a7e275e6ca3b4f".to_owned()),
        ..DecisionFilter::default()
    };
    for filter in [request, server] {
        let found = recording.found(&filter).await;
        assert_eq!(found.len(), 1, "{filter:?}");
        let decision = &found[0];
        assert_eq!(host_of(decision), place(&answer));
        assert_eq!(decision.request.server_ids, [ServerId(newcomer(1))]);
        assert_eq!(decision.request.flavor.vcpus, 3);
        assert_eq!(decision.trace.scheduler, "scheduler-1");
        assert_eq!(decision.trace.runs, 1);
        let parts: Vec<&str> = decision
            .trace
            .times
            .iter()
            .map(|t| t.part.as_str())
            .collect();
        for part in ["rows", "hosts", "claim", "decided", "whole"] {
            assert!(parts.contains(&part), "{part} is not in {parts:?}");
        }
        let explained = &decision.explanation.instances[0];
        let filters: Vec<&str> = explained
            .filters
            .iter()
            .map(|f| f.filter.as_str())
            .collect();
        assert_eq!(filters[..2], ["Placement", "ComputeFilter"]);
        assert_eq!(explained.ranked, 3);
        assert_eq!(explained.ranking.len(), 3, "the runner-up is there");
        let chosen = &explained.ranking[0];
        assert!(chosen.chosen && chosen.host == place(&answer));
        let ram = chosen.weights.iter().find(|w| w.weigher == "RAMWeigher");
        assert_eq!(ram.unwrap().normalised, 1.0);
    }
}

#[tokio::test]
async fn a_placed_request_is_found_by_request_server_and_project() {
    a_placed_request_is_found_in_every_way(RecordingBench::of_hosts(3).await).await;
}

#[tokio::test]
async fn a_placed_request_is_found_on_mariadb_as_well() {
    let database = SharedServers::mariadb().await.expect("a MariaDB server");
    let bench = Bench::of_hosts(3).await;
    let recording = RecordingBench::with(bench, options(database.url(), 1000));
    a_placed_request_is_found_in_every_way(recording).await;
}

#[tokio::test]
async fn what_placement_does_not_offer_is_explained_host_by_host() {
    let recording = RecordingBench::of_hosts(2).await;
    recording.bench.ask(newcomer(1), 6).await.unwrap();
    recording.bench.ask(newcomer(2), 5).await.unwrap();
    let error = recording.bench.ask(newcomer(3), 4).await.unwrap_err();
    assert_eq!(error.class, "NoValidHost");
    let records = recording.records().await;
    let refused = &records[0];
    let why = refusal(refused);
    assert_eq!(why.reason, "Placement offers no host");
    assert_eq!((why.hosts, why.dropped[0].dropped), (2, 2));
    let step = &refused.explanation.instances[0].filters[0];
    assert_eq!(
        (step.filter.as_str(), step.before, step.after),
        ("Placement", 2, 0)
    );
    let mut said: Vec<&str> = step
        .dropped
        .iter()
        .map(|host| host.reason.as_str())
        .collect();
    said.sort_unstable();
    assert_eq!(said, ["VCPU: needs 4, 2 free", "VCPU: needs 4, 3 free"]);
    let only = DecisionFilter {
        refused_only: true,
        ..DecisionFilter::default()
    };
    assert_eq!(recording.found(&only).await, std::slice::from_ref(refused));
}

#[tokio::test]
async fn a_claim_that_placement_refuses_is_recorded_with_its_words() {
    let recording = RecordingBench::of_hosts(1).await;
    // Another process takes the host between the scheduler's look and its claim.
    let full = |model: &mut Model| {
        assert_eq!(other_claims(model, newcomer(9), host(1), 8), 204);
    };
    recording
        .bench
        .placement
        .once("PUT /allocations/", ScriptedStep::Before(Box::new(full)));
    recording.bench.ask(newcomer(1), 3).await.unwrap_err();
    let records = recording.records().await;
    let claims = &records[0].trace.refused_claims;
    assert_eq!(claims[0].host, "compute1");
    assert_eq!(claims[0].server_id, ServerId(newcomer(1)));
    assert!(claims[0].reason.contains("VCPU"), "{claims:?}");
    assert!(records[0].trace.times.iter().any(|t| t.part == "placement"));
    assert_eq!(refusal(&records[0]).reason, "Placement offers no host");
}

#[tokio::test]
async fn a_placement_that_does_not_answer_is_not_one_that_offers_nothing() {
    let recording = RecordingBench::of_hosts(1).await;
    let placement = &recording.bench.placement;
    // Longer than the bench's patience.
    for path in ["GET /allocation_candidates", "PUT /allocations/"] {
        for _ in 0..50 {
            placement.once(path, ScriptedStep::Fault(TransportFault::NotHeard));
        }
    }
    recording.bench.ask(newcomer(1), 3).await.unwrap_err();
    let records = recording.records().await;
    assert_eq!(refusal(&records[0]).reason, "Placement did not answer");
}

#[tokio::test]
async fn a_request_that_preempts_is_recorded_with_its_victims_and_their_cost() {
    let mut stage = Stage::new().await;
    let url = format!("sqlite:{}", stage.bench.file("decisions.db").display());
    let tasks = Tasks::new(CancellationToken::new());
    let metrics = Metrics::default();
    let facts = stage.bench.selector.facts.clone();
    let start = Decisions::start(Some(options(&url, 10)), &facts, &tasks, &metrics);
    stage.bench.selector.decisions = start;
    let mut agent = stage.take_agent();
    let answer = async {
        stage.bench.look().await;
        stage.bench.ask(newcomer(1), 2).await.unwrap()
    };
    let (answer, evacuated) = tokio::join!(answer, async {
        let notice = agent.notice().await;
        agent.gone(&notice).await;
        notice.server_id
    });
    tasks.stop().cancel();
    stage.bench.selector.decisions.finish();
    assert!(tasks.finish(LONG).await);
    let store = DecisionStore::open(&StoreConfig::new(&url).unwrap())
        .await
        .unwrap();
    let of_newcomer = store.decision_for_server(ServerId(newcomer(1))).await;
    let decision = of_newcomer.unwrap().expect("it is recorded");
    assert_eq!(host_of(&decision), place(&answer));
    let victims: Vec<ServerId> = decision.victims().map(|(_, v)| v.server_id).collect();
    assert_eq!(victims, [evacuated]);
    let reader = super::reader(&stage.bench.selector);
    let shown = reader.evacuations(true).await.unwrap();
    let of: Vec<_> = shown.iter().map(|e| (e.victim_id, e.decision_id)).collect();
    assert_eq!(of, [(evacuated, Some(decision.id))]);
    let all: Vec<Uuid> = (1..=4).map(victim).collect();
    assert!(all.contains(&evacuated.0));
    assert_eq!(decision.explanation.filtered_on, "normal");
    let ranking = &decision.explanation.instances[0].ranking;
    assert!(
        ranking[0].chosen && ranking[0].eviction_cost.is_some(),
        "{ranking:?}"
    );
    let parts: Vec<&str> = decision
        .trace
        .times
        .iter()
        .map(|t| t.part.as_str())
        .collect();
    assert!(
        parts.contains(&"plan") && parts.contains(&"room"),
        "{parts:?}"
    );
}

#[tokio::test]
async fn requests_go_on_while_the_database_is_away_and_the_loss_is_counted() {
    let bench = Bench::of_hosts(3).await;
    // A server that no process listens for.
    let away = options("mysql://u:p@127.0.0.1:1/ebbtide", 2);
    let recording = RecordingBench::with(bench, away);
    for n in 1..=6 {
        recording.bench.ask(newcomer(n), 1).await.unwrap();
    }
    assert_eq!(recording.stopped().await, [0, 4, 0]);
}

#[tokio::test]
async fn records_that_wait_for_a_full_database_are_given_up_at_the_stop_and_counted() {
    let bench = Bench::of_hosts(3).await;
    let url = format!("sqlite:{}", bench.file("decisions.db").display());
    let mut full = options(&url, 200);
    // Hardly more than the tables themselves.
    full.store.sqlite_max_pages = Some(90);
    let recording = RecordingBench::with(bench, full);
    for n in 1..=100 {
        // The last ones find no room, which is recorded as well.
        let answer = recording.bench.ask(newcomer(n), 1).await;
        assert_eq!(answer.is_ok(), n <= 24, "{n}");
    }
    let [recorded, queue_full, failed] = recording.stopped().await;
    assert_eq!((recorded + failed, queue_full), (100, 0));
    assert!(failed > 0, "the database was not full");
    assert_eq!(
        recording.found(&DecisionFilter::default()).await.len() as u64,
        recorded
    );
}
