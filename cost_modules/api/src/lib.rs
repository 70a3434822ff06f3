//! The cost module contract.
//!
//! A cost module says what the loss of a victim costs the provider. The engine chooses the
//! sufficient set of victims with the smallest **sum** over all hosts. A cost module gets flat
//! columns over *n* candidates and writes one cost for each.
//!
//! # More than a sum
//! A module may add a **surcharge** of a whole set ([`CostModule::set_cost`]) if the set costs more
//! than its members, for example because several victims of one project hurt more than one each of
//! several. A surcharge is never negative and never falls when a victim is added. So the sum stays
//! a lower bound, the engine still skips hosts that cannot win by it, and no set contains a victim
//! that could stay. Two forms: by the number of victims of each project, which the engine searches
//! exactly and fast; or any function of the set, which is exact for a dozen or two of candidates
//! and otherwise found with a gap that the answer states.
//!
//! # Units
//! A cost is a number in a unit that the module names ([`CostModule::unit`]). The engine adds them
//! up exactly: it converts each to integer millionths, so that sums do not depend on their order
//! and ties are real ties.
//!
//! # What a cost module may rely on
//! - All columns have `len` entries, all finite and not negative. Rows are in no particular order.
//! - Calls come from several threads at once.
//!
//! # What a cost module must not do
//! - Return NaN, infinities, negative costs, or more than [`MAX_COST`]. The engine checks, and by
//!   policy takes the default cost (1 for each instance) for the whole request and says so in the
//!   explanation, or refuses the request.
//! - Let the cost of one candidate depend on which others are in the batch. What depends on others
//!   belongs into the surcharge.
//! - Keep state between calls, read a clock, do I/O, use random numbers.

#![warn(missing_docs)]

pub use ebbtide_model::facts::{Fact, FactColumn, Texts};
use thiserror::Error;

/// Largest cost of one victim. 10⁴ victims of it, in millionths, still fit into 64 bits with room
/// to spare.
pub const MAX_COST: f64 = 1e9;

/// [`VictimBatch::ends_in_seconds`] of instances that no maximum lifetime ends: 31,000 years.
pub const NO_END: f64 = 1e12;

/// The candidates of one call.
#[derive(Debug, Clone, Copy)]
pub struct VictimBatch<'a> {
    /// How many candidates.
    pub len: usize,
    /// Running time of each candidate, in seconds.
    pub age_seconds: &'a [f64],
    /// Virtual and physical CPUs.
    pub vcpus: &'a [f64],
    /// Memory in MiB.
    pub memory_mb: &'a [f64],
    /// Price of an instance-hour in the operator's currency unit.
    pub price_per_hour: &'a [f64],
    /// The most that its owner pays for an hour, in the operator's currency unit; without a market
    /// its price.
    pub max_price: &'a [f64],
    /// Priority class of the flavor, 0 goes first.
    pub priority: &'a [u8],
    /// A number for the project that owns the candidate: equal for the same project, different for
    /// others. It has no other meaning and may be another one in the next call.
    pub project: &'a [u32],
    /// In how many seconds the maximum lifetime of its flavor ends each; [`NO_END`] if it has none.
    pub ends_in_seconds: &'a [f64],
    /// The names of their flavors, if the module [reads them](CostModule::reads_flavors); an empty
    /// name is an unknown one.
    pub flavors: Option<&'a Texts>,
    /// Facts about the candidates' hosts: the facts that the module [reads](CostModule::facts), one
    /// value for each candidate.
    pub facts: &'a [(Fact, FactColumn)],
}

impl<'a> VictimBatch<'a> {
    /// One fact about the candidates' hosts.
    ///
    /// # Errors
    /// [`CostError::MissingFact`] if the module has not declared that it reads it.
    pub fn fact(&self, fact: &Fact) -> Result<&'a FactColumn, CostError> {
        let found = self.facts.iter().find(|(known, _)| known == fact);
        let (_, column) = found.ok_or_else(|| CostError::MissingFact(fact.clone()))?;
        Ok(column)
    }
}

/// What a set of victims costs beyond the sum of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SetCost {
    /// Nothing: the cost of a set is the sum.
    #[default]
    Sum,
    /// [`CostModule::nth_of_a_project`] for each victim: the first, second, third … that one
    /// decision takes of its project.
    PerProject,
    /// [`CostModule::surcharge`] of the set.
    Monotone,
}

/// What is known about a module's costs without calling it. With a form the engine skips hosts that
/// cannot win before it prices any candidate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CostForm {
    /// Nothing. All candidates of all hosts are priced before the first two hosts are compared.
    #[default]
    Opaque,
    /// The cost is the part of the billing period that an instance has used: its age modulo the
    /// period, in seconds.
    UsedOfPeriod {
        /// The period.
        period_seconds: u32,
    },
}

/// What can go wrong in a cost module.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CostError {
    /// It wrote a number that is not a cost.
    #[error(
        "gave {value} for candidate number {index}; a cost is finite, not negative and at most {MAX_COST}"
    )]
    NotACost {
        /// Which candidate of the batch.
        index: usize,
        /// What it gave.
        value: f64,
    },
    /// It asked for the flavors without having declared it.
    #[error("the flavors were not declared in reads_flavors()")]
    MissingFlavors,
    /// It asked for a fact that it had not declared.
    #[error("the fact {0} was not declared in facts()")]
    MissingFact(Fact),
    /// Anything else, in its own words.
    #[error("{0}")]
    Other(String),
}

/// A cost module. See the module's text for the contract.
pub trait CostModule: Send + Sync {
    /// Its name in configuration and explanations, for example `partial_hour`.
    fn name(&self) -> &str;

    /// What its numbers are, in words, for example `seconds of the unpaid hour`.
    fn unit(&self) -> &str;

    /// Which facts about the candidates' hosts it reads.
    fn facts(&self) -> &[Fact] {
        &[]
    }

    /// True if it reads the names of the candidates' flavors.
    fn reads_flavors(&self) -> bool {
        false
    }

    /// Writes the cost of each candidate into `out`, which has `victims.len` entries.
    ///
    /// # Errors
    /// Whatever keeps it from answering.
    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError>;

    /// Whether a set costs more than its members, and in which of the two forms.
    fn set_cost(&self) -> SetCost {
        SetCost::Sum
    }

    /// With [`SetCost::PerProject`]: what victim number `n` (from 1) of a project costs more than
    /// alone, in the module's unit, 0 to [`MAX_COST`]. Must not fall as `n` grows.
    fn nth_of_a_project(&self, n: u32) -> f64 {
        let _ = n;
        0.0
    }

    /// With [`SetCost::Monotone`]: what the set at these ascending rows of the batch costs beyond
    /// its sum, in the module's unit, 0 to [`MAX_COST`]. Must not fall when a victim is added. The
    /// batch is one host's.
    ///
    /// # Errors
    /// Whatever keeps it from answering.
    fn surcharge(&self, victims: &VictimBatch<'_>, set: &[usize]) -> Result<f64, CostError> {
        let _ = (victims, set);
        Ok(0.0)
    }

    /// The form of its costs, if known in advance. A module that declares a form gives exactly
    /// these costs, to the millionth of its unit for ages up to 136 years, and never fails; the
    /// engine may compute the costs without calling it.
    fn form(&self) -> CostForm {
        CostForm::Opaque
    }
}
