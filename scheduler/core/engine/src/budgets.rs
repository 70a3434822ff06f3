//! What is left of the disruption budgets when a decision is made.
//!
//! The engine has neither clock nor database. The caller counts the disruptions of the window, and
//! the engine only enforces what remains.

use ebbtide_model::{BudgetScope, GroupId};
use std::collections::BTreeMap;

/// How many more victims may be chosen. A project or server group without an entry has no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budgets {
    projects: BTreeMap<String, u32>,
    groups: BTreeMap<GroupId, u32>,
}

impl Budgets {
    /// No limits.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::default()
    }

    /// At most `remaining` more victims of this scope. Said twice, the smaller number holds.
    pub fn limit(&mut self, scope: &BudgetScope, remaining: u32) {
        match scope {
            BudgetScope::Project(project) => self.limit_project(project, remaining),
            BudgetScope::Group(group) => self.limit_group(*group, remaining),
        }
    }

    /// At most `remaining` more victims of this project. Said twice, the smaller number holds.
    pub fn limit_project(&mut self, project_id: &str, remaining: u32) {
        let slot = self
            .projects
            .entry(project_id.to_owned())
            .or_insert(remaining);
        *slot = remaining.min(*slot);
    }

    /// At most `remaining` more victims of this server group. Said twice, the smaller number holds.
    pub fn limit_group(&mut self, group: GroupId, remaining: u32) {
        let slot = self.groups.entry(group).or_insert(remaining);
        *slot = remaining.min(*slot);
    }

    /// What is left for a project; `None` if it has no budget.
    #[must_use]
    pub fn project(&self, project_id: &str) -> Option<u32> {
        self.projects.get(project_id).copied()
    }

    /// What is left for a server group; `None` if it has no budget.
    #[must_use]
    pub fn group(&self, group: GroupId) -> Option<u32> {
        self.groups.get(&group).copied()
    }

    /// All limited projects, by name.
    pub(crate) fn projects(&self) -> impl Iterator<Item = (&str, u32)> {
        self.projects
            .iter()
            .map(|(project, remaining)| (project.as_str(), *remaining))
    }

    /// All limited groups, by id.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (GroupId, u32)> {
        self.groups
            .iter()
            .map(|(group, remaining)| (*group, *remaining))
    }

    /// True if no project and no server group is limited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.projects.is_empty() && self.groups.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_two_budgets_holds() {
        let mut budgets = Budgets::unlimited();
        assert!(budgets.is_unlimited());
        budgets.limit_project("p", 3);
        budgets.limit_project("p", 1);
        budgets.limit_project("p", 2);
        assert_eq!(budgets.project("p"), Some(1));
        assert_eq!(budgets.project("q"), None);
        assert!(!budgets.is_unlimited());
    }
}
