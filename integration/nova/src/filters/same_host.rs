//! SameHostFilter (`affinity_filter.py`).

use super::contract::{Context, Filter};
use super::hints;
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};

/// One of the instances of the hint `same_host` is on the host.
pub struct SameHost;

impl Filter for SameHost {
    fn name(&self) -> &'static str {
        "SameHostFilter"
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
        let hint = hints::uuids(spec, "same_host");
        Ok(hint.is_none_or(|uuids| uuids.iter().any(|uuid| host.instances.contains_key(uuid))))
    }
}
