//! Exact minimum-cost victim selection on one host, in any number of resource classes.
//!
//! A host lacks some amount of each resource class; its preemptible instances could give it. Among
//! the sets that give enough and keep the disruption budgets this crate finds the one that is first
//! in a total order: by cost, then fewer victims, then the younger ones, then by UUID. So the
//! answer is unique, and the same on every run, for every order of the input, on every machine.
//!
//! ```
//! use ebbtide_solver::{Budgets, EvictionCost, Limits, Outcome, Problem, Scratch, solve};
//!
//! // Two classes (VCPU, MEMORY_MB), three instances: 2 and 4096 are missing.
//! let problem = Problem {
//!     deficit: &[2, 4096],
//!     resources: &[1, 2048, 1, 2048, 4, 8192],
//!     costs: &[10, 20, 40].map(EvictionCost::from_micros),
//!     ages_ms: &[60_000, 1_000, 1_000],
//!     uuids: &[0xa, 0xb, 0xc],
//!     budgets: Budgets::NONE,
//!     cutoff: None,
//! };
//! let mut scratch = Scratch::new();
//! let outcome = solve(&problem, &mut scratch, Limits::DEFAULT)?;
//! let Outcome::Solved(solution) = outcome else { panic!("there is enough") };
//! assert_eq!(solution.victims, [0, 1]);
//! assert_eq!(solution.cost, EvictionCost::from_micros(30));
//! # Ok::<(), ebbtide_solver::SolverError>(())
//! ```
//!
//! # How
//!
//! 1. [`lower_bound`] lets a caller skip a host in one pass over its columns.
//! 2. `classes` puts interchangeable candidates together; only prefixes of a class matter.
//! 3. `enumeration` tries all counts. It settles hosts with a handful of flavors in about a
//!    microsecond.
//! 4. `dominance` cuts candidates that others make useless; `search` (with `model`, `relax`,
//!    `node`, `tail`) is a branch and bound with linear relaxations and exact integer bounds, for
//!    everything else; `ties` then orders equals.
//!
//! [`solve_any`] takes a need that can be met in several ways, as by one NUMA cell or another.
//! [`solve_judged`] takes a need of which only another component can say whether a set meets it.
//! [`solve_joint`] chooses hosts and victims for several instances at once.
//! [`solve_set`] takes a cost that is more than a sum, such as fairness over projects.
//!
//! Sums are integers throughout: costs of one host up to [`EvictionCost::TOTAL_LIMIT`], ages up to
//! [`TOTAL_AGE_LIMIT_MS`], at most [`MAX_CANDIDATES`]. Above that a problem is refused, never
//! wrapped around. Floating point only proposes; what is cut is cut by integers, or by a margin far
//! above any rounding.

mod alternatives;
mod bound;
mod classes;
mod cost;
mod dominance;
mod enumeration;
mod error;
mod greedy;
mod grouped;
mod joint;
mod judged;
mod model;
mod monotone;
mod node;
mod outcome;
mod problem;
mod relax;
mod search;
mod set_cost;
mod solve;
mod steps;
mod tail;
mod ties;

pub use alternatives::{AlternativeCover, AlternativesOutcome, solve_any};
pub use bound::lower_bound;
pub use cost::EvictionCost;
pub use error::SolverError;
pub use joint::{
    HostProblem, HostShare, Hosts, JointOutcome, JointProblem, JointSolution, MAX_JOINT,
    solve_joint,
};
pub use judged::solve_judged;
pub use outcome::{CoverResult, Infeasible, SearchLimits, Solution, Stats};
pub use problem::{Budgets, MAX_CANDIDATES, NO_BUDGET, Problem, TOTAL_AGE_LIMIT_MS};
pub use set_cost::{Groups, NO_GROUP, SetCost, SetScratch, solve_set};
pub use solve::{Scratch, solve};
