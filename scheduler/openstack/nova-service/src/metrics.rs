//! Metrics for Prometheus.

use crate::headroom::HeadroomRule;
use crate::preemption::{Preemption, PreemptionState, Victim, VictimState};
use ebbtide_metrics::{shown, shown_seconds};
use ebbtide_nova_cloud::Counts;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Label {
    kind: &'static str,
}

/// Servers of one project and flavor.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ProjectLabel {
    project_id: String,
    flavor: String,
}

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
    seconds: Family<Label, Histogram>,
    claims: Family<Label, Counter>,
    questions: Counter,
    preemptions: Family<Label, Counter>,
    victims: Family<Label, Counter>,
    ended_servers: Family<Label, Counter>,
    under_way: Gauge,
    unusable_reports: Counter,
    second_agents: Counter,
    hosts: Gauge,
    instances: Family<Label, Gauge>,
    refusals: Family<Label, Counter>,
    decision_records: Family<Label, Counter>,
    headroom: Family<HeadroomLabel, Gauge>,
    comebacks: Family<Label, Counter>,
    waiting: Gauge,
    running: Family<ProjectLabel, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        // 0.1 ms to 7 minutes, by factors of four.
        let seconds: fn() -> Histogram = || Histogram::new(exponential_buckets(1e-4, 4.0, 12));
        let mut registry = Registry::with_prefix("ebbtide");
        let to = &mut registry;
        Self {
            requests: shown(to, "requests", "Requests by outcome", Family::default()),
            seconds: shown_seconds(
                to,
                "request",
                "Time of a request: whole, and its parts (rows: what has changed in the \
                 databases; decided: hosts and claims; room: until victims are gone)",
                Family::new_with_constructor(seconds),
            ),
            claims: shown(to, "claims", "Claims by outcome", Family::default()),
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
            running: shown(
                to,
                "preemptible_servers",
                "Preemptible servers that run, by project and flavor, for rating",
                Family::default(),
            ),
            registry: Arc::new(registry),
        }
    }
}

impl Metrics {
    pub(crate) fn answered(&self, kind: &'static str, whole: Duration) {
        self.requests.get_or_create(&Label { kind }).inc();
        self.took("whole", whole);
    }

    pub(crate) fn took(&self, kind: &'static str, time: Duration) {
        self.seconds
            .get_or_create(&Label { kind })
            .observe(time.as_secs_f64());
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

    /// The preemptible servers that run now, by project and flavor.
    pub(crate) fn running(&self, servers: &BTreeMap<(&str, &str), u64>) {
        // A project that has none any more goes.
        self.running.clear();
        for ((project, flavor), count) in servers {
            let label = ProjectLabel {
                project_id: (*project).to_owned(),
                flavor: (*flavor).to_owned(),
            };
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            self.running.get_or_create(&label).set(count);
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
        metrics.answered("selected", Duration::from_millis(40));
        metrics.answered("selected", Duration::from_millis(60));
        metrics.claim("stale");
        let counts = Counts {
            hosts: 3,
            instances: 5,
            preemptible: 2,
            ..Counts::default()
        };
        let servers = BTreeMap::from([(("lab", "large"), 2)]);
        metrics.running(&BTreeMap::from([(("web", "large"), 1)]));
        metrics.running(&servers);
        let page = metrics.text(counts, 1);
        assert!(!page.contains("\"web\""), "{page}");
        for line in [
            "ebbtide_requests_total{kind=\"selected\"} 2",
            "ebbtide_request_seconds_count{kind=\"whole\"} 2",
            "ebbtide_claims_total{kind=\"stale\"} 1",
            "ebbtide_preemptions_under_way 1",
            "ebbtide_hosts 3",
            "ebbtide_instances{kind=\"normal\"} 3",
            "ebbtide_preemptible_servers{project_id=\"lab\",flavor=\"large\"} 2",
        ] {
            assert!(page.lines().any(|l| l == line), "{line} is not in\n{page}");
        }
    }

    #[test]
    fn every_metric_has_its_row_in_the_pages_of_openstack_mode() {
        let page = include_str!("../../../../docs/openstack/openstack.md");
        let missing = ebbtide_metrics::without_row(include_str!("metrics.rs"), page, "ebbtide_");
        assert_eq!(missing, [] as [String; 0], "write a row for each");
    }
}
