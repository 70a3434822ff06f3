//! AggregateMultiTenancyIsolation (`aggregate_multitenancy_isolation.py`).

use super::contract::{Context, Filter};
use super::values;
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};
use crate::release::Feature;

/// The key, or how it begins.
const TENANT: &str = "filter_tenant_id";

/// Where aggregates name tenants, by any key that begins with `filter_tenant_id`, the request's
/// project is among them.
pub struct AggregateMultiTenancyIsolation;

impl Filter for AggregateMultiTenancyIsolation {
    fn name(&self) -> &'static str {
        "AggregateMultiTenancyIsolation"
    }

    fn once_per_request(&self) -> bool {
        true
    }

    fn passes(
        &self,
        host: &HostState,
        spec: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let any_key = context.options.release.has(Feature::TenantKeys);
        let mut tenants = values::keys(host)
            .into_iter()
            .filter(|key| *key == TENANT || (any_key && key.starts_with(TENANT)))
            .flat_map(|key| values::split(host, key))
            .peekable();
        Ok(tenants.peek().is_none()
            || tenants.any(|tenant| Some(tenant) == spec.project_id.as_deref()))
    }
}
