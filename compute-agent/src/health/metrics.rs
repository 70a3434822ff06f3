//! Metrics of the agents of this process for Prometheus.

use ebbtide_metrics::shown;
use ebbtide_service_manager::reload::{self, ReloadStates};
use ebbtide_telemetry::SpanCounts;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::fmt;

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct HostLabel {
    host: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabel {
    host: String,
    outcome: &'static str,
}

/// All metrics. Names begin with `ebbtide_agent_`; each has the label `host`.
pub(super) struct Metrics {
    registry: Registry,
    ready: Family<HostLabel, Gauge>,
    evacuations: Family<HostLabel, Gauge>,
    sessions: Family<HostLabel, Counter>,
    commands: Family<HostLabel, Counter>,
    reports: Family<HostLabel, Counter>,
    calls: Family<CallLabel, Counter>,
    _trace_spans: SpanCounts,
    _reloads: ReloadStates,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("ebbtide_agent");
        let to = &mut registry;
        Self {
            ready: shown(
                to,
                "ready",
                "1 while the agent can do all of its work",
                Family::default(),
            ),
            evacuations: shown(
                to,
                "evacuations_remembered",
                "Evacuations in the journal, under way or ended and not yet forgotten",
                Family::default(),
            ),
            sessions: shown(
                to,
                "sessions",
                "Times that the agent began from its journal",
                Family::default(),
            ),
            commands: shown(
                to,
                "commands",
                "Commands of the scheduler that were read",
                Family::default(),
            ),
            reports: shown(
                to,
                "reports",
                "Reports that the broker confirmed",
                Family::default(),
            ),
            calls: shown(
                to,
                "hypervisor_calls",
                "Calls of the hypervisor by outcome",
                Family::default(),
            ),
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
            registry,
        }
    }
}

impl Metrics {
    /// A session of `host` begins. Counters begin at zero, so that an alert on an increase works
    /// from the first one on.
    pub(super) fn begin(&self, host: &str) {
        self.sessions.get_or_create(&label(host)).inc();
        let _ = self.commands.get_or_create(&label(host));
        let _ = self.reports.get_or_create(&label(host));
        for outcome in ["good", "failed"] {
            let _ = self.calls.get_or_create(&call_label(host, outcome));
        }
    }

    pub(super) fn set_ready(&self, host: &str, ready: bool) {
        self.ready.get_or_create(&label(host)).set(ready.into());
    }

    pub(super) fn set_evacuations(&self, host: &str, number: usize) {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        self.evacuations.get_or_create(&label(host)).set(number);
    }

    pub(super) fn command(&self, host: &str) {
        self.commands.get_or_create(&label(host)).inc();
    }

    pub(super) fn reported(&self, host: &str) {
        self.reports.get_or_create(&label(host)).inc();
    }

    pub(super) fn called(&self, host: &str, good: bool) {
        let outcome = if good { "good" } else { "failed" };
        self.calls.get_or_create(&call_label(host, outcome)).inc();
    }

    pub(super) fn text(&self) -> String {
        ebbtide_metrics::text(&self.registry)
    }
}

fn label(host: &str) -> HostLabel {
    HostLabel {
        host: host.to_owned(),
    }
}

fn call_label(host: &str, outcome: &'static str) -> CallLabel {
    CallLabel {
        host: host.to_owned(),
        outcome,
    }
}
