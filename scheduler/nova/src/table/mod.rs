//! A cloud as columns, for speed: the same decision as [`crate::filtering`] and [`crate::weighing`] give host by host, which stay the
//! reference that this is tested against.
//!
//! - Filters look at one host of each kind: hosts with the same hypervisor, the same aggregates, the same value of an attribute
//!   share a verdict (`classes`), and verdicts are applied to sets of hosts (`bits`).
//! - Weighers are asked once, when the cloud is built, where what they say does not hang on the request. The ends of their scales are
//!   found from both ends of a sorted list, and what adds exactly nothing is left out (`weights`).
//! - Only the best hosts are sorted (`best`).
//!
//! What is out of the ordinary goes the reference's way: a rebuild, a filter or weigher that raises, numbers that are not finite.
//! The answer is the same either way, to the last bit.

mod best;
mod bits;
mod classes;
mod plan;
mod weights;

use crate::filtering::{self, FilterFault, Narrowed};
use crate::filters::Context;
use crate::model::{AllocationCandidate, HostState, Options, RequestSpec};
use crate::weighing::{self, WeighFault};
use bits::Bits;
use classes::Raises;
use plan::Plan;
use std::collections::HashMap;
use weights::Weights;

/// What a cloud answers to a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// How many hosts pass all filters.
    pub passing: usize,
    /// The best of them with their totals, best first; equal totals in the order of the hosts.
    pub best: Vec<(usize, f64)>,
}

/// What makes Nova fail the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecideFault {
    /// Before or in a filter.
    Filter(FilterFault),
    /// In a weigher.
    Weigh(WeighFault),
}

/// Hosts, ready to answer requests.
#[derive(Debug)]
pub struct Cloud {
    options: Options,
    now: i64,
    states: Vec<HostState>,
    plans: Vec<Plan>,
    weights: Weights,
    /// Places of the hosts on which an instance is.
    instances: HashMap<String, Vec<u32>>,
    alive: Bits,
}

/// What filters narrow on a host, to be put back after the decision.
type Saved = HashMap<usize, (Vec<AllocationCandidate>, Option<(f64, f64)>)>;

impl Cloud {
    /// Takes hosts in. `now` is in microseconds since 1970, UTC.
    #[must_use]
    pub fn new(mut states: Vec<HostState>, options: Options, now: i64) -> Self {
        let plans = Plan::all(&mut states, &options, now);
        let weights = Weights::new(&states, &options);
        let mut instances: HashMap<String, Vec<u32>> = HashMap::new();
        for (at, state) in states.iter().enumerate() {
            for uuid in state.instances.keys() {
                instances.entry(uuid.clone()).or_default().push(at as u32);
            }
        }
        Self {
            options,
            now,
            states,
            plans,
            weights,
            instances,
            alive: Bits::default(),
        }
    }

    /// How many hosts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// True without hosts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// The hosts.
    #[must_use]
    pub fn states(&self) -> &[HostState] {
        &self.states
    }

    /// Filters and weighs for the first instance of a request, and gives the `top` best hosts. Leaves the cloud as it was.
    ///
    /// # Errors
    /// What Nova raises.
    pub fn decide(&mut self, spec: &RequestSpec, top: usize) -> Result<Decision, DecideFault> {
        let mut alive = std::mem::take(&mut self.alive);
        let mut saved = Saved::new();
        let quick = self.quick(spec, top, &mut alive, &mut saved);
        for (at, (candidates, limits)) in saved {
            self.states[at].allocation_candidates = candidates;
            self.states[at].numa_limits = limits;
        }
        self.alive = alive;
        match quick {
            Ok(decision) => Ok(decision),
            Err(Raises) => self.reference(spec, top),
        }
    }

    /// The same decision host by host.
    ///
    /// # Errors
    /// What Nova raises.
    pub fn reference(&self, spec: &RequestSpec, top: usize) -> Result<Decision, DecideFault> {
        let context = Context {
            options: &self.options,
            now: self.now,
        };
        let mut states = self.states.clone();
        let hosts = (0..states.len()).collect();
        let mut trace = Vec::new();
        let passed = filtering::filter(&mut states, hosts, spec, &context, 0, &mut trace)
            .map_err(DecideFault::Filter)?;
        let hosts: Vec<&HostState> = passed.iter().map(|at| &states[*at]).collect();
        let weighed = weighing::weigh(&hosts, spec, &self.options).map_err(DecideFault::Weigh)?;
        let best = weighed.order.iter().take(top);
        Ok(Decision {
            passing: passed.len(),
            best: best
                .map(|place| (passed[*place], weighed.totals[*place]))
                .collect(),
        })
    }

    fn quick(
        &mut self,
        spec: &RequestSpec,
        top: usize,
        alive: &mut Bits,
        saved: &mut Saved,
    ) -> Result<Decision, Raises> {
        alive.fill(self.states.len());
        let decided = self.narrow(spec, alive)?;
        if !decided {
            let mut plans = std::mem::take(&mut self.plans);
            let filtered = self.run(&mut plans, spec, alive, saved);
            self.plans = plans;
            filtered?;
        }
        let passing = alive.count();
        let best = match passing {
            0 => Vec::new(),
            1 => alive.iter().take(top).map(|at| (at, 0.0)).collect(),
            _ => {
                self.weights
                    .add_up(&self.states, &self.instances, &self.options, spec, alive)?;
                best::best(self.weights.totals(), alive, top)
            }
        };
        Ok(Decision { passing, best })
    }

    fn run(
        &mut self,
        plans: &mut [Plan],
        spec: &RequestSpec,
        alive: &mut Bits,
        saved: &mut Saved,
    ) -> Result<(), Raises> {
        for plan in plans {
            if alive.is_empty() {
                break;
            }
            let context = Context {
                options: &self.options,
                now: self.now,
            };
            plan.run(
                &mut self.states,
                &self.instances,
                spec,
                &context,
                alive,
                saved,
            )?;
        }
        Ok(())
    }

    /// What comes before the filters. True if they are not asked.
    fn narrow(&self, spec: &RequestSpec, alive: &mut Bits) -> Result<bool, Raises> {
        let empty = |list: &Option<Vec<String>>| list.as_ref().is_none_or(Vec::is_empty);
        let ordinary = spec.requested_destination.is_none()
            && empty(&spec.ignore_hosts)
            && empty(&spec.force_hosts)
            && empty(&spec.force_nodes);
        if filtering::is_rebuild(spec).map_err(|_| Raises)? {
            return Err(Raises);
        }
        if ordinary {
            return Ok(false);
        }
        let hosts = (0..self.states.len()).collect();
        let narrowed = filtering::narrow(&self.states, hosts, spec).map_err(|_| Raises)?;
        let (hosts, decided) = match narrowed {
            Narrowed::Decided(hosts) => (hosts, true),
            Narrowed::Open(hosts) => (hosts, false),
        };
        *alive = Bits::none(self.states.len());
        hosts.into_iter().for_each(|at| alive.set(at));
        Ok(decided)
    }
}
