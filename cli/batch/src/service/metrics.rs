//! Metrics of the batch service for Prometheus, the elastic partition among them.

use crate::service::health::ratio;
use ebbtide_batch::WorkState;
use ebbtide_batch::view::ElasticView;
use ebbtide_metrics::{shown, shown_seconds};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;

/// Number of works by the name of their state.
pub(crate) type WorkCounts = BTreeMap<&'static str, i64>;

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Fault {
    place: String,
    code: String,
}

/// All metrics. Names begin with `ebbtide_batch_`.
pub(crate) struct Metrics {
    registry: Registry,
    ready: Gauge,
    looks: Family<Kind, Counter>,
    last_look: Gauge<f64, AtomicU64>,
    faults: Family<Fault, Gauge>,
    works: Family<Kind, Gauge>,
    servers: Family<Kind, Gauge>,
    elastic_wanted: Gauge,
    elastic_most: Gauge,
    long_load_ratio: Gauge<f64, AtomicU64>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// `elastic`: there is an elastic partition; without one its metrics are not shown.
    pub(crate) fn new(elastic: bool) -> Self {
        let mut registry = Registry::with_prefix("ebbtide_batch");
        let mut elsewhere = Registry::default();
        let to = &mut registry;
        let metrics = Self {
            ready: shown(
                to,
                "ready",
                "1 while the service can do its work",
                Gauge::default(),
            ),
            looks: shown(
                to,
                "looks",
                "Looks at Slurm and the cloud by outcome",
                Family::default(),
            ),
            last_look: shown_seconds(
                to,
                "last_look_timestamp",
                "When Slurm and the cloud were last seen, since 1970; 0: never",
                Gauge::default(),
            ),
            faults: shown(
                to,
                "faults",
                "What is wrong now, by place and code",
                Family::default(),
            ),
            works: shown(to, "works", "Works by state", Family::default()),
            servers: shown(
                to,
                "servers",
                "Servers that are there or come, of types and of the elastic partition",
                Family::default(),
            ),
            elastic_wanted: Gauge::default(),
            elastic_most: Gauge::default(),
            long_load_ratio: Gauge::default(),
            registry: Registry::default(),
        };
        let to = if elastic {
            &mut registry
        } else {
            &mut elsewhere
        };
        let elastic_wanted = shown(
            to,
            "elastic_wanted_servers",
            "Servers that the elastic partition wants",
            Gauge::default(),
        );
        let elastic_most = shown(
            to,
            "elastic_most_servers",
            "Servers that the elastic partition may have",
            Gauge::default(),
        );
        let long_load_ratio = shown(
            to,
            "elastic_long_load_ratio",
            "Part of the on-demand nodes that long jobs have",
            Gauge::default(),
        );
        // Counters begin at zero, so that an alert on an increase works from the first one on.
        for kind in ["good", "failed"] {
            drop(metrics.looks.get_or_create(&Kind { kind }));
        }
        Self {
            registry,
            elastic_wanted,
            elastic_most,
            long_load_ratio,
            ..metrics
        }
    }

    /// A look has ended. `seen`: when Slurm and the cloud were last seen, milliseconds since 1970.
    pub(crate) fn looked(&self, good: bool, seen: Option<i64>) {
        let kind = if good { "good" } else { "failed" };
        self.looks.get_or_create(&Kind { kind }).inc();
        let seconds = seen.map_or(0.0, |at| at as f64 / 1_000.0);
        self.last_look.set(seconds);
    }

    pub(crate) fn faults(&self, faults: &BTreeMap<String, String>) {
        self.faults.clear();
        for (place, code) in faults {
            let (place, code) = (place.clone(), code.clone());
            self.faults.get_or_create(&Fault { place, code }).set(1);
        }
    }

    pub(crate) fn works(&self, counts: &WorkCounts) {
        for state in [
            WorkState::Active,
            WorkState::OverBudget,
            WorkState::Done,
            WorkState::Failed,
            WorkState::Cancelled,
        ] {
            let kind = state.as_str();
            let count = counts.get(kind).copied().unwrap_or(0);
            self.works.get_or_create(&Kind { kind }).set(count);
        }
    }

    /// Servers of types, and of the elastic partition.
    pub(crate) fn servers(&self, (types, elastic): (usize, usize)) {
        for (kind, count) in [("types", types), ("elastic", elastic)] {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.servers.get_or_create(&Kind { kind }).set(count);
        }
    }

    pub(crate) fn elastic(&self, view: Option<&ElasticView>) {
        self.elastic_wanted
            .set(view.map_or(0, |view| view.wanted.into()));
        self.elastic_most
            .set(view.map_or(0, |view| view.most.into()));
        self.long_load_ratio.set(ratio(view));
    }

    /// The page.
    pub(crate) fn text(&self, ready: bool) -> String {
        self.ready.set(ready.into());
        ebbtide_metrics::text(&self.registry)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_documentation_has_a_row_for_every_metric() {
        let page = include_str!("../../../../docs/tenants/batch.md");
        let source = include_str!("metrics.rs");
        let source = source.split("mod tests").next().unwrap();
        let missing = ebbtide_metrics::without_row(source, page, "ebbtide_batch_");
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn a_service_without_an_elastic_partition_shows_none() {
        let (with, without) = (Metrics::new(true), Metrics::new(false));
        let name = "ebbtide_batch_elastic_long_load_ratio";
        assert!(with.text(true).contains(name));
        assert!(!without.text(true).contains(name));
        assert!(without.text(true).contains("ebbtide_batch_ready 1"));
        without.looked(false, None);
        let page = without.text(false);
        for line in [
            "ebbtide_batch_ready 0",
            "ebbtide_batch_looks_total{kind=\"failed\"} 1",
            "ebbtide_batch_looks_total{kind=\"good\"} 0",
            "ebbtide_batch_last_look_timestamp_seconds 0.0",
        ] {
            assert!(page.lines().any(|one| one == line), "{page}");
        }
    }
}
