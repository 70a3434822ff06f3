//! Prefers hosts whose preemptible instances, all together, have used up least of a started hour.
//! **For comparison only.**
//!
//! - Raw number: minus the sum over *all* preemptible instances of the host that are not leaving of
//!   (age mod period), in seconds. An instance of exactly one period gives 0.
//! - Normalised: `1 − sum / largest sum`. A host without preemptible instances is always 1; where
//!   all sums are 0 all get 0.
//! - Multiplier: `partial_hour_sum_weight_multiplier`, default 1,000 (opie's); aggregates may set
//!   the same key in their metadata.
//! - Option: `period_seconds`, the billing period, default 3600.
//! - Negative prefers hosts where most of the started hours is used up.
//!
//! **It contradicts two of the paper's four tables.** It counts instances that would not leave: in
//! the first table with mixed sizes it gives host-B (58 minutes in all, its only victim costs 58)
//! before host-A (113 in all, but a sufficient set costs 55), in the second host-A (52) before
//! host-B (84 in all, the sufficient set costs 20). Use `eviction_cost` to place instances.
//!
//! Source: López García et al. 2019, Algorithm 4 taken literally, as their prototype opie does
//! (`PreemptibleDurationWeigher`: `maxval = 0`, multiplier 1,000).

use ebbtide_weigher_api::{Bounds, Column, HostBatch, RequestView, Weigher, WeigherError};

/// The default of opie's own option.
pub const DEFAULT_MULTIPLIER: f64 = 1_000.0;

/// See the module's text.
#[derive(Debug, Clone, Copy)]
pub struct PartialHourSum {
    period_seconds: f64,
}

impl PartialHourSum {
    /// With the billing period in seconds, which [`WeigherOptions`](crate::WeigherOptions) has
    /// checked.
    pub(crate) fn new(period_seconds: u32) -> Self {
        Self {
            period_seconds: f64::from(period_seconds),
        }
    }
}

impl Weigher for PartialHourSum {
    fn name(&self) -> &str {
        "partial_hour_sum"
    }

    fn multiplier_key(&self) -> &str {
        "partial_hour_sum_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        DEFAULT_MULTIPLIER
    }

    fn needs(&self) -> &[Column] {
        &[]
    }

    fn needs_preemptibles(&self) -> bool {
        true
    }

    fn bounds(&self) -> Bounds {
        Bounds::UP_TO_ZERO
    }

    fn weigh(
        &self,
        _request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        let rows = hosts
            .preemptibles
            .ok_or(WeigherError::MissingPreemptibles)?;
        hosts.check_room(out)?;
        for (host, out) in out.iter_mut().enumerate() {
            let ages = rows.host(host).ok_or_else(|| {
                WeigherError::Other(format!("has no preemptible rows for host number {host}"))
            })?;
            // A clock that lags behind can give a negative age; such an instance has just started.
            let sum: f64 = ages
                .iter()
                .map(|age| age.max(0.0) % self.period_seconds)
                .sum();
            // Not `-sum`: nothing used up is 0 and never -0.
            *out = 0.0 - sum;
        }
        Ok(())
    }
}
