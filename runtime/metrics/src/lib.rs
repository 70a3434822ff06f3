//! How the scheduler, in both modes, and the agent declare their metrics for Prometheus, and the
//! page that shows them. What is counted stands with the service that counts it.

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::{Metric, Registry, Unit};

/// The media type of [`text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A metric that the page shows under this name, behind the registry's prefix.
pub fn shown<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// The same of a time, in seconds; its name ends in `_seconds`.
pub fn shown_seconds<M: Metric + Clone>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    metric: M,
) -> M {
    registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}

/// All metrics in the text format of `OpenMetrics`.
#[must_use]
pub fn text(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing into a String cannot fail.
    let _ = encode(&mut text, registry);
    text
}

/// For tests: the metrics that `source` declares and that have no row in `page`, with `prefix`.
/// Declarations begin `shown(to, "NAME"` or `shown_seconds(to, "NAME"`, a row with the name in
/// backticks, with or without labels.
///
/// # Panics
/// If the source declares none: then it is not the source of metrics.
#[must_use]
pub fn without_row(source: &str, page: &str, prefix: &str) -> Vec<String> {
    let words: Vec<&str> = source.split_whitespace().collect();
    let source = words.join(" ");
    let declared = source.split("to, \"").skip(1);
    let names: Vec<&str> = declared.filter_map(|rest| rest.split('"').next()).collect();
    assert!(names.len() > 5, "too few metrics: {names:?}");
    let has_row = |name: &str| {
        let ends = ["", "_total", "_seconds"];
        let mut ends = ends
            .iter()
            .flat_map(|unit| [format!("{unit}`"), format!("{unit}{{")]);
        ends.any(|end| page.contains(&format!("`{prefix}{name}{end}")))
    };
    let missing = names.into_iter().filter(|name| !has_row(name));
    missing.map(|name| format!("{prefix}{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;

    #[test]
    fn the_page_shows_what_is_declared() {
        let mut registry = Registry::with_prefix("ebbtide");
        let claims: Counter = shown(&mut registry, "claims", "Claims", Counter::default());
        let wait: Gauge = shown_seconds(&mut registry, "wait", "Time", Gauge::default());
        claims.inc();
        wait.set(3);
        let page = text(&registry);
        for line in ["ebbtide_claims_total 1", "ebbtide_wait_seconds 3"] {
            assert!(page.lines().any(|one| one == line), "{page}");
        }
    }

    #[test]
    fn a_metric_without_a_row_is_named() {
        let declared = ["a", "b", "c", "d", "e", "f"];
        let source: String = declared
            .iter()
            .map(|name| format!("shown(\n    to,\n    \"{name}\",\n"))
            .collect();
        let page = "| `x_a` | `x_b{kind}` | `x_c_total` | `x_d_seconds` | `x_e_total{kind}` |";
        assert_eq!(without_row(&source, page, "x_"), ["x_f"]);
    }
}
