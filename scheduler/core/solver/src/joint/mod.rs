//! Victims on several hosts for several instances at once: how many instances each host gets, and
//! which victims leave for them.
//!
//! Each host has a curve: the cheapest set for one instance, for two, and so on. Each point needs a
//! solution of its own, and curves are not convex. `curves` finds the counts of least total cost
//! and solves only the points that a best choice could use. Without budgets and surcharges that is
//! the answer. Budgets, and a surcharge by group, couple the hosts: a project may lose three
//! victims in all, on whichever hosts they are. `couple` is a branch and bound over how many
//! victims of a project a host takes, with the curves as its relaxation. As long as no budget binds
//! it needs one node.
//!
//! The order: total cost, then number of victims. Among equals, where nothing couples the hosts,
//! the counts that come first by preference: the most preferred host gets as many as possible, then
//! the second. With coupling it is the first such choice that the search meets; it is the same for
//! every order of the input. On each host the set is the first in the order of
//! [`solve`](crate::solve).

mod couple;
mod curves;
mod host;

use std::fmt;

use crate::cost::EvictionCost;
use crate::error::SolverError;
use crate::outcome::SearchLimits;
use crate::problem::Problem;

/// Most instances that are placed together. Time grows with the cube of it.
pub const MAX_JOINT: u32 = 128;

/// What one host would have to give.
#[derive(Clone, Copy, Debug)]
pub struct HostProblem<'a> {
    /// The deficit of so many instances, and the candidates. The cutoff is ignored;
    /// `budgets.limits` are those of the whole, the same for every host.
    pub problem: Problem<'a>,
    /// The group of each candidate for the surcharge, the same number on every host, or
    /// [`NO_GROUP`](crate::NO_GROUP). Empty if no candidate belongs to a group.
    pub groups: &'a [u32],
}

/// The hosts as the caller knows them, numbered by preference: host 0 comes first among equals.
pub trait Hosts {
    /// How many there are.
    fn count(&self) -> usize;

    /// A cost that no sufficient set for one instance on this host can undercut, cheaply;
    /// [`EvictionCost::MAX`] if there is none.
    fn bound(&mut self, host: usize) -> EvictionCost;

    /// The problem of so many instances on a host; `None` if it must not take so many. More
    /// instances never make a problem smaller.
    fn load(&mut self, host: usize, count: u32) -> Option<HostProblem<'_>>;
}

/// What is to be placed, and what couples the hosts.
#[derive(Clone, Copy, Debug)]
pub struct JointProblem<'a> {
    /// How many instances, 1 to [`MAX_JOINT`].
    pub count: u32,
    /// For each budget key, how many of its members may be victims on all hosts together.
    pub limits: &'a [u32],
    /// What the first, the second, … victim of a group costs more, on all hosts together; see
    /// [`Groups::steps`](crate::Groups::steps). Empty if costs just add up.
    pub steps: &'a [EvictionCost],
}

/// What one host gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostShare {
    /// The host's number.
    pub host: usize,
    /// How many instances it gets.
    pub count: u32,
    /// Positions of its victims in the columns that it was loaded with for this count, by ascending
    /// UUID.
    pub victims: Vec<u32>,
}

/// The chosen shares and what is proven about them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointSolution {
    pub shares: Vec<HostShare>,
    /// What all victims cost, with the surcharge.
    pub cost: EvictionCost,
    /// The part of it that is surcharge.
    pub surcharge: EvictionCost,
    /// Whether no other choice costs less, or the same with fewer victims.
    pub optimal: bool,
    /// No choice costs less. Equal to `cost` when `optimal`.
    pub lower_bound: EvictionCost,
}

/// What [`solve_joint`] found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JointOutcome {
    /// A choice within the budgets.
    Solved(JointSolution),
    /// Proven: there is none.
    Infeasible,
    /// The limits ran out before any was seen.
    Undecided {
        /// No choice costs less.
        lower_bound: EvictionCost,
    },
}

/// Places all instances with the victims that cost least in all, within the budgets.
///
/// # Errors
///
/// A malformed problem of a host (see [`Problem::check`]), steps that fall, or a count that is zero
/// or above [`MAX_JOINT`].
pub fn solve_joint(
    problem: &JointProblem<'_>,
    hosts: &mut dyn Hosts,
    limits: SearchLimits,
) -> Result<(JointOutcome, u64), SolverError> {
    if problem.count == 0 || problem.count > MAX_JOINT {
        return Err(SolverError::JointCount {
            count: problem.count,
        });
    }
    if let Some(at) = problem.steps.windows(2).position(|pair| pair[0] > pair[1]) {
        return Err(SolverError::FallingStep { step: at + 2 });
    }
    couple::run(problem, hosts, limits)
}

/// Cost and number of victims as one number that compares in that order: no decision has 2^32
/// victims.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CoverCost(i128);

const VICTIM_BITS: u32 = 32;

impl CoverCost {
    pub(crate) fn new(micros: i128, victims: usize) -> CoverCost {
        CoverCost((micros << VICTIM_BITS) + victims as i128)
    }

    pub(crate) fn plus(self, other: CoverCost) -> CoverCost {
        CoverCost(self.0 + other.0)
    }

    /// Micro-units, not below zero.
    pub(crate) fn micros(self) -> u64 {
        u64::try_from((self.0 >> VICTIM_BITS).max(0)).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for CoverCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} micros, {} victims",
            self.0 >> VICTIM_BITS,
            self.0 & ((1 << VICTIM_BITS) - 1)
        )
    }
}
