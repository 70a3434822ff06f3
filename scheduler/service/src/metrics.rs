//! Metrics for Prometheus.

use ebbtide_capacity_metrics::CapacityMetrics;
use ebbtide_engine::CloudTotals;
use ebbtide_metrics::{shown, shown_seconds};
use ebbtide_model::{CloudEvent, DecisionId, DecisionOutcome};
use ebbtide_plugins::Plugin;
use ebbtide_region::RegionFigures;
use ebbtide_runtime::clock;
use ebbtide_service_manager::reload::{self, ReloadStates};
use ebbtide_telemetry::{SpanCounts, TraceContext};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Limit of senders of unusable reports with a time series of their own, because a series is never
/// removed.
const MOST_SENDERS: usize = 100;

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Label {
    kind: String,
}

/// The labels of an exemplar: `ebbtide explain` shows the decision, a store of traces the trace.
/// OpenMetrics allows 128 characters in all; these are 87.
type DecisionLabels = Vec<(&'static str, String)>;

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SenderLabel {
    sender: String,
    outcome: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PluginLabel {
    plugin: String,
    outcome: String,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

/// All metrics. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    decisions: Family<Label, Counter>,
    decision_seconds: HistogramWithExemplars<DecisionLabels>,
    evacuations: Family<Label, Counter>,
    victims: Counter,
    commits: Family<Label, Counter>,
    commit_seconds: Histogram,
    changes: Counter,
    ignored: Counter,
    dead_letters: Counter,
    unusable: Family<SenderLabel, Counter>,
    /// Senders with a time series of their own in `unusable`.
    senders: Arc<Mutex<BTreeSet<String>>>,
    published: Counter,
    speculations: Family<Label, Counter>,
    on_duty: Gauge,
    publish_failures: Counter,
    hosts: Family<Label, Gauge>,
    contested: Gauge,
    servers: Family<Label, Gauge>,
    under_way: Gauge,
    outbox: Gauge,
    bus_connected: Gauge,
    refusals: Family<Label, Counter>,
    plugin_calls: Family<PluginLabel, Counter>,
    plugins: Family<Label, Gauge>,
    cloud: CapacityMetrics,
    _trace_spans: SpanCounts,
    _reloads: ReloadStates,
}

/// Counts refusals by reason, wherever a mode of the service has its metrics. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Refusals(Arc<dyn Fn(&'static str) + Send + Sync>);

impl Refusals {
    pub(crate) fn new(count: impl Fn(&'static str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(count))
    }

    pub(crate) fn refused(&self, why: &'static str) {
        (self.0)(why);
    }
}

impl fmt::Debug for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Refusals")
    }
}

impl Metrics {
    /// Its counter of refusals.
    pub(crate) fn refusals(&self) -> Refusals {
        let metrics = self.clone();
        Refusals::new(move |why| metrics.refused(why))
    }

    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("ebbtide");
        // 1 µs to 4 s, by factors of four.
        let seconds = || Histogram::new(exponential_buckets(1e-6, 4.0, 12));
        let to = &mut registry;
        let metrics = Self {
            decisions: shown(to, "decisions", "Decisions by outcome", Family::default()),
            decision_seconds: shown_seconds(
                to,
                "decision",
                "Time that the region took for a request, without the commit",
                HistogramWithExemplars::new(exponential_buckets(1e-6, 4.0, 12)),
            ),
            evacuations: shown(
                to,
                "evacuations",
                "Evacuations by the state they came to",
                Family::default(),
            ),
            victims: shown(to, "victims", "Victims chosen", Counter::default()),
            commits: shown(to, "commits", "Transactions by outcome", Family::default()),
            commit_seconds: shown_seconds(to, "commit", "Time that a transaction took", seconds()),
            changes: shown(to, "changes", "Records written", Counter::default()),
            ignored: shown(
                to,
                "inputs_ignored",
                "Reports and steps that were not followed",
                Counter::default(),
            ),
            dead_letters: shown(
                to,
                "dead_letters",
                "Messages that could not be read",
                Counter::default(),
            ),
            unusable: shown(
                to,
                "unusable_reports",
                "Reports that could not be used by the broker's user who sent them: kept as dead \
                 letters, or discarded because that user sends too many",
                Family::default(),
            ),
            senders: Arc::default(),
            published: shown(
                to,
                "messages_published",
                "Messages confirmed by the broker",
                Counter::default(),
            ),
            speculations: shown(
                to,
                "early_decisions",
                "Decisions made before this scheduler's turn to write: kept, or made again \
                 because of a conflict with another scheduler",
                Family::default(),
            ),
            on_duty: shown(
                to,
                "on_duty",
                "1 while this scheduler reads reports, sends messages and watches the time",
                Gauge::default(),
            ),
            publish_failures: shown(
                to,
                "publish_failures",
                "Attempts to publish that failed; each message is tried until it is confirmed",
                Counter::default(),
            ),
            hosts: shown(to, "hosts", "Hosts by health", Family::default()),
            contested: shown(
                to,
                "hosts_contested",
                "Hosts for which two agents speak: nothing is placed there and nothing given away",
                Gauge::default(),
            ),
            servers: shown(
                to,
                "servers",
                "Servers that are not gone, by status",
                Family::default(),
            ),
            under_way: shown(
                to,
                "evacuations_under_way",
                "Evacuations that have not ended",
                Gauge::default(),
            ),
            outbox: shown(
                to,
                "outbox_messages",
                "Messages that the broker has not confirmed yet",
                Gauge::default(),
            ),
            bus_connected: shown(
                to,
                "bus_connected",
                "1 while messages flow",
                Gauge::default(),
            ),
            refusals: shown(
                to,
                "refusals",
                "Requests, connections and reports that were refused, by reason",
                Family::default(),
            ),
            plugin_calls: shown(
                to,
                "plugin_calls",
                "Calls of plugins since they were loaded: good, failed, skipped (left alone \
                 after too many failures), good and failed in shadow",
                Family::default(),
            ),
            plugins: shown(
                to,
                "plugins",
                "Plugins by state: used, disabled, shadow, resting, missing",
                Family::default(),
            ),
            cloud: CapacityMetrics::declare(to),
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
            registry: Arc::new(registry),
        };
        metrics.begin_at_zero();
        metrics
    }

    /// Creates the counters with the value zero. A missing series looks like a removed one, and its
    /// first increment would not be visible as an increase.
    fn begin_at_zero(&self) {
        for outcome in ["placed", "placed-by-preemption", "no-valid-host"] {
            drop(self.decisions.get_or_create(&label(outcome)));
        }
        for outcome in ["kept", "conflict"] {
            drop(self.speculations.get_or_create(&label(outcome)));
        }
        for outcome in ["ok", "failed"] {
            drop(self.commits.get_or_create(&label(outcome)));
        }
        for state in ebbtide_model::EvacuationState::ALL {
            drop(self.evacuations.get_or_create(&label(state.as_str())));
        }
    }

    /// A request was decided. The decision's identifier, if it is stored, is the exemplar, with the
    /// request's trace, if it has one.
    pub(crate) fn decided(
        &self,
        took: Duration,
        decision: Option<DecisionId>,
        trace: Option<TraceContext>,
    ) {
        let exemplar = decision.map(|id| {
            let mut labels = vec![("decision_id", id.to_string())];
            labels.extend(trace.map(|trace| ("trace_id", trace.trace_id())));
            labels
        });
        self.decision_seconds
            .observe(took.as_secs_f64(), exemplar, Some(clock::wall()));
    }

    pub(crate) fn speculated(&self, kept: u64, conflicts: u64) {
        for (outcome, count) in [("kept", kept), ("conflict", conflicts)] {
            if count > 0 {
                self.speculations
                    .get_or_create(&label(outcome))
                    .inc_by(count);
            }
        }
    }

    pub(crate) fn set_duty(&self, on_duty: bool) {
        self.on_duty.set(i64::from(on_duty));
    }

    pub(crate) fn committed(&self, changes: usize, took: Duration, good: bool) {
        self.commits
            .get_or_create(&label(if good { "ok" } else { "failed" }))
            .inc();
        if good {
            self.commit_seconds.observe(took.as_secs_f64());
            self.changes
                .inc_by(u64::try_from(changes).unwrap_or(u64::MAX));
        }
    }

    pub(crate) fn record_event(&self, event: &CloudEvent) {
        match event {
            CloudEvent::Decision(decision) => {
                let outcome = match &decision.outcome {
                    DecisionOutcome::Placed(_) if decision.victims().next().is_some() => {
                        "placed-by-preemption"
                    }
                    DecisionOutcome::Placed(_) => "placed",
                    DecisionOutcome::NoValidHost(_) => "no-valid-host",
                };
                self.decisions.get_or_create(&label(outcome)).inc();
                self.victims
                    .inc_by(u64::try_from(decision.victims().count()).unwrap_or(u64::MAX));
            }
            CloudEvent::Evacuation(evacuation) => {
                self.evacuations
                    .get_or_create(&label(evacuation.state.as_str()))
                    .inc();
            }
            CloudEvent::Ignored(_) => drop(self.ignored.inc()),
            CloudEvent::Server(_) | CloudEvent::Host(..) | CloudEvent::Alarm { .. } => {}
        }
    }

    /// Counts a report of this sender that went to the dead letters.
    pub(crate) fn dead_lettered(&self, sender: &str) {
        self.dead_letters.inc();
        self.unusable(sender, "kept");
    }

    /// Counts an unusable report of this sender that was discarded.
    pub(crate) fn discarded(&self, sender: &str) {
        self.unusable(sender, "discarded");
    }

    fn unusable(&self, sender: &str, outcome: &str) {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        let known = senders.contains(sender);
        if !known && senders.len() < MOST_SENDERS {
            senders.insert(sender.to_owned());
        }
        let named = known || senders.contains(sender);
        let label = SenderLabel {
            sender: if named { sender } else { "(others)" }.to_owned(),
            outcome: outcome.to_owned(),
        };
        self.unusable.get_or_create(&label).inc();
    }

    /// Counts a refusal by its reason: `unauthenticated`, `permission`, `rate`, `watchers`,
    /// `connections`, `tls`, `timeout`, `unknown`, `report`.
    pub(crate) fn refused(&self, why: &str) {
        self.refusals.get_or_create(&label(why)).inc();
    }

    pub(crate) fn published(&self) {
        self.published.inc();
    }

    pub(crate) fn publish_failed(&self) {
        self.publish_failures.inc();
    }

    /// Sets the metrics that are read from the state and not counted.
    pub(crate) fn set(&self, summary: &CloudTotals, outbox: usize, bus_connected: bool) {
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        for (health, n) in &summary.hosts {
            self.hosts.get_or_create(&label(health)).set(i64::from(*n));
        }
        for status in ebbtide_model::ServerStatus::ALL {
            let n = summary.servers.get(status.as_str()).copied().unwrap_or(0);
            self.servers
                .get_or_create(&label(status.as_str()))
                .set(i64::from(n));
        }
        self.cloud.set_totals(&summary.totals);
        self.under_way.set(count(summary.evacuations));
        self.contested.set(count(summary.contested));
        self.outbox.set(count(outbox));
        self.bus_connected.set(i64::from(bus_connected));
    }

    /// Sets what is read from the region for this page alone.
    pub(crate) fn set_figures(&self, figures: &RegionFigures) {
        self.cloud.set_overtime(figures.overtime_millis);
        let running = figures.running.iter();
        self.cloud.set_running(
            running.map(|((project, flavor), n)| (project.as_str(), flavor.as_str(), *n)),
        );
        let prices = figures.prices.iter();
        self.cloud
            .set_prices(prices.map(|price| (price.flavor.clone(), price.price)));
    }

    /// Sets the metrics of the plugins.
    pub(crate) fn set_plugins(&self, plugins: &[Plugin]) {
        let mut states = ["used", "disabled", "shadow", "resting", "missing"].map(|s| (s, 0));
        for plugin in plugins {
            let (live, shadow) = (plugin.health.report(), plugin.shadow_health.report());
            let state = match plugin {
                _ if !plugin.config.enabled => "disabled",
                _ if plugin.missing().is_some() => "missing",
                _ if plugin.config.shadow => "shadow",
                _ if live.resting => "resting",
                _ => "used",
            };
            for (known, count) in &mut states {
                *count += i64::from(*known == state);
            }
            for (outcome, count) in [
                ("good", live.calls.saturating_sub(live.failures)),
                ("failed", live.failures),
                ("skipped", live.skipped),
                ("shadow-good", shadow.calls.saturating_sub(shadow.failures)),
                ("shadow-failed", shadow.failures),
            ] {
                let label = PluginLabel {
                    plugin: plugin.config.name.clone(),
                    outcome: outcome.to_owned(),
                };
                let counter = self.plugin_calls.get_or_create(&label);
                counter.inner().store(count, Ordering::Relaxed);
            }
        }
        for (state, count) in states {
            self.plugins.get_or_create(&label(state)).set(count);
        }
    }

    /// All metrics in the text format of `OpenMetrics`.
    pub(crate) fn text(&self) -> String {
        ebbtide_metrics::text(&self.registry)
    }
}

fn label(kind: &str) -> Label {
    Label {
        kind: kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_metric_has_its_row_in_the_operator_guide() {
        let page = include_str!("../../../docs/operate/operator-guide.md");
        let missing = ebbtide_metrics::without_row(include_str!("metrics.rs"), page, "ebbtide_");
        assert_eq!(missing, [] as [String; 0], "write a row for each");
    }
}
