//! ServerGroupAntiAffinityFilter (`affinity_filter.py`).

use super::contract::{Context, Filter};
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};
use crate::python::number;
use std::collections::BTreeSet;

/// A group with policy `anti-affinity` has fewer than `max_server_per_host` (1) of its members on
/// the host. The host on which the instance itself runs passes, so that it can be resized there.
pub struct ServerGroupAntiAffinity;

impl Filter for ServerGroupAntiAffinity {
    fn name(&self) -> &'static str {
        "ServerGroupAntiAffinityFilter"
    }

    fn passes(
        &self,
        host: &HostState,
        spec: &RequestSpec,
        _: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let Some(group) = spec
            .instance_group
            .as_ref()
            .filter(|group| group.policy == "anti-affinity")
        else {
            return Ok(true);
        };
        if host.instances.contains_key(&spec.instance_uuid) {
            return Ok(true);
        }
        let members: BTreeSet<&String> = group.members.iter().collect();
        let here = members
            .into_iter()
            .filter(|member| host.instances.contains_key(*member))
            .count();
        let most = match group.rules.get("max_server_per_host") {
            Some(rule) => number::int(rule).ok_or_else(|| {
                NovaException::new("ValueError", format!("{rule:?} is no whole number"))
            })?,
            None => 1,
        };
        Ok(i128::try_from(here).is_ok_and(|here| here < most))
    }
}
