//! AggregateTypeAffinityFilter (`type_filter.py`).

use super::contract::{Context, Filter};
use super::values;
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};

/// An aggregate with the key `instance_type` names the flavor, or none has the key. The empty value
/// names no flavor.
pub struct AggregateTypeAffinity;

impl Filter for AggregateTypeAffinity {
    fn name(&self) -> &'static str {
        "AggregateTypeAffinityFilter"
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
        let flavors = values::split(host, "instance_type");
        Ok(flavors.is_empty() || flavors.contains(&spec.flavor.name.as_str()))
    }
}
