//! AvailabilityZoneFilter (`availability_zone_filter.py`), which Nova had up to 27.

use super::contract::{Context, Filter};
use super::values;
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};

/// The request's zone is among those that the host's aggregates name; a host in none is in the
/// default zone.
pub struct AvailabilityZone;

impl Filter for AvailabilityZone {
    fn name(&self) -> &'static str {
        "AvailabilityZoneFilter"
    }

    fn once_per_request(&self) -> bool {
        true
    }

    fn passes(
        &self,
        host: &HostState,
        spec: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let Some(zone) = spec
            .availability_zone
            .as_deref()
            .filter(|zone| !zone.is_empty())
        else {
            return Ok(true);
        };
        let zones = values::split(host, "availability_zone");
        Ok(if zones.is_empty() {
            zone == context.options.default_availability_zone
        } else {
            zones.contains(&zone)
        })
    }
}
