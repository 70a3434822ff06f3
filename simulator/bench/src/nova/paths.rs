//! The ways in which we decide as Nova does, behind one trait, so that each can be timed and
//! checked alike.

use super::NovaAnswer;
use crate::BenchError;
use crate::timing::{ElapsedTime, timed_cpu};
use ebbtide_conformance::bench_input::BenchInput;
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::filtering;
use ebbtide_nova::filters::Context;
use ebbtide_nova::model::{HostState, RequestSpec};
use ebbtide_nova::table::{CloudTable, DecideFault};
use ebbtide_nova::weighing;

/// A way to decide. Made from an input once, which is not timed: Nova's own time is that of filters
/// and weighers on host states that are there.
pub trait NovaPath {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// Filters and weighs for a request; answers with how long exactly that took.
    ///
    /// # Errors
    /// What Nova would raise.
    fn decide(&mut self, request: &RequestSpec) -> Result<(NovaAnswer, ElapsedTime), BenchError>;
}

fn raised(fault: &NovaException) -> BenchError {
    BenchError::Nova(format!("{}: {}", fault.class, fault.message))
}

/// The path that decides in production: hosts as columns.
#[derive(Debug)]
pub struct ColumnPath {
    cloud: CloudTable,
    /// How many hosts are put in order.
    top: usize,
}

impl ColumnPath {
    /// The path that sorts only the best hosts, as many as Nova's answers list. A caller that
    /// places an instance needs one host and a few alternates.
    #[must_use]
    pub fn best(input: &BenchInput) -> Self {
        Self {
            cloud: input.cloud(),
            top: NovaAnswer::LISTED,
        }
    }

    /// Puts all hosts in order, as Nova does.
    #[must_use]
    pub fn whole_order(input: &BenchInput) -> Self {
        Self {
            cloud: input.cloud(),
            top: input.states.len(),
        }
    }
}

impl NovaPath for ColumnPath {
    fn name(&self) -> &'static str {
        if self.top > NovaAnswer::LISTED {
            "columns, whole order"
        } else {
            "columns"
        }
    }

    fn decide(&mut self, request: &RequestSpec) -> Result<(NovaAnswer, ElapsedTime), BenchError> {
        let (decision, took) = timed_cpu(|| self.cloud.decide(request, self.top));
        let decision = decision.map_err(|failed| match failed {
            DecideFault::Filter(failed) => raised(&failed.fault),
            DecideFault::Weigh(failed) => raised(&failed.fault),
        })?;
        let best = decision.best.iter().take(NovaAnswer::LISTED);
        let answer = NovaAnswer {
            filtered: decision.passing,
            order: best.clone().map(|(host, _)| *host).collect(),
            top: best.map(|(_, total)| *total).collect(),
        };
        Ok((answer, took))
    }
}

/// Filter by filter and weigher by weigher over host states, as Nova does: the simple version that
/// the columns are tested against.
#[derive(Debug)]
pub struct Reference<'a> {
    input: &'a BenchInput,
}

impl<'a> Reference<'a> {
    #[must_use]
    pub fn new(input: &'a BenchInput) -> Self {
        Self { input }
    }
}

impl NovaPath for Reference<'_> {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn decide(&mut self, request: &RequestSpec) -> Result<(NovaAnswer, ElapsedTime), BenchError> {
        let options = &self.input.options;
        let context = Context {
            options,
            now: self.input.now,
        };
        // Filters leave something on the states, so each request gets its own; Nova builds them
        // anew for each, and that is not in its time either.
        let mut states = self.input.states.clone();
        let all: Vec<usize> = (0..states.len()).collect();
        let ((passed, weighed), took) = timed_cpu(|| {
            let passed = filtering::filter(&mut states, all, request, &context, 0, &mut Vec::new());
            let weighed = passed.as_ref().ok().map(|passed| {
                let hosts: Vec<&HostState> = passed.iter().map(|at| &states[*at]).collect();
                weighing::weigh(&hosts, request, options)
            });
            (passed, weighed)
        });
        let passed = passed.map_err(|failed| raised(&failed.fault))?;
        let weighed = weighed
            .transpose()
            .map_err(|failed| raised(&failed.fault))?;
        let weighed = weighed.unwrap_or_default();
        let best = weighed.order.iter().take(NovaAnswer::LISTED);
        let answer = NovaAnswer {
            filtered: passed.len(),
            order: best.clone().map(|at| passed[*at]).collect(),
            top: best.map(|at| weighed.totals[*at]).collect(),
        };
        Ok((answer, took))
    }
}
