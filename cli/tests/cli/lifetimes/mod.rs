//! `model fit`, `model check`, `plan checkpoint` and `plan reuse`: the paper's figures through the
//! command itself, and bad input.

mod advice;
mod figures;
mod fit;
mod plans;
mod refused;
mod region;

use crate::run::{Ran, alone};
use std::fmt::Write as _;
use std::path::Path;

/// The pooled refit of the public data.
const REFIT: &str = "bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.45";

/// The public data, and whether they are reduced ones.
fn public_data() -> (String, bool) {
    let data = ebbtide_test_data::data("goog-preemption/preemptions.csv");
    (data.path.to_str().unwrap().to_owned(), data.reduced)
}

async fn ebbtide(line: &[&str]) -> Ran {
    alone(line).await
}

fn file(directory: &Path, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A file in the plain format: short lives, long ones, stopped ones, two flavors.
fn plain() -> String {
    let mut text = String::from(
        "flavor,lifetime_hours,ended,launched\nspot.a,24.0,preempted,2026-05-04T09:30:00+02:00\n",
    );
    for row in 1..60 {
        let (flavor, hours) = if row % 2 == 0 {
            ("spot.a", 0.11)
        } else {
            ("spot.b", 0.23)
        };
        let ended = if row % 5 == 0 { "stopped" } else { "preempted" };
        let at = format!("2026-05-{:02}T{:02}:00:00+02:00", 1 + row / 24, row % 24);
        writeln!(text, "{flavor},{:.3},{ended},{at}", hours * f64::from(row)).unwrap();
    }
    text
}
