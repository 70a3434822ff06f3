//! The answer, and how much work may go into it.

use crate::cost::EvictionCost;

/// How much work the search may do. The same problem under the same limits always gets the same
/// answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchLimits {
    /// Nodes of the plain enumeration that is tried first. It is fastest for the usual handful of
    /// flavors and gives up early on anything else.
    pub quick_nodes: u32,
    /// Nodes of the branch and bound with linear relaxations that follows; one costs 1–10 µs with
    /// 40 candidates, and larger ones count as several. The first node is always done.
    pub max_nodes: u64,
}

impl SearchLimits {
    /// 256 quick nodes cost about as much as setting up the relaxation. 1,000,000 nodes are some
    /// seconds; the worst of 40 candidates with all vectors distinct, costs nearly equal and five
    /// resource classes took 270,000.
    pub const DEFAULT: SearchLimits = SearchLimits {
        quick_nodes: 256,
        max_nodes: 1_000_000,
    };
}

impl Default for SearchLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why a host cannot give enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Infeasible {
    /// Even all candidates together do not free enough.
    NotEnough,
    /// The candidates would suffice, but no sufficient set keeps within the budgets.
    Budgets,
}

/// The chosen set and what is proven about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Solution<'s> {
    /// Positions of the victims in the caller's columns, by ascending UUID.
    pub victims: &'s [u32],
    /// Sum of their costs.
    pub cost: EvictionCost,
    /// Sum of their ages in milliseconds.
    pub total_age_ms: u64,
    /// Whether the set is proven to be the first in the total order (cost, victims, age, UUIDs).
    pub optimal: bool,
    /// No sufficient set within the budgets costs less. Equal to `cost` when `optimal`.
    pub lower_bound: EvictionCost,
}

impl Solution<'_> {
    /// How much cheaper an unseen set could be at most.
    pub fn gap(&self) -> EvictionCost {
        EvictionCost::from_micros(self.cost.micros().saturating_sub(self.lower_bound.micros()))
    }
}

/// What [`solve`](crate::solve) found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoverResult<'s> {
    /// Nothing is missing; no victim is needed.
    NotNeeded,
    /// A sufficient set within the budgets.
    Solved(Solution<'s>),
    /// Proven: every sufficient set within the budgets, if there is one at all, costs more than the
    /// problem's cutoff. Only with a cutoff.
    NotBetter,
    /// Proven: no set is sufficient. With a cutoff the solver may not distinguish
    /// [`Infeasible::Budgets`] from [`CoverResult::NotBetter`]; it then returns the latter.
    Infeasible(Infeasible),
    /// The limits ran out before any sufficient set within the budgets (and the cutoff) was seen.
    /// Never without budgets and cutoff.
    Undecided {
        /// No sufficient set within the budgets costs less.
        lower_bound: EvictionCost,
    },
}

impl CoverResult<'_> {
    /// The same answer without its set, for a caller that stores the set elsewhere. `Solved`
    /// becomes `Undecided`.
    pub(crate) fn without_set<'b>(self) -> CoverResult<'b> {
        match self {
            CoverResult::NotNeeded => CoverResult::NotNeeded,
            CoverResult::NotBetter => CoverResult::NotBetter,
            CoverResult::Infeasible(reason) => CoverResult::Infeasible(reason),
            CoverResult::Undecided { lower_bound } => CoverResult::Undecided { lower_bound },
            CoverResult::Solved(solution) => CoverResult::Undecided {
                lower_bound: solution.lower_bound,
            },
        }
    }
}

/// How much work the last call was; for benchmarks and explanations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Nodes of the plain enumeration.
    pub quick_nodes: u64,
    /// Nodes of the branch and bound; large ones and enumerations count as several, so this goes
    /// with time.
    pub nodes: u64,
    /// Simplex pivots in those nodes.
    pub pivots: u64,
    /// Nodes spent only on the order of equals (part of `nodes`).
    pub tie_nodes: u64,
}
