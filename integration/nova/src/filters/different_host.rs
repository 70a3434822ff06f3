//! DifferentHostFilter (`affinity_filter.py`).

use super::contract::{Context, Filter};
use super::hints;
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};

/// None of the instances of the hint `different_host` is on the host.
pub struct DifferentHost;

impl Filter for DifferentHost {
    fn name(&self) -> &'static str {
        "DifferentHostFilter"
    }

    fn once_per_request(&self) -> bool {
        true
    }

    fn passes(
        &self,
        host: &HostState,
        spec: &RequestSpec,
        _: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let hint = hints::uuids(spec, "different_host");
        Ok(hint.is_none_or(|uuids| !uuids.iter().any(|uuid| host.instances.contains_key(uuid))))
    }
}
