//! NumInstancesFilter (`num_instances_filter.py`).

use super::contract::{Context, Filter};
use super::values;
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};

/// Fewer instances than `max_instances_per_host`.
pub struct NumInstances;

impl Filter for NumInstances {
    fn name(&self) -> &'static str {
        "NumInstancesFilter"
    }

    fn passes(
        &self,
        host: &HostState,
        _: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let limit = context.options.max_instances_per_host.map(i128::from);
        values::below(host.num_instances, limit)
    }
}
