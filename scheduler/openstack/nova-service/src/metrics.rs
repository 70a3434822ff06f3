//! Metrics for Prometheus.

use crate::preemption::{Preemption, PreemptionState, Victim, VictimState};
use crate::settings::HeadroomRule;
use ebbtide_capacity_metrics::CapacityMetrics;
use ebbtide_metrics::{shown, shown_seconds};
use ebbtide_nova_cloud::Counts;
use ebbtide_runtime::clock;
use ebbtide_service_manager::reload::{self, ReloadStates};
use ebbtide_telemetry::SpanCounts;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::exponential_buckets;
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Label {
    kind: &'static str,
}

/// The label of an exemplar: the request's lines in the logs of all services have it.
/// With the identifier of the trace, if the request has one.
type RequestLabels = Vec<(&'static str, String)>;

/// The longest identifier of a request that becomes an exemplar, because OpenMetrics allows 128
/// characters in all. Nova's have 40.
const LONGEST_REQUEST_ID: usize = 64;

/// A rule of headroom; without an aggregate: on any host.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct HeadroomLabel {
    flavor: String,
    aggregate: String,
}

/// All metrics. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    requests: Family<Label, Counter>,
    seconds: Family<Label, HistogramWithExemplars<RequestLabels>>,
    claims: Family<Label, Counter>,
    _trace_spans: SpanCounts,
    _reloads: ReloadStates,
    questions: Counter,
    preemptions: Family<Label, Counter>,
    victims: Family<Label, Counter>,
    ended_servers: Family<Label, Counter>,
    under_way: Gauge,
    unusable_reports: Counter,
    second_agents: Counter,
    refused_agents: Counter,
    hosts: Gauge,
    instances: Family<Label, Gauge>,
    refusals: Family<Label, Counter>,
    decision_records: Family<Label, Counter>,
    headroom: Family<HeadroomLabel, Gauge>,
    comebacks: Family<Label, Counter>,
    waiting: Gauge,
    pub(crate) cloud: CapacityMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        // 0.1 ms to 7 minutes, by factors of four.
        let seconds: fn() -> HistogramWithExemplars<RequestLabels> =
            || HistogramWithExemplars::new(exponential_buckets(1e-4, 4.0, 12));
        let mut registry = Registry::with_prefix("ebbtide");
        let to = &mut registry;
        let metrics = Self {
            requests: shown(to, "requests", "Requests by outcome", Family::default()),
            seconds: shown_seconds(
                to,
                "request",
                "Time of a request: whole, and its parts (rows: what has changed in the \
                 databases; decided: hosts and claims; room: until victims are gone)",
                Family::new_with_constructor(seconds),
            ),
            claims: shown(to, "claims", "Claims by outcome", Family::default()),
            _reloads: shown(
                to,
                "last_reload_successful",
                "1 if the last reload took this key of the configuration into use",
                reload::states(),
            ),
            _trace_spans: shown(
                to,
                "trace_spans",
                "Spans of traces: sent, refused by the collector, lost because it was away, \
                 dropped because too many waited",
                ebbtide_telemetry::span_counts(),
            ),
            questions: shown(
                to,
                "placement_questions",
                "Requests for which Placement was asked for candidates",
                Counter::default(),
            ),
            preemptions: shown(
                to,
                "preemptions",
                "Preemptions by how they ended",
                Family::default(),
            ),
            victims: shown(
                to,
                "victims",
                "Victims of ended preemptions by what became of them",
                Family::default(),
            ),
            ended_servers: shown(
                to,
                "ended_servers",
                "Servers that were ended without a preemptor, by cause",
                Family::default(),
            ),
            under_way: shown(
                to,
                "preemptions_under_way",
                "Preemptions that this scheduler drives",
                Gauge::default(),
            ),
            unusable_reports: shown(
                to,
                "unusable_reports",
                "Reports of agents that could not be used; the log names who sends many",
                Counter::default(),
            ),
            second_agents: shown(
                to,
                "second_agent_heartbeats",
                "Heartbeats that showed two agents speaking for one host",
                Counter::default(),
            ),
            refused_agents: shown(
                to,
                "refused_agent_heartbeats",
                "Heartbeats of agents whose host Nova does not have",
                Counter::default(),
            ),
            hosts: shown(to, "hosts", "Hosts that are known", Gauge::default()),
            instances: shown(
                to,
                "instances",
                "Instances that are known",
                Family::default(),
            ),
            refusals: shown(
                to,
                "refusals",
                "Connections and requests to the API and these pages that were refused or closed",
                Family::default(),
            ),
            decision_records: shown(
                to,
                "decision_records",
                "Records of decisions: recorded, or lost (queue_full, failed)",
                Family::default(),
            ),
            headroom: shown(
                to,
                "headroom_is_free",
                "Whether the servers of a rule of headroom would find room at once",
                Family::default(),
            ),
            comebacks: shown(
                to,
                "comebacks",
                "Servers that were kept when they had to leave, by what became of them",
                Family::default(),
            ),
            waiting: shown(
                to,
                "servers_waiting",
                "Servers that were kept and wait to come back",
                Gauge::default(),
            ),
            cloud: CapacityMetrics::declare(to),
            registry: Arc::new(registry),
        };
        metrics.begin_at_zero();
        metrics
    }
}

impl Metrics {
    /// Creates the counters whose increase operators alert on with the value zero: the first
    /// increment of a missing series would not be visible as an increase.
    fn begin_at_zero(&self) {
        let ended = [
            PreemptionState::Done,
            PreemptionState::Withdrawn,
            PreemptionState::Refused,
        ];
        for (counters, kinds) in [
            (&self.claims, &["taken", "refused", "failed", "stale"][..]),
            (&self.victims, &["gone", "failed", "spared"]),
            (&self.preemptions, &ended.map(PreemptionState::as_str)),
            (
                &self.decision_records,
                &["recorded", "queue_full", "failed"],
            ),
            (&self.comebacks, &["resumed", "failed", "started_by_owner"]),
        ] {
            for kind in kinds {
                drop(counters.get_or_create(&Label { kind }));
            }
        }
    }

    /// A request was answered. Its identifier is the exemplar of its time.
    pub(crate) fn answered(&self, kind: &'static str, whole: Duration, request_id: Option<String>) {
        self.requests.get_or_create(&Label { kind }).inc();
        let request_id = request_id.filter(|id| id.len() <= LONGEST_REQUEST_ID);
        let exemplar = request_id.map(|request_id| {
            let mut labels = vec![("request_id", request_id)];
            let trace = ebbtide_telemetry::current();
            labels.extend(trace.map(|trace| ("trace_id", trace.trace_id())));
            labels
        });
        self.seconds
            .get_or_create(&Label { kind: "whole" })
            .observe(whole.as_secs_f64(), exemplar, Some(clock::wall()));
    }

    pub(crate) fn took(&self, kind: &'static str, time: Duration) {
        self.seconds
            .get_or_create(&Label { kind })
            .observe(time.as_secs_f64(), None, None);
    }

    /// Records of decisions were written or lost.
    pub(crate) fn decision(&self, kind: &'static str, count: u64) {
        self.decision_records
            .get_or_create(&Label { kind })
            .inc_by(count);
    }

    /// A rule of headroom was looked at.
    pub(crate) fn headroom(&self, rule: &HeadroomRule, free: bool) {
        let label = HeadroomLabel {
            flavor: rule.flavor.clone(),
            aggregate: rule.aggregate.clone().unwrap_or_default(),
        };
        self.headroom.get_or_create(&label).set(free.into());
    }

    /// What became of a server that was kept.
    pub(crate) fn comeback(&self, kind: &'static str) {
        self.comebacks.get_or_create(&Label { kind }).inc();
    }

    /// How many servers wait to come back.
    pub(crate) fn waiting_servers(&self, count: usize) {
        self.waiting.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub(crate) fn refused(&self, kind: &'static str) {
        self.refusals.get_or_create(&Label { kind }).inc();
    }

    pub(crate) fn claim(&self, kind: &'static str) {
        self.claims.get_or_create(&Label { kind }).inc();
    }

    pub(crate) fn unusable_report(&self) {
        self.unusable_reports.inc();
    }

    pub(crate) fn second_agent(&self) {
        self.second_agents.inc();
    }

    pub(crate) fn refused_agent(&self) {
        self.refused_agents.inc();
    }

    pub(crate) fn question(&self) {
        self.questions.inc();
    }

    pub(crate) fn ended(&self, record: &Preemption) {
        if record.newcomers.is_empty() {
            let gone = |victim: &&Victim| matches!(victim.state, VictimState::Evacuated { .. });
            let gone = record.victims.iter().filter(gone).count();
            let kind = record.cause.as_str();
            self.ended_servers
                .get_or_create(&Label { kind })
                .inc_by(gone as u64);
            return;
        }
        let kind = record.state.as_str();
        self.preemptions.get_or_create(&Label { kind }).inc();
        if record.state == PreemptionState::Refused {
            return;
        }
        for victim in &record.victims {
            let kind = match victim.state {
                VictimState::Evacuated { .. } => "gone",
                VictimState::Failed { .. } => "failed",
                _ => "spared",
            };
            self.victims.get_or_create(&Label { kind }).inc();
        }
    }

    /// The page with the current values.
    pub(crate) fn text(&self, counts: Counts, under_way: usize) -> String {
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        self.under_way.set(number(under_way));
        self.hosts.set(number(counts.hosts));
        let instances = |kind| self.instances.get_or_create(&Label { kind }).clone();
        instances("preemptible").set(number(counts.preemptible));
        instances("normal").set(number(counts.instances.saturating_sub(counts.preemptible)));
        ebbtide_metrics::text(&self.registry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_what_was_counted() {
        let metrics = Metrics::default();
        metrics.answered("selected", Duration::from_millis(40), None);
        let id = Some("req-1".to_owned());
        metrics.answered("selected", Duration::from_millis(60), id);
        metrics.answered("left", Duration::from_millis(1), Some("x".repeat(65)));
        metrics.claim("stale");
        let counts = Counts {
            hosts: 3,
            instances: 5,
            preemptible: 2,
            ..Counts::default()
        };
        let page = metrics.text(counts, 1);
        for line in [
            "ebbtide_requests_total{kind=\"selected\"} 2",
            "ebbtide_request_seconds_count{kind=\"whole\"} 3",
            "ebbtide_claims_total{kind=\"stale\"} 1",
            "ebbtide_preemptions_under_way 1",
            "ebbtide_victims_total{kind=\"failed\"} 0",
            "ebbtide_preemptions_total{kind=\"withdrawn\"} 0",
            "ebbtide_hosts 3",
            "ebbtide_instances{kind=\"normal\"} 3",
        ] {
            assert!(page.lines().any(|l| l == line), "{line} is not in\n{page}");
        }
        assert!(page.contains(" # {request_id=\"req-1\"} 0.06 "), "{page}");
        assert!(!page.contains("xxx"), "{page}");
    }

    #[test]
    fn every_metric_has_its_row_in_the_pages_of_openstack_mode() {
        let page = include_str!("../../../../docs/openstack/openstack.md");
        let missing = ebbtide_metrics::without_row(include_str!("metrics.rs"), page, "ebbtide_");
        assert_eq!(missing, [] as [String; 0], "write a row for each");
    }
}
