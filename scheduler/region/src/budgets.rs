//! Disruption budgets: what is left of each, now.

use crate::Region;
use ebbtide_engine::Budgets;
use ebbtide_model::{BudgetScope, Evacuation, EvacuationState, Seconds, Timestamp};

impl Region {
    /// How many more victims each budget allows at this time.
    pub(crate) fn budgets_left(&self, now: Timestamp) -> Budgets {
        let mut left = Budgets::unlimited();
        for (scope, budget) in &self.budgets {
            let since = now.minus(budget.window);
            let used = self.evacuations.values().filter(|e| counts(e, scope, since)).count();
            let used = u32::try_from(used).unwrap_or(u32::MAX);
            let remaining = budget.max_victims.saturating_sub(used);
            match scope {
                BudgetScope::Project(project) => left.limit_project(project, remaining),
                BudgetScope::Group(group) => left.limit_group(*group, remaining),
            }
        }
        left
    }

    /// The longest time back that any budget looks.
    pub(crate) fn longest_window(&self) -> Seconds {
        self.budgets.values().map(|b| b.window).max().unwrap_or_default()
    }
}

/// An evacuation under way counts always; one that ended counts if the victim is gone and it was claimed within the window.
fn counts(evacuation: &Evacuation, scope: &BudgetScope, since: Timestamp) -> bool {
    let in_scope = match scope {
        BudgetScope::Project(project) => evacuation.victim_project_id == *project,
        BudgetScope::Group(group) => evacuation.victim_group_id == Some(*group),
    };
    in_scope
        && (!evacuation.state.is_final()
            || (evacuation.state == EvacuationState::Evacuated && evacuation.claimed_at > since))
}
