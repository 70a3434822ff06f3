//! AggregateIoOpsFilter (`io_ops_filter.py`).

use super::contract::{Context, Filter};
use super::values;
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};

/// As IoOpsFilter, with the least `max_io_ops_per_host` of the host's aggregates for a limit.
pub struct AggregateIoOps;

impl Filter for AggregateIoOps {
    fn name(&self) -> &'static str {
        "AggregateIoOpsFilter"
    }

    fn passes(
        &self,
        host: &HostState,
        _: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let limit = values::least(
            host,
            "max_io_ops_per_host",
            context.options.max_io_ops_per_host,
        );
        values::below(host.num_io_ops, limit)
    }
}
