//! Disruption budgets: how much is left of each.

use crate::Region;
use ebbtide_engine::Budgets;
use ebbtide_model::{
    BudgetScope, DisruptionBudget, Evacuation, EvacuationCause, EvacuationState, ServerId,
    Timestamp,
};
use std::collections::BTreeSet;

impl Region {
    /// How many more victims each budget allows now.
    ///
    /// A server counts once, however many evacuations it took to evict it.
    pub(crate) fn remaining_budgets(&self, now: Timestamp) -> Budgets {
        let mut left = Budgets::unlimited();
        if self.budgets.is_empty() {
            return left;
        }
        for (scope, budget) in &self.budgets {
            let evacuations = self.evacuations.of_scope(scope);
            let used: BTreeSet<ServerId> = evacuations
                .filter(|evacuation| counts(evacuation, budget, now))
                .map(|evacuation| evacuation.victim_id)
                .collect();
            let used = u32::try_from(used.len()).unwrap_or(u32::MAX);
            let remaining = budget.max_victims.saturating_sub(used);
            match scope {
                BudgetScope::Project(project) => left.limit_project(project, remaining),
                BudgetScope::Group(group) => left.limit_group(*group, remaining),
            }
        }
        left
    }

    /// True if a budget still counts the evacuation. A budget that is created later counts the
    /// evacuations that the region then remembers.
    pub(crate) fn is_counted(&self, evacuation: &Evacuation, now: Timestamp) -> bool {
        scopes(evacuation)
            .filter_map(|scope| self.budgets.get(&scope))
            .any(|budget| counts(evacuation, budget, now))
    }
}

/// The budget scopes that the loss of the victim counts against, whether or not such a budget
/// exists.
pub(crate) fn scopes(evacuation: &Evacuation) -> impl Iterator<Item = BudgetScope> + use<> {
    let project = BudgetScope::Project(evacuation.victim_project_id.clone());
    let group = evacuation.victim_group_id.map(BudgetScope::Group);
    [Some(project), group].into_iter().flatten()
}

/// True if a budget counts the evacuation: it is under way, or the victim is gone and it was
/// claimed within the window. The end of a maximum lifetime is no disruption, because the owner
/// knew it from the launch.
fn counts(evacuation: &Evacuation, budget: &DisruptionBudget, now: Timestamp) -> bool {
    let since = now.minus(budget.window);
    let is_disruption = evacuation.cause == EvacuationCause::Preemption;
    let lately = || evacuation.state == EvacuationState::Evacuated && evacuation.claimed_at > since;
    is_disruption && (!evacuation.state.is_final() || lately())
}
