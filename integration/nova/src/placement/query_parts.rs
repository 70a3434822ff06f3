//! The parts of a query, for a component that answers it without Placement.

use std::collections::{BTreeMap, BTreeSet};

/// A query to `GET /allocation_candidates`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// The query string.
    pub text: String,
    /// `limit`.
    pub limit: Option<i64>,
    /// `group_policy`.
    pub group_policy: Option<String>,
    /// Traits that the root must have.
    pub root_required: BTreeSet<String>,
    /// Traits that the root must not have.
    pub root_forbidden: BTreeSet<String>,
    /// Suffixes of groups that have to come from one subtree.
    pub same_subtree: Vec<Vec<String>>,
    /// Groups; at most one has no suffix.
    pub groups: Vec<QueryGroup>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryGroup {
    /// Suffix of its parameters.
    pub suffix: Option<String>,
    /// Amounts by resource class.
    pub resources: BTreeMap<String, i128>,
    /// `required`.
    pub required: BTreeSet<String>,
    /// `required` with `!`.
    pub forbidden: BTreeSet<String>,
    /// `member_of=in:`, each a choice of aggregates, all to be met.
    pub member_of: Vec<Vec<String>>,
    /// `member_of=!in:`.
    pub forbidden_aggregates: BTreeSet<String>,
    /// `in_tree`.
    pub in_tree: Option<String>,
}
