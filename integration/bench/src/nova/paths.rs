//! The ways in which we decide as Nova does, behind one trait, so that each can be timed and checked alike.

use super::{Input, NovaAnswer};
use crate::BenchError;
use crate::clock::{Took, timed_cpu};
use ebbtide_nova::case;
use ebbtide_nova::fault::Fault;
use ebbtide_nova::filtering;
use ebbtide_nova::filters::Context;
use ebbtide_nova::model::{HostState, Options, RequestSpec};
use ebbtide_nova::weighing;

/// A way to decide. Made from an input once, which is not timed: Nova's own time is that of filters and weighers on host states
/// that are there.
pub trait NovaPath {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// Filters and weighs for one of the input's requests; answers with how long exactly that took.
    ///
    /// # Errors
    /// What Nova would raise.
    fn decide(&mut self, request: usize) -> Result<(NovaAnswer, Took), BenchError>;
}

fn raised(fault: &Fault) -> BenchError {
    BenchError::Nova(format!("{}: {}", fault.class, fault.message))
}

/// Filter by filter and weigher by weigher over host states, as Nova does: the version that the others are tested against.
#[derive(Debug)]
pub struct Reference {
    options: Options,
    now: i64,
    specs: Vec<RequestSpec>,
    states: Vec<HostState>,
    /// Place in the input of each state.
    places: Vec<usize>,
}

impl Reference {
    /// From an input.
    ///
    /// # Errors
    /// What Nova would raise for its options, hosts or requests.
    pub fn new(input: &Input) -> Result<Self, BenchError> {
        let mut case = input.case.clone();
        let options = case.options().map_err(|fault| raised(&fault))?;
        let mut specs = Vec::with_capacity(input.requests.len());
        for request in &input.requests {
            case.request = request.clone();
            specs.push(case.request_spec().map_err(|fault| raised(&fault))?);
        }
        let placed = case::states(&case, &options, None).map_err(|fault| raised(&fault))?;
        Ok(Self {
            now: case.now,
            options,
            specs,
            places: placed.iter().map(|p| p.place).collect(),
            states: placed.into_iter().map(|p| p.state).collect(),
        })
    }
}

impl NovaPath for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn decide(&mut self, request: usize) -> Result<(NovaAnswer, Took), BenchError> {
        let spec = &self.specs[request % self.specs.len()];
        let context = Context {
            options: &self.options,
            now: self.now,
        };
        // Filters leave something on the states, so each request gets its own; Nova builds them anew for each, too.
        let mut states = self.states.clone();
        let all: Vec<usize> = (0..states.len()).collect();
        let ((passed, weighed), took) = timed_cpu(|| {
            let passed = filtering::filter(&mut states, all, spec, &context, 0, &mut Vec::new());
            let weighed = passed.as_ref().ok().map(|passed| {
                let hosts: Vec<&HostState> = passed.iter().map(|at| &states[*at]).collect();
                weighing::weigh(&hosts, spec, &self.options)
            });
            (passed, weighed)
        });
        let passed = passed.map_err(|failed| raised(&failed.fault))?;
        let weighed = weighed
            .transpose()
            .map_err(|failed| raised(&failed.fault))?
            .unwrap_or_default();
        let best = weighed.order.iter().take(NovaAnswer::LISTED);
        let answer = NovaAnswer {
            filtered: passed.len(),
            order: best.clone().map(|at| self.places[passed[*at]]).collect(),
            top: best.map(|at| weighed.totals[*at]).collect(),
        };
        Ok((answer, took))
    }
}
