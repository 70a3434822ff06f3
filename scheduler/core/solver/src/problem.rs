//! The question: what is missing on one host, and who could be evacuated for it.
//!
//! A problem borrows columns and owns nothing, so that a caller with 100,000 hosts can point into
//! its own table. [`Problem::check`] is the only place that judges the input; behind it no sum can
//! overflow.

use crate::cost::EvictionCost;
use crate::error::SolverError;

/// Most candidates on one host: the count of victims has 14 bits in the packed weight (see
/// `classes`).
pub const MAX_CANDIDATES: usize = (1 << 14) - 1;

/// The most that all candidates of one host may be old together: just under 2^50 ms, about 35,700
/// years, for the same reason.
pub const TOTAL_AGE_LIMIT_MS: u64 = (1 << 50) - 1;

/// An empty place in [`Budgets::keys`].
pub const NO_BUDGET: u32 = u32::MAX;

/// How many victims each key (a project, a server group) may still lose.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budgets<'a> {
    /// For each key, how many of its members may be victims. Zero protects them all.
    pub limits: &'a [u32],
    /// Places for each candidate in `keys`; 2 for a project and a server group.
    pub keys_per_candidate: usize,
    /// Row-major, `keys_per_candidate` a candidate: positions in `limits`, or [`NO_BUDGET`]. Naming
    /// a key twice is the same as naming it once.
    pub keys: &'a [u32],
}

impl<'a> Budgets<'a> {
    /// No budgets at all.
    pub const NONE: Budgets<'static> = Budgets {
        limits: &[],
        keys_per_candidate: 0,
        keys: &[],
    };

    /// The keys that a candidate belongs to.
    pub(crate) fn of(&self, candidate: usize) -> impl Iterator<Item = usize> + 'a {
        let width = self.keys_per_candidate;
        self.keys[candidate * width..(candidate + 1) * width]
            .iter()
            .filter(|&&key| key != NO_BUDGET)
            .map(|&key| key as usize)
    }
}

/// One host's victims to choose. All columns have one entry a candidate, in the same order; that
/// order has no influence on which instances are chosen.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// For each resource class, how much is missing, in the class's own unit. Nothing is missing
    /// where it is zero or less.
    pub deficit: &'a [i64],
    /// Row-major, one row a candidate, one column a resource class: what its end sets free.
    pub resources: &'a [i64],
    /// What the loss of each candidate costs.
    pub costs: &'a [EvictionCost],
    /// How long each candidate has run, in milliseconds.
    pub ages_ms: &'a [u64],
    /// The UUID of each candidate. They must differ; if two are equal the last tie between them is
    /// open.
    pub uuids: &'a [u128],
    /// How many victims each key may lose.
    pub budgets: Budgets<'a>,
    /// The total cost that another host already offers. Sets that cost more are of no interest, and
    /// as soon as it is proven that nothing else is left the answer is
    /// [`Outcome::NotBetter`](crate::CoverResult::NotBetter).
    pub cutoff: Option<EvictionCost>,
}

impl Problem<'_> {
    /// Number of candidates.
    pub fn candidates(&self) -> usize {
        self.costs.len()
    }

    /// Says whether the problem is well-formed.
    ///
    /// # Errors
    ///
    /// The first of: wrong column length, too many candidates, negative amount, sum of costs or
    /// ages too large, unknown budget.
    pub fn check(&self) -> Result<(), SolverError> {
        let n = self.candidates();
        if n > MAX_CANDIDATES {
            return Err(SolverError::TooManyCandidates { found: n });
        }
        let lengths = [
            ("resources", self.resources.len(), n * self.deficit.len()),
            ("ages_ms", self.ages_ms.len(), n),
            ("uuids", self.uuids.len(), n),
            (
                "budgets.keys",
                self.budgets.keys.len(),
                n * self.budgets.keys_per_candidate,
            ),
        ];
        for (column, found, expected) in lengths {
            if found != expected {
                return Err(SolverError::ColumnLength {
                    column,
                    expected,
                    found,
                });
            }
        }
        // One pass without branches. The offending candidate is looked up only if there is one.
        if self.resources.iter().fold(0, |sign, &amount| sign | amount) < 0
            && let Some(at) = self.resources.iter().position(|&amount| amount < 0)
        {
            {
                return Err(SolverError::NegativeResource {
                    candidate: at / self.deficit.len(),
                    class: at % self.deficit.len(),
                    amount: self.resources[at],
                });
            }
        }
        let micros: u128 = self
            .costs
            .iter()
            .map(|cost| u128::from(cost.micros()))
            .sum();
        if micros > u128::from(EvictionCost::TOTAL_LIMIT.micros()) {
            return Err(SolverError::CostOverflow { micros });
        }
        let millis: u128 = self.ages_ms.iter().map(|&age| u128::from(age)).sum();
        if millis > u128::from(TOTAL_AGE_LIMIT_MS) {
            return Err(SolverError::AgeOverflow { millis });
        }
        let budgets = self.budgets.limits.len();
        for (at, &budget) in self.budgets.keys.iter().enumerate() {
            if budget != NO_BUDGET && budget as usize >= budgets {
                let candidate = at / self.budgets.keys_per_candidate;
                return Err(SolverError::UnknownBudget {
                    candidate,
                    budget,
                    budgets,
                });
            }
        }
        Ok(())
    }
}
