//! AggregateInstanceExtraSpecsFilter (`aggregate_instance_extra_specs.py`).

use super::contract::{Context, Filter};
use super::values;
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};
use ebbtide_model::extra_specs_ops;

/// Every extra spec without a namespace, or in the namespace `aggregate_instance_extra_specs`,
/// matches one of the values that the host's aggregates have under its key. A key that no aggregate
/// has fails the host.
///
/// Nova tries the values in the order of a set, and a value that is no number raises only if it is
/// tried before one matches; we try them in the order of the input.
pub struct AggregateInstanceExtraSpecs;

impl Filter for AggregateInstanceExtraSpecs {
    fn name(&self) -> &'static str {
        "AggregateInstanceExtraSpecsFilter"
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
        for (key, requirement) in spec
            .flavor
            .extra_specs
            .iter()
            .flat_map(|specs| specs.iter())
        {
            let key = match key.split_once(':') {
                None => key,
                Some(("aggregate_instance_extra_specs", key)) => key,
                Some(_) => continue,
            };
            let mut matched = false;
            for value in values::split(host, key) {
                matched = extra_specs_ops::matches(value, requirement)
                    .map_err(NovaException::incomparable)?;
                if matched {
                    break;
                }
            }
            if !matched {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
