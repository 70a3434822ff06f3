//! Prices of preemptible capacity, as they were published.

use crate::{FlavorId, Money, Timestamp};
use serde::{Deserialize, Serialize};

/// The price of an instance-hour of a flavor, valid until the next such record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PricePoint {
    pub flavor_id: FlavorId,
    /// Its name.
    pub flavor: String,
    /// From when.
    pub at: Timestamp,
    /// The price of an hour.
    pub price: Money,
    /// How many instances of the flavor fitted at that time beside the normal instances.
    pub supply: u64,
    /// How many of those places preemptible instances of any flavor took, and how many instances of
    /// this flavor waited for one.
    pub demand: u64,
}

impl PricePoint {
    /// A key that is unique among all records, up to 57 characters.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}.{}", self.flavor_id, self.at.as_millis())
    }
}
