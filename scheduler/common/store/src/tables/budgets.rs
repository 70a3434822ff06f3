//! Disruption budgets.

use super::{MAX_SCOPE_CHARS, Table};
use crate::row::{EncodedRow, Encoder, check, text};
use ebbtide_model::{BudgetScope, DisruptionBudget};

pub(crate) static BUDGETS: Table = Table {
    index: 4,
    name: "budgets",
    key: &["scope"],
    columns: &["scope", "record"],
};

impl Encoder {
    pub(crate) fn budget(&self, budget: &DisruptionBudget) -> EncodedRow {
        let scope = scope(&budget.scope);
        check(&BUDGETS, &scope, &scope, MAX_SCOPE_CHARS)?;
        self.with_record(&BUDGETS, &scope, vec![text(&scope)], budget)
    }
}

/// The key of a budget.
pub(crate) fn scope(scope: &BudgetScope) -> String {
    match scope {
        BudgetScope::Project(id) => format!("project:{id}"),
        BudgetScope::Group(id) => format!("group:{id}"),
    }
}
