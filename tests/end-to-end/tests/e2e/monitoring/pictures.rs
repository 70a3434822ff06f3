//! Pictures of the dashboards, drawn from Prometheus by the project's own charts: for the
//! documentation, with `EBBTIDE_PICTURES=DIR`.

use super::prometheus::{Prometheus, encoded};
use super::{has_data, preempt_again};
use ebbtide_chart::{Axis, Figure, LineLayer, Panel};
use ebbtide_integration_tests::Region;
use ebbtide_runtime::clock;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How often servers come and go before the pictures are drawn.
const ROUNDS: u32 = 30;

/// Draws each dashboard's charts since now, after some traffic, into `directory`.
pub(super) async fn draw(
    region: &Region,
    prometheus: &Prometheus,
    dashboards: &BTreeMap<String, Value>,
    directory: PathBuf,
) {
    std::fs::create_dir_all(&directory).unwrap();
    let start = clock::unix_millis() / 1000;
    for round in 0..ROUNDS {
        preempt_again(region, round).await;
    }
    let end = clock::unix_millis() / 1000;
    for (name, dashboard) in dashboards {
        let title = dashboard["title"].as_str().unwrap();
        let mut figure = Figure::new(title).columns(2).width(1100);
        for panel in dashboard["panels"].as_array().unwrap() {
            if let Some(panel) = chart(prometheus, panel, start, end).await {
                figure = figure.panel(panel);
            }
        }
        let path = directory.join(format!("{name}.svg"));
        std::fs::write(path, figure.svg().unwrap()).unwrap();
    }
}

/// One chart of a dashboard; `None` for a single number or where there is nothing to show.
async fn chart(prometheus: &Prometheus, panel: &Value, start: i64, end: i64) -> Option<Panel> {
    if panel["type"] != "timeseries" {
        return None;
    }
    let unit = panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap();
    let title = panel["title"].as_str().unwrap();
    let mut layers = Vec::new();
    for target in panel["targets"].as_array().unwrap() {
        let query = target["expr"].as_str().unwrap();
        if !has_data(prometheus, query).await.unwrap() {
            continue;
        }
        let path = format!(
            "query_range?query={}&start={start}&end={end}&step=2",
            encoded(query)
        );
        let found = prometheus.ask(&path).await.unwrap();
        for series in found["result"].as_array().unwrap() {
            let legend = legend(target["legendFormat"].as_str().unwrap(), &series["metric"]);
            let values = series["values"].as_array().unwrap().iter();
            let number = |value: &Value| -> Option<f64> { value.as_str()?.parse().ok() };
            #[allow(clippy::cast_precision_loss)] // Seconds of a day.
            let point =
                |value: &Value| Some((value[0].as_f64()? - start as f64, number(&value[1])?));
            let points: Vec<(f64, f64)> = values.filter_map(point).collect();
            layers.push(LineLayer::new(legend, points));
        }
    }
    let unit = match unit {
        "s" => "seconds",
        "reqps" => "per second",
        "percentunit" => "part",
        "decmbytes" => "MiB",
        _ => "",
    };
    let panel = Panel::new(Axis::new("time [s]"), Axis::new(unit)).title(title);
    let any = !layers.is_empty();
    any.then(|| layers.into_iter().fold(panel, Panel::with))
}

/// Grafana's legend: `{{label}}` stands for the label's value.
fn legend(format: &str, labels: &Value) -> String {
    let mut text = format.to_owned();
    for (label, value) in labels.as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        text = text.replace(&format!("{{{{{label}}}}}"), value);
    }
    text
}
