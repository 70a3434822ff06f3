//! Disruption budgets: how much is left of each.

use crate::Region;
use ebbtide_engine::Budgets;
use ebbtide_evacuation::{Disruption, disrupted, remaining};
use ebbtide_model::{BudgetScope, Evacuation, Timestamp};

impl Region {
    /// How many more victims each budget allows now.
    pub(crate) fn remaining_budgets(&self, now: Timestamp) -> Budgets {
        let mut left = Budgets::unlimited();
        for (scope, budget) in &self.budgets {
            let evacuations = self.evacuations.of_scope(scope);
            let used = disrupted(budget, evacuations.map(Disruption::from), now);
            left.limit(scope, remaining(budget, used.len()));
        }
        left
    }

    /// True if a budget still counts the evacuation. A budget that is created later counts the
    /// evacuations that the region then remembers.
    pub(crate) fn is_counted(&self, evacuation: &Evacuation, now: Timestamp) -> bool {
        let disruption = Disruption::from(evacuation);
        disruption
            .scopes()
            .filter_map(|scope| self.budgets.get(&scope))
            .any(|budget| disruption.counts(budget, now))
    }
}

/// The budget scopes that the loss of the victim counts against, whether or not such a budget
/// exists.
pub(crate) fn scopes(evacuation: &Evacuation) -> impl Iterator<Item = BudgetScope> + use<> {
    Disruption::from(evacuation).scopes()
}
