//! AllHostsFilter.

use super::contract::{Context, Filter};
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};

/// Passes all.
pub struct AllHosts;

impl Filter for AllHosts {
    fn name(&self) -> &'static str {
        "AllHostsFilter"
    }

    fn once_per_request(&self) -> bool {
        true
    }

    fn passes(
        &self,
        _: &HostState,
        _: &RequestSpec,
        _: &Context<'_>,
    ) -> Result<bool, NovaException> {
        Ok(true)
    }
}
