//! Host aggregates.

use std::collections::BTreeMap;

/// A host aggregate. Its metadata overrides options for the hosts in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregate {
    /// Database id.
    pub id: i64,
    /// UUID, which Placement knows it by.
    pub uuid: String,
    pub name: String,
    /// Host names.
    pub hosts: Vec<String>,
    pub metadata: BTreeMap<String, String>,
}
