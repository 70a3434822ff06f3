//! A plugin's description of itself, with its checks.

use crate::{CandidateNeed, DescriptionError, HostNeed};
use ebbtide_cost_api::{MAX_COST, SetCost};
use ebbtide_weigher_api::{Bounds, Column, Fact};

/// What a weigher says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct WeigherDescription {
    /// The multiplier if the configuration does not set one.
    pub default_multiplier: f64,
    /// The columns and facts that it reads, in the order in which it wants them.
    pub needs: Vec<HostNeed>,
    /// The limits of its raw numbers.
    pub bounds: Bounds,
    /// The columns among its needs.
    pub columns: Vec<Column>,
    /// The facts among its needs.
    pub facts: Vec<Fact>,
}

impl WeigherDescription {
    /// Checks what a plugin says.
    ///
    /// # Errors
    /// The first thing that cannot be right.
    pub fn check(
        default_multiplier: f64,
        needs: &[String],
        bounds: Bounds,
    ) -> Result<Self, DescriptionError> {
        let needs = HostNeed::read_all(needs)?;
        check_bounds(bounds)?;
        if !default_multiplier.is_finite() {
            let problem = format!("its default multiplier is {default_multiplier}");
            return Err(DescriptionError(problem));
        }
        let (columns, facts) = columns_and_facts(&needs);
        Ok(Self {
            default_multiplier,
            bounds,
            columns,
            facts,
            needs,
        })
    }

    /// What it reads, by name, in its own order.
    #[must_use]
    pub fn reads(&self) -> Vec<String> {
        self.needs.iter().map(HostNeed::to_string).collect()
    }

    /// True if it reads the preemptible instances one by one.
    #[must_use]
    pub fn needs_preemptibles(&self) -> bool {
        self.needs.contains(&HostNeed::PreemptibleAges)
    }
}

fn columns_and_facts(needs: &[HostNeed]) -> (Vec<Column>, Vec<Fact>) {
    let columns = needs.iter().filter_map(|need| match need {
        HostNeed::Column(column) => Some(*column),
        _ => None,
    });
    let facts = needs.iter().filter_map(|need| match need {
        HostNeed::Fact(fact) => Some(fact.clone()),
        _ => None,
    });
    (columns.collect(), facts.collect())
}

/// What a filter says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct FilterDescription {
    /// The columns and facts that it reads, in the order in which it wants them.
    pub needs: Vec<HostNeed>,
    /// The columns among its needs.
    pub columns: Vec<Column>,
    /// The facts among its needs.
    pub facts: Vec<Fact>,
}

/// Columns that are known behind the filters only.
const BEHIND_FILTERS: [Column; 3] = [
    Column::PreemptionNeeded,
    Column::EvictionCost,
    Column::EvictionVictims,
];

impl FilterDescription {
    /// Checks what a plugin says.
    ///
    /// # Errors
    /// The first thing that cannot be right.
    pub fn check(needs: &[String]) -> Result<Self, DescriptionError> {
        let needs = HostNeed::read_all(needs)?;
        let (columns, facts) = columns_and_facts(&needs);
        let mut late = BEHIND_FILTERS.iter().filter(|late| columns.contains(late));
        if let Some(late) = late.next() {
            return Err(DescriptionError(format!(
                "it needs {:?}, which a filter cannot read: victims are selected behind the filters",
                late.name()
            )));
        }
        Ok(Self {
            needs,
            columns,
            facts,
        })
    }

    /// What it reads, by name, in its own order.
    #[must_use]
    pub fn reads(&self) -> Vec<String> {
        self.needs.iter().map(HostNeed::to_string).collect()
    }

    /// True if it reads the preemptible instances one by one.
    #[must_use]
    pub fn needs_preemptibles(&self) -> bool {
        self.needs.contains(&HostNeed::PreemptibleAges)
    }
}

fn check_bounds(bounds: Bounds) -> Result<(), DescriptionError> {
    let ends = [bounds.min, bounds.max];
    let finite = ends.into_iter().flatten().all(f64::is_finite);
    let pair = bounds.min.zip(bounds.max);
    match finite && pair.is_none_or(|(min, max)| min <= max) {
        true => Ok(()),
        false => Err(DescriptionError(format!(
            "its scale reaches from {:?} to {:?}",
            bounds.min, bounds.max
        ))),
    }
}

/// What a cost module says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct CostDescription {
    /// What its numbers are, in words.
    pub unit: String,
    /// What it reads, in the order in which it wants it.
    pub needs: Vec<CandidateNeed>,
    /// The facts about candidates' hosts among its needs.
    pub facts: Vec<Fact>,
    /// What the first, second, third … victim of a project costs more than by itself.
    pub surcharges: Vec<f64>,
}

impl CostDescription {
    /// Checks what a plugin says.
    ///
    /// # Errors
    /// The first thing that cannot be right.
    pub fn check(
        unit: String,
        needs: &[String],
        surcharges: Vec<f64>,
    ) -> Result<Self, DescriptionError> {
        let needs: Result<Vec<CandidateNeed>, DescriptionError> =
            needs.iter().map(|name| CandidateNeed::read(name)).collect();
        let is_cost = |cost: &f64| (0.0..=MAX_COST).contains(cost);
        let rises = surcharges.windows(2).all(|pair| pair[0] <= pair[1]);
        if !(surcharges.iter().all(is_cost) && rises) {
            return Err(DescriptionError(format!(
                "its surcharges {surcharges:?} are not 0 to {MAX_COST} and never falling"
            )));
        }
        let needs = needs?;
        let facts = needs.iter().filter_map(|need| match need {
            CandidateNeed::Host(fact) => Some(fact.clone()),
            _ => None,
        });
        Ok(Self {
            unit,
            facts: facts.collect(),
            needs,
            surcharges,
        })
    }

    /// What it reads, by name, in its own order.
    #[must_use]
    pub fn reads(&self) -> Vec<String> {
        let names = self.needs.iter().map(CandidateNeed::name);
        names.collect()
    }

    /// Whether a set costs more than its members.
    #[must_use]
    pub fn set_cost(&self) -> SetCost {
        match self.surcharges.is_empty() {
            true => SetCost::Sum,
            false => SetCost::PerProject,
        }
    }

    /// As [`CostModule::nth_of_a_project`](ebbtide_cost_api::CostModule::nth_of_a_project).
    #[must_use]
    pub fn nth_of_a_project(&self, n: u32) -> f64 {
        let place = usize::try_from(n.saturating_sub(1)).unwrap_or(usize::MAX);
        let own = self.surcharges.get(place);
        own.or_else(|| self.surcharges.last())
            .copied()
            .unwrap_or(0.0)
    }
}
