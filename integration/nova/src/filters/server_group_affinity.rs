//! ServerGroupAffinityFilter (`affinity_filter.py`).

use super::contract::{Context, Filter};
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};

/// A group with policy `affinity` that has hosts already stays on them. Names compare exactly.
pub struct ServerGroupAffinity;

impl Filter for ServerGroupAffinity {
    fn name(&self) -> &'static str {
        "ServerGroupAffinityFilter"
    }

    fn passes(
        &self,
        host: &HostState,
        spec: &RequestSpec,
        _: &Context<'_>,
    ) -> Result<bool, NovaException> {
        Ok(spec.instance_group.as_ref().is_none_or(|group| {
            group.policy != "affinity" || group.hosts.is_empty() || group.hosts.contains(&host.host)
        }))
    }
}
