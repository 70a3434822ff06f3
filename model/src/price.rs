//! Prices of preemptible capacity, as they were published.

use crate::{FlavorId, Money, Timestamp};
use serde::{Deserialize, Serialize};

/// What an instance-hour of a flavor costs from a moment on, until the next such record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PricePoint {
    /// The flavor.
    pub flavor_id: FlavorId,
    /// Its name.
    pub flavor: String,
    /// From when.
    pub at: Timestamp,
    /// The price of an hour.
    pub price: Money,
    /// How many instances of the flavor had room at that moment in what normal instances leave.
    pub supply: u64,
    /// How many of those places were taken by preemptible instances of any flavor, and how many instances of this one waited for a place.
    pub demand: u64,
}

impl PricePoint {
    /// What tells it from all others, up to 57 characters.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}.{}", self.flavor_id, self.at.as_millis())
    }
}
