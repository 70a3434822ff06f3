//! Disruption budgets: what is left of each, now.

use crate::Region;
use ebbtide_engine::Budgets;
use ebbtide_model::{
    BudgetScope, DisruptionBudget, Evacuation, EvacuationState, ServerId, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet};

impl Region {
    /// How many more victims each budget allows at this time.
    ///
    /// A server counts once, however many evacuations it took to get rid of it.
    pub(crate) fn budgets_left(&self, now: Timestamp) -> Budgets {
        let mut left = Budgets::unlimited();
        if self.budgets.is_empty() {
            return left;
        }
        let mut used: BTreeMap<&BudgetScope, BTreeSet<ServerId>> = BTreeMap::new();
        for evacuation in self.evacuations.values() {
            for budget in self
                .budgets_of(evacuation)
                .filter(|b| counts(evacuation, b, now))
            {
                used.entry(&budget.scope)
                    .or_default()
                    .insert(evacuation.victim_id);
            }
        }
        for (scope, budget) in &self.budgets {
            let used = used.get(scope).map_or(0, BTreeSet::len);
            let used = u32::try_from(used).unwrap_or(u32::MAX);
            let remaining = budget.max_victims.saturating_sub(used);
            match scope {
                BudgetScope::Project(project) => left.limit_project(project, remaining),
                BudgetScope::Group(group) => left.limit_group(*group, remaining),
            }
        }
        left
    }

    /// The budgets in whose scope the victim is.
    fn budgets_of(&self, evacuation: &Evacuation) -> impl Iterator<Item = &DisruptionBudget> {
        let project = BudgetScope::Project(evacuation.victim_project_id.clone());
        let group = evacuation.victim_group_id.map(BudgetScope::Group);
        let scopes = [Some(project), group].into_iter().flatten();
        scopes.filter_map(|scope| self.budgets.get(&scope))
    }

    /// True if some budget still looks back at the evacuation. A budget that is made later counts what is remembered then.
    pub(crate) fn is_counted(&self, evacuation: &Evacuation, now: Timestamp) -> bool {
        self.budgets_of(evacuation)
            .any(|budget| counts(evacuation, budget, now))
    }
}

/// An evacuation under way counts always; one that ended counts if the victim is gone and it was claimed within the window.
fn counts(evacuation: &Evacuation, budget: &DisruptionBudget, now: Timestamp) -> bool {
    let since = now.minus(budget.window);
    !evacuation.state.is_final()
        || (evacuation.state == EvacuationState::Evacuated && evacuation.claimed_at > since)
}
