//! IoOpsFilter (`io_ops_filter.py`).

use super::contract::{Context, Filter};
use super::values;
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};

/// Fewer I/O operations going on than `max_io_ops_per_host`.
pub struct IoOps;

impl Filter for IoOps {
    fn name(&self) -> &'static str {
        "IoOpsFilter"
    }

    fn passes(
        &self,
        host: &HostState,
        _: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let limit = context.options.max_io_ops_per_host.map(i128::from);
        values::below(host.num_io_ops, limit)
    }
}
