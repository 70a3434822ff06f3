//! Against Nova, on the same input: filters and weighers with Nova's defaults, answers to the bit.
//!
//! `bench_nova.py` times the real Nova on an input and writes down what it answered; here our own
//! paths are timed on the same input, and every answer is held against Nova's: how many hosts pass,
//! the first twenty of the order, their weights to the last bit. Compared are medians of processor
//! time, as `bench_nova.py` measures it: one thread, one request after the other, the input's 50
//! different requests in turn, on host states that are there already.
//!
//! Nova sorts all hosts that pass. A caller that places an instance needs only the best host and a
//! few alternates, so our path sorts only as many hosts as the answers list. The benchmark measures
//! the time for the whole order as well.

mod input;
mod paths;

pub use ebbtide_conformance::bench_input::BenchInput;
pub use input::{nova_cpu_median_us, read_answers, read_input};
pub use paths::{ColumnPath, NovaPath, Reference};

use crate::BenchError;
use crate::progress::Progress;
use crate::request::quotient;
use crate::stats::{Latency, rounded};
use serde::Serialize;

/// Requests before the measured ones.
const WARM_UP: usize = 5;

/// What is compared of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct NovaAnswer {
    /// How many hosts pass the filters.
    pub filtered: usize,
    /// The best hosts, by place in the input.
    pub order: Vec<usize>,
    /// Their weights.
    pub top: Vec<f64>,
}

impl NovaAnswer {
    /// How many hosts are listed.
    pub const LISTED: usize = 20;

    /// True if it is the same to the last bit.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        let bits = |answer: &Self| answer.top.iter().map(|t| t.to_bits()).collect::<Vec<_>>();
        self.filtered == other.filtered && self.order == other.order && bits(self) == bits(other)
    }
}

/// What came out for one path on one input.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NovaReport {
    /// How many hosts the input has.
    pub hosts: usize,
    /// Which of our ways to decide.
    pub path: &'static str,
    /// Wall-clock time of filters and weighers.
    #[serde(flatten)]
    pub latency: Latency,
    /// Requests measured.
    pub iterations: usize,
    /// Answers that were held against Nova's.
    pub checked: usize,
    /// Of them, those that are equal to the bit.
    pub equal: usize,
    /// Nova's median of the processor time for the same, if it is known.
    pub nova_cpu_p50_us: Option<f64>,
    /// How many times as long Nova takes (medians of processor time).
    pub ratio: Option<f64>,
    /// What the first unequal answer was, and what Nova's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_difference: Option<String>,
}

/// Times a path and holds its answers against Nova's.
///
/// # Errors
/// What Nova would raise.
pub fn run(
    input: &BenchInput,
    path: &mut dyn NovaPath,
    expected: &[(usize, NovaAnswer)],
    iterations: usize,
    nova_cpu_us: Option<f64>,
    progress: &mut dyn Progress,
) -> Result<NovaReport, BenchError> {
    if iterations == 0 {
        return Err(BenchError::Option(
            "--iterations 0: use 1 or more".to_owned(),
        ));
    }
    let asked = |number: usize| &input.requests[number % input.requests.len()];
    let mut times = Vec::new();
    progress.begin(path.name(), iterations as u64);
    for turn in 0..WARM_UP + iterations {
        let (_, took) = path.decide(asked(turn))?;
        if let Some(measured) = turn.checked_sub(WARM_UP) {
            times.push(took);
            progress.set(measured as u64 + 1);
        }
    }
    let mut first_difference = None;
    let mut equal = 0;
    for (request, answer) in expected {
        let (ours, _) = path.decide(asked(*request))?;
        if ours.same(answer) {
            equal += 1;
        } else if first_difference.is_none() {
            first_difference = Some(format!("request {request}: {ours:?} instead of {answer:?}"));
        }
    }
    let latency = Latency::of_both(&times);
    let cpu = latency.cpu_p50_us.unwrap_or_default();
    Ok(NovaReport {
        hosts: input.states.len(),
        path: path.name(),
        latency,
        iterations,
        checked: expected.len(),
        equal,
        nova_cpu_p50_us: nova_cpu_us.map(rounded),
        ratio: nova_cpu_us.map(|nova| quotient(nova, cpu)),
        first_difference,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoProgress;
    use std::path::PathBuf;

    fn file(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../integration/nova/bench")
            .join(name)
    }

    #[test]
    fn every_answer_on_a_hundred_hosts_is_nova_s_to_the_bit() {
        let input = read_input(&file("hosts_100.jsonl.gz")).unwrap();
        let answers = read_answers(&file("answers_100.jsonl")).unwrap();
        let paths: [Box<dyn NovaPath + '_>; 3] = [
            Box::new(ColumnPath::best(&input)),
            Box::new(ColumnPath::whole_order(&input)),
            Box::new(Reference::new(&input)),
        ];
        for mut path in paths {
            let report = run(
                &input,
                path.as_mut(),
                &answers,
                2,
                Some(8900.0),
                &mut NoProgress,
            )
            .unwrap();
            assert_eq!(report.first_difference, None, "{}", report.path);
            assert_eq!((report.hosts, report.equal, report.checked), (100, 50, 50));
            assert!(report.ratio.unwrap() > 0.0);
        }
    }

    #[test]
    fn a_bit_is_a_difference() {
        let one = NovaAnswer {
            filtered: 1,
            order: vec![0],
            top: vec![1.0],
        };
        let mut other = one.clone();
        assert!(one.same(&other));
        other.top[0] = f64::from_bits(1.0_f64.to_bits() + 1);
        assert!(!one.same(&other));
    }

    #[test]
    fn a_file_that_is_no_input_is_refused_with_its_name() {
        let error = read_input(&file("answers_100.jsonl")).unwrap_err();
        assert_eq!(error.code(), "EB-BENCH-006");
        assert!(error.to_string().contains("answers_100.jsonl"), "{error}");
        assert!(read_input(&file("nothing.gz")).is_err());
    }
}
