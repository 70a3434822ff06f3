//! Disruption budgets: what is left of each, now.

use crate::Region;
use ebbtide_engine::Budgets;
use ebbtide_model::{
    BudgetScope, DisruptionBudget, Evacuation, EvacuationCause, EvacuationState, ServerId,
    Timestamp,
};
use std::collections::BTreeSet;

impl Region {
    /// How many more victims each budget allows at this time.
    ///
    /// A server counts once, however many evacuations it took to get rid of it.
    pub(crate) fn budgets_left(&self, now: Timestamp) -> Budgets {
        let mut left = Budgets::unlimited();
        if self.budgets.is_empty() {
            return left;
        }
        for (scope, budget) in &self.budgets {
            let ids = self.by_scope.get(scope).into_iter().flatten();
            let used: BTreeSet<ServerId> = ids
                .filter_map(|id| self.evacuations.get(id))
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

    /// True if some budget still looks back at the evacuation. A budget that is made later counts what is remembered then.
    pub(crate) fn is_counted(&self, evacuation: &Evacuation, now: Timestamp) -> bool {
        scopes(evacuation)
            .filter_map(|scope| self.budgets.get(&scope))
            .any(|budget| counts(evacuation, budget, now))
    }
}

/// What the loss of the victim counts against, where there is such a budget.
pub(crate) fn scopes(evacuation: &Evacuation) -> impl Iterator<Item = BudgetScope> + use<> {
    let project = BudgetScope::Project(evacuation.victim_project_id.clone());
    let group = evacuation.victim_group_id.map(BudgetScope::Group);
    [Some(project), group].into_iter().flatten()
}

/// An evacuation under way counts always; one that ended counts if the victim is gone and it was claimed within the window. The end of a lifetime, which
/// its owner knew from the beginning, is no disruption.
fn counts(evacuation: &Evacuation, budget: &DisruptionBudget, now: Timestamp) -> bool {
    let since = now.minus(budget.window);
    let is_disruption = evacuation.cause == EvacuationCause::Preemption;
    let lately = || evacuation.state == EvacuationState::Evacuated && evacuation.claimed_at > since;
    is_disruption && (!evacuation.state.is_final() || lately())
}
