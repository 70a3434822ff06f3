//! Nova's benchmark input: one line with configuration, aggregates and requests, then one line a
//! host, gzip or plain (`integration/nova/oracle/bench_nova.py`), and the answers that a paired
//! program must give.

use super::NovaAnswer;
use crate::BenchError;
use ebbtide_conformance::bench_input::BenchInput;
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

fn unreadable(path: &Path, problem: impl ToString) -> BenchError {
    BenchError::Read {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}

/// The lines of a file, decompressed if its name ends in `.gz`.
fn lines(path: &Path) -> Result<impl Iterator<Item = Result<String, BenchError>>, BenchError> {
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let plain: Box<dyn Read> = if path.extension().is_some_and(|e| e == "gz") {
        Box::new(MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let of = path.to_owned();
    let lines = BufReader::new(plain).lines();
    Ok(lines.map(move |line| line.map_err(|error| unreadable(&of, error))))
}

/// Reads hosts and requests.
///
/// # Errors
/// [`BenchError::Read`] with what is wrong with the file.
pub fn read_input(path: &Path) -> Result<BenchInput, BenchError> {
    let lines = lines(path)?.collect::<Result<Vec<_>, _>>()?;
    BenchInput::read(lines.iter().map(String::as_str)).map_err(|bad| unreadable(path, bad))
}

#[derive(Deserialize)]
struct ExpectedDecision {
    req: usize,
    filtered: usize,
    order: Vec<usize>,
    top: Vec<f64>,
}

/// Reads answers; by number of the request.
///
/// # Errors
/// [`BenchError::Read`] with the line that is wrong.
pub fn read_answers(path: &Path) -> Result<Vec<(usize, NovaAnswer)>, BenchError> {
    let mut answers = Vec::new();
    for (number, line) in (1..).zip(lines(path)?) {
        let expected: ExpectedDecision = serde_json::from_str(&line?)
            .map_err(|error| unreadable(path, format!("line {number}: {error}")))?;
        let answer = NovaAnswer {
            filtered: expected.filtered,
            order: expected.order,
            top: expected.top,
        };
        answers.push((expected.req, answer));
    }
    Ok(answers)
}

#[derive(Deserialize)]
struct NovaReport {
    phases: std::collections::BTreeMap<String, Phase>,
}

#[derive(Deserialize)]
struct Phase {
    cpu_median_ms: f64,
}

/// Nova's own median for filters and weighers, processor time in microseconds, from what
/// `bench_nova.py --json` wrote.
///
/// # Errors
/// [`BenchError::Read`].
pub fn nova_cpu_median_us(path: &Path) -> Result<f64, BenchError> {
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
    let report: NovaReport =
        serde_json::from_str(&text).map_err(|error| unreadable(path, error))?;
    let phase = report.phases.get("filter+weigh");
    let phase = phase.ok_or_else(|| unreadable(path, "it has no phase filter+weigh"))?;
    Ok(phase.cpu_median_ms * 1000.0)
}
