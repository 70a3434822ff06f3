//! Running times, reuse and checkpoint plans against the paper's vectors, and against lives lived
//! through.

mod checkpoints;
mod figures;
mod reuse;

use ebbtide_lifetime::distributions::Bathtub;
use serde_json::Value;

/// Every parameter set of the vectors with its model.
fn each(check: impl Fn(&str, &Bathtub, &Value)) {
    let vectors: Value = serde_json::from_str(include_str!("../vectors/001_model.json")).unwrap();
    for (name, vector) in vectors["models"].as_object().unwrap() {
        let p = |key: &str| vector["params"][key].as_f64().unwrap();
        let model = Bathtub::new(p("A"), p("tau1"), p("tau2"), p("b"), 24.0).unwrap();
        check(name, &model, vector);
    }
}

fn numbers(value: &Value) -> Vec<(f64, f64)> {
    let pairs = value.as_object().unwrap().iter();
    pairs
        .map(|(k, v)| (k.parse().unwrap(), v.as_f64().unwrap()))
        .collect()
}

fn refit() -> Bathtub {
    Bathtub::new(0.414, 0.94, 0.77, 24.45, 24.0).unwrap()
}

const MINUTE: f64 = 1.0 / 60.0;

fn minutes(intervals: &[f64]) -> Vec<u64> {
    intervals
        .iter()
        .map(|hours| (hours * 60.0).round() as u64)
        .collect()
}
