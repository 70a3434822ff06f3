//! AggregateNumInstancesFilter (`num_instances_filter.py`).

use super::contract::{Context, Filter};
use super::values;
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};

/// As NumInstancesFilter, with the least `max_instances_per_host` of the host's aggregates for a
/// limit.
pub struct AggregateNumInstances;

impl Filter for AggregateNumInstances {
    fn name(&self) -> &'static str {
        "AggregateNumInstancesFilter"
    }

    fn passes(
        &self,
        host: &HostState,
        _: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let limit = values::least(
            host,
            "max_instances_per_host",
            context.options.max_instances_per_host,
        );
        values::below(host.num_instances, limit)
    }
}
