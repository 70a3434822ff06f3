//! What a cloud could have sold beside its servers in one hour.

use crate::Timestamp;
use serde::{Deserialize, Serialize};

/// How many servers of a flavor would have fitted beside all others, over one hour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleHour {
    /// The beginning of the hour.
    pub hour: Timestamp,
    /// The flavor's name.
    pub flavor: String,
    /// How often the cloud was looked at.
    pub samples: u32,
    /// Sum of the servers that fitted, over all samples.
    pub sum: u64,
    /// The fewest that fitted.
    pub least: u64,
    /// The most that fitted.
    pub most: u64,
    /// Sum of the falls from one sample to the next: had all idle capacity been sold, so many
    /// servers would have had to leave.
    pub falls: u64,
}

impl IdleHour {
    /// An hour without samples.
    #[must_use]
    pub fn new(hour: Timestamp, flavor: &str) -> Self {
        Self {
            hour,
            flavor: flavor.to_owned(),
            samples: 0,
            sum: 0,
            least: u64::MAX,
            most: 0,
            falls: 0,
        }
    }

    /// One more sample: so many fit now, and fitted in the sample before, if there was one.
    pub fn add(&mut self, fit: u64, before: Option<u64>) {
        self.samples += 1;
        self.sum += fit;
        self.least = self.least.min(fit);
        self.most = self.most.max(fit);
        self.falls += before.map_or(0, |before| before.saturating_sub(fit));
    }

    /// Server-hours that lay idle: the mean of the samples.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // Counts of servers are far below 2^53.
    pub fn server_hours(&self) -> f64 {
        match self.samples {
            0 => 0.0,
            samples => self.sum as f64 / f64::from(samples),
        }
    }

    /// A key that is unique among all records, up to 271 characters.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}.{}", self.hour.as_millis(), self.flavor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_counts_what_would_have_had_to_leave() {
        let mut hour = IdleHour::new(Timestamp::from_millis(0), "small");
        assert!(hour.server_hours().abs() < f64::EPSILON);
        let mut before = None;
        for fit in [10, 7, 9, 4] {
            hour.add(fit, before);
            before = Some(fit);
        }
        assert_eq!((hour.least, hour.most, hour.falls), (4, 10, 3 + 5));
        assert!((hour.server_hours() - 7.5).abs() < 1e-9);
    }
}
