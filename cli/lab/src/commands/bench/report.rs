//! What all benchmarks have in common: progress, the warning, JSON, files.

use crate::error::LabError;
use ebbtide_bench::{BenchError, Machine, Progress};
use ebbtide_chart::Figure;
use ebbtide_runtime::clock;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Says loudly that figures of a debug build mean nothing.
pub(crate) fn warn_if_debug(context: &mut Context) {
    if ebbtide_bench::machine::build() == "debug" {
        context.output.say(
            "WARNING: this is a debug build. Its figures say nothing about Ebbtide: use `cargo run --release -p ebbtide-lab -- bench …`.",
        );
    }
}

/// A bar on a terminal, else a line every few seconds; nothing with `--quiet`.
pub(super) struct ProgressDisplay<'a> {
    context: &'a mut Context,
    bar: Option<ProgressBar>,
    what: String,
    total: u64,
    told: Instant,
}

impl<'a> ProgressDisplay<'a> {
    pub(super) fn new(context: &'a mut Context) -> Self {
        Self {
            context,
            bar: None,
            what: String::new(),
            total: 0,
            told: clock::instant(),
        }
    }
}

impl Progress for ProgressDisplay<'_> {
    fn begin(&mut self, what: &str, total: u64) {
        what.clone_into(&mut self.what);
        self.total = total;
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if self.context.output.may_draw() {
            let bar = ProgressBar::new(total);
            let style = ProgressStyle::with_template("{msg}: {bar:30} {pos}/{len}, {eta} left");
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar.set_message(what.to_owned());
            self.bar = Some(bar);
        }
    }

    fn set(&mut self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        } else if self.told.elapsed() >= LINE_EVERY {
            self.told = clock::instant();
            let line = format!("{}: {done} of {}", self.what, self.total);
            self.context.output.say(&line);
        }
    }
}

impl Drop for ProgressDisplay<'_> {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// A report as JSON, keys in the order of its fields.
pub(super) fn json(report: &impl Serialize) -> Result<Json, CliError> {
    let text = serde_json::to_string(report).map_err(std::io::Error::from)?;
    Ok(serde_json::from_str(&text).map_err(std::io::Error::from)?)
}

/// One row as an object of its own, several as the list `results`; the machine behind it.
pub(super) fn rows_json(rows: &[impl Serialize], machine: &Machine) -> Result<Json, CliError> {
    let mut list = rows.iter().map(json).collect::<Result<Vec<_>, _>>()?;
    let json_of_machine = json(machine)?;
    let one = if list.len() == 1 { list.pop() } else { None };
    let all = one.unwrap_or_else(|| Json::object([("results", Json::List(list))]));
    Ok(all.with("machine", json_of_machine))
}

/// Draws a figure into a file and says so.
pub(super) fn write(context: &mut Context, path: &Path, figure: &Figure) -> Result<(), CliError> {
    let svg = figure.svg()?;
    std::fs::write(path, svg)
        .map_err(|error| BenchError::Write {
            path: path.to_owned(),
            problem: error.to_string(),
        })
        .map_err(LabError::Bench)?;
    context.output.say(&format!("wrote {}", path.display()));
    Ok(())
}

/// Microseconds for people: three digits that matter, and the unit.
pub(super) fn time(micros: f64) -> String {
    match micros {
        us if us >= 1e6 => format!("{:.2} s", us / 1e6),
        us if us >= 1e3 => format!("{:.2} ms", us / 1e3),
        us if us >= 100.0 => format!("{us:.0} µs"),
        us => format!("{us:.2} µs"),
    }
}

/// A line for people about where it was measured.
pub(super) fn where_measured(machine: &Machine) -> String {
    format!(
        "{}, {} cores, {} MiB, {}, load {}, {} build, version {}",
        machine.cpu,
        machine.cores,
        machine.memory_mib,
        machine.system,
        machine.load_1m,
        machine.build,
        machine.version
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_in_the_order_of_the_fields_and_floats_as_they_are() {
        #[derive(Serialize)]
        struct Report {
            zebra: f64,
            ant: Option<u32>,
            list: Vec<bool>,
        }
        let report = Report {
            zebra: 0.1,
            ant: None,
            list: vec![true],
        };
        let text = serde_json::to_string(&json(&report).unwrap()).unwrap();
        assert_eq!(text, r#"{"zebra":0.1,"ant":null,"list":[true]}"#);
    }

    #[test]
    fn times_have_their_unit() {
        let texts = [1.234, 456.7, 12_345.6, 2_500_000.0].map(time);
        assert_eq!(texts, ["1.23 µs", "457 µs", "12.35 ms", "2.50 s"]);
    }
}
