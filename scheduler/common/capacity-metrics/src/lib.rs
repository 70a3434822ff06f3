//! Metrics of capacity, prices and preemptible servers that both clouds have, with the same names,
//! so that one dashboard and one set of alerts serves both.

use ebbtide_engine::ClassUsage;
use ebbtide_metrics::{shown, shown_seconds};
use ebbtide_model::Money;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResourceLabel {
    resource_class: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct UseLabel {
    resource_class: String,
    kind: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabel {
    resource_class: String,
    state: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ProjectLabel {
    project_id: String,
    flavor: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FlavorLabel {
    flavor: String,
}

/// The metrics. A service sets them when it is asked for its page. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CapacityMetrics {
    capacity: Family<ResourceLabel, Gauge>,
    used: Family<UseLabel, Gauge>,
    free: Family<StateLabel, Gauge>,
    running: Family<ProjectLabel, Gauge>,
    prices: Family<FlavorLabel, Gauge<f64, AtomicU64>>,
    overtime: Gauge<f64, AtomicU64>,
}

impl CapacityMetrics {
    /// Declares them in the registry of a service.
    pub fn declare(to: &mut Registry) -> Self {
        Self {
            capacity: shown(
                to,
                "capacity",
                "What servers may use in all, by resource class",
                Family::default(),
            ),
            used: shown(
                to,
                "used",
                "Used amount by resource class: normal (what no eviction frees), preemptible, \
                 leaving",
                Family::default(),
            ),
            free: shown(
                to,
                "free",
                "Free amount by resource class and state (full: h_f, normal: h_n)",
                Family::default(),
            ),
            running: shown(
                to,
                "preemptible_servers",
                "Preemptible servers that run, by project and flavor, for rating",
                Family::default(),
            ),
            prices: shown(
                to,
                "price_per_hour",
                "Present price of a server of the flavor for an hour",
                Family::default(),
            ),
            overtime: shown_seconds(
                to,
                "evacuation_overtime",
                "How long the latest evacuation under way has lasted beyond its grace period",
                Gauge::default(),
            ),
        }
    }

    /// Both states over all hosts.
    pub fn set_totals(&self, totals: &[ClassUsage]) {
        for class in totals {
            let resource_class = || class.class.to_string();
            let label = ResourceLabel {
                resource_class: resource_class(),
            };
            self.capacity.get_or_create(&label).set(class.capacity);
            for (kind, amount) in [
                ("normal", class.normal),
                ("preemptible", class.preemptible),
                ("leaving", class.leaving),
            ] {
                let resource_class = resource_class();
                let label = UseLabel {
                    resource_class,
                    kind,
                };
                self.used.get_or_create(&label).set(amount);
            }
            for (state, amount) in [("full", class.free_full), ("normal", class.free_normal)] {
                let resource_class = resource_class();
                let label = StateLabel {
                    resource_class,
                    state,
                };
                self.free.get_or_create(&label).set(amount);
            }
        }
    }

    /// The preemptible servers that run: project, flavor, how many. A project that has none any
    /// more has no series any more.
    pub fn set_running<'a>(&self, servers: impl Iterator<Item = (&'a str, &'a str, u64)>) {
        self.running.clear();
        for (project, flavor, count) in servers {
            let label = ProjectLabel {
                project_id: project.to_owned(),
                flavor: flavor.to_owned(),
            };
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.running.get_or_create(&label).set(count);
        }
    }

    /// The present price of each flavor that has one.
    #[allow(clippy::cast_precision_loss)] // Amounts for people, far below 2^53.
    pub fn set_prices(&self, prices: impl Iterator<Item = (String, Money)>) {
        self.prices.clear();
        for (flavor, price) in prices {
            let price = price.micros() as f64 / 1e6;
            self.prices
                .get_or_create(&FlavorLabel { flavor })
                .set(price);
        }
    }

    /// How long the latest evacuation under way has lasted beyond its grace period, milliseconds.
    #[allow(clippy::cast_precision_loss)] // A time for people.
    pub fn set_overtime(&self, millis: i64) {
        self.overtime.set(millis as f64 / 1e3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_model::ResourceClass;

    #[test]
    fn every_metric_has_its_row_in_the_pages_of_both_clouds() {
        let source = include_str!("lib.rs");
        for page in [
            include_str!("../../../../docs/operate/operator-guide.md"),
            include_str!("../../../../docs/openstack/openstack.md"),
        ] {
            let missing = ebbtide_metrics::without_row(source, page, "ebbtide_");
            assert_eq!(missing, [] as [String; 0], "write a row for each");
        }
    }

    #[test]
    fn the_page_shows_what_was_set_last() {
        let mut registry = Registry::with_prefix("ebbtide");
        let metrics = CapacityMetrics::declare(&mut registry);
        metrics.set_totals(&[ClassUsage {
            class: ResourceClass::vcpu(),
            capacity: 16,
            normal: 4,
            preemptible: 8,
            leaving: 2,
            claimed: 0,
            free_full: 2,
            free_normal: 12,
        }]);
        metrics.set_running([("web", "large", 1)].into_iter());
        metrics.set_running([("lab", "large", 2)].into_iter());
        let price = Money::from_micros(120_000);
        metrics.set_prices([("large".to_owned(), price)].into_iter());
        metrics.set_overtime(1500);
        let page = ebbtide_metrics::text(&registry);
        for line in [
            "ebbtide_capacity{resource_class=\"VCPU\"} 16",
            "ebbtide_used{resource_class=\"VCPU\",kind=\"normal\"} 4",
            "ebbtide_used{resource_class=\"VCPU\",kind=\"preemptible\"} 8",
            "ebbtide_used{resource_class=\"VCPU\",kind=\"leaving\"} 2",
            "ebbtide_free{resource_class=\"VCPU\",state=\"full\"} 2",
            "ebbtide_free{resource_class=\"VCPU\",state=\"normal\"} 12",
            "ebbtide_preemptible_servers{project_id=\"lab\",flavor=\"large\"} 2",
            "ebbtide_price_per_hour{flavor=\"large\"} 0.12",
            "ebbtide_evacuation_overtime_seconds 1.5",
        ] {
            assert!(page.lines().any(|l| l == line), "{line} is not in\n{page}");
        }
        assert!(!page.contains("\"web\""), "{page}");
    }
}
