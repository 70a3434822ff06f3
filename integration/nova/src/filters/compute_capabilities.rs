//! ComputeCapabilitiesFilter (`compute_capabilities_filter.py`).

use super::attributes;
use super::contract::{Context, Filter};
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};
use crate::python::{Value, json};
use ebbtide_model::extra_specs_ops;

/// The host's attributes meet the extra specs: those in the namespace `capabilities`, and those
/// without a namespace whose key is an attribute of the host state or one of its `stats`.
pub struct ComputeCapabilities;

impl Filter for ComputeCapabilities {
    fn name(&self) -> &'static str {
        "ComputeCapabilitiesFilter"
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
        let Some(extra_specs) = &spec.flavor.extra_specs else {
            return Ok(true);
        };
        for (key, requirement) in extra_specs
            .iter()
            .filter(|(key, _)| *key != "hw:maxphysaddr_bits")
        {
            if key != "capabilities:cpu_info:maxphysaddr:bits"
                || !extra_specs.contains_key("hw:maxphysaddr_bits")
            {
                if !meets(host, key, requirement)? {
                    return Ok(false);
                }
            } else if !bits_fit(host, extra_specs.get("hw:maxphysaddr_bits"))? {
                return Ok(false);
            }
        }
        // Nova puts the wanted physical address bits last, or in the place of the capability that
        // they stand for.
        if extra_specs.contains_key("capabilities:cpu_info:maxphysaddr:bits") {
            return Ok(true);
        }
        bits_fit(host, extra_specs.get("hw:maxphysaddr_bits"))
    }
}

fn bits_fit(host: &HostState, bits: Option<&String>) -> Result<bool, NovaException> {
    bits.map_or(Ok(true), |bits| {
        meets(
            host,
            "capabilities:cpu_info:maxphysaddr:bits",
            &format!(">= {bits}"),
        )
    })
}

/// Whether the host meets one extra spec.
pub(crate) fn meets(host: &HostState, key: &str, requirement: &str) -> Result<bool, NovaException> {
    let scope: Vec<&str> = key.split(':').collect();
    let scope = match scope.as_slice() {
        [name] => {
            let in_stats = host
                .stats
                .as_ref()
                .is_some_and(|stats| stats.contains_key(*name));
            if attributes::attribute(host, name).is_none() && !in_stats {
                return Ok(true);
            }
            &scope[..]
        }
        ["capabilities", rest @ ..] => rest,
        _ => return Ok(true),
    };
    match capability(host, scope)? {
        Some(value) => extra_specs_ops::matches(&value.text(), requirement)
            .map_err(NovaException::incomparable),
        None => Ok(false),
    }
}

/// Walks from the host state by names: text is read as JSON, dicts by key, all else by attribute.
fn capability(host: &HostState, scope: &[&str]) -> Result<Option<Value>, NovaException> {
    let Some((first, rest)) = scope.split_first() else {
        return Ok(None);
    };
    // An attribute that is missing or None is looked for in the stats; a node that was never
    // updated has none.
    let attribute =
        attributes::attribute(host, first).filter(|value| !matches!(value, Value::None));
    let in_stats = || {
        let value = host.stats.as_ref()?.get(*first)?.clone()?;
        Some(Value::Str(value))
    };
    let Some(mut value) = attribute.or_else(in_stats) else {
        return Ok(None);
    };
    for name in rest {
        if let Value::Str(text) = &value {
            value = match json::loads(text) {
                Ok(value) => value,
                Err(fault) if fault.class == "JSONDecodeError" => return Ok(None),
                Err(fault) => return Err(fault),
            };
        }
        let next = match &value {
            Value::Dict(entries) => entries.get(name).cloned(),
            other => attributes::of_value(other, name),
        };
        match next {
            None | Some(Value::None) => return Ok(None),
            Some(next) => value = next,
        }
    }
    Ok(Some(value))
}
