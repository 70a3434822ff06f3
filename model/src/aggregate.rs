//! Host aggregates. An availability zone is an aggregate with the metadata key `availability_zone`,
//! as in Nova.

use crate::{AggregateId, ModelError, names};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The metadata key that makes an aggregate an availability zone.
pub const AVAILABILITY_ZONE: &str = "availability_zone";
/// The zone of hosts that are in none (Nova's `default_availability_zone`).
pub const DEFAULT_ZONE: &str = "nova";

/// A set of hosts with metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aggregate {
    pub id: AggregateId,
    /// Its name, unique in the region.
    pub name: String,
    /// Names of its hosts. A host may be named before its agent has ever registered.
    #[serde(default)]
    pub hosts: BTreeSet<String>,
    /// Keys and values; weighers' multipliers can be set here for each aggregate.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

impl Aggregate {
    /// Checks names and sizes.
    ///
    /// # Errors
    /// [`ModelError::Name`] for the first bad one.
    pub fn check(&self) -> Result<(), ModelError> {
        names::check_name("aggregate", &self.name)?;
        for host in &self.hosts {
            names::check_host_name(host)?;
        }
        for (key, value) in &self.metadata {
            names::check_name("aggregate metadata key", key)?;
            if value.len() > names::MAX_NAME {
                return Err(ModelError::Name {
                    what: "aggregate metadata value",
                    value: names::shorten(value),
                    allowed: "use at most 255 bytes",
                });
            }
        }
        Ok(())
    }

    /// The availability zone that this aggregate makes of its hosts, if any.
    #[must_use]
    pub fn availability_zone(&self) -> Option<&str> {
        self.metadata.get(AVAILABILITY_ZONE).map(String::as_str)
    }
}
