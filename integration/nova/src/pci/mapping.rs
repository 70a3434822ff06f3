//! Which resource providers Placement chose for a request for devices
//! (`PciDeviceStats._get_rp_uuids_for_request`).

use super::spec::text;
use crate::fault::NovaException;
use crate::model::{PciRequest, RequestGroup};
use serde_json::Value;

/// Request group suffix to resource providers. Without any, a request may itself say which
/// providers serve it (`rp_uuids` in its spec), and if it does not, any pool will do.
#[derive(Debug, Clone, Copy)]
pub enum ProviderMapping<'a> {
    /// Of an allocation candidate: the JSON object under `mappings`.
    Candidate(&'a Value),
    /// Of the claimed candidate, as the request's groups carry it.
    Groups(&'a [RequestGroup]),
}

impl ProviderMapping<'_> {
    /// The providers that serve a request, one for each device; none if any pool will do. Requests
    /// of Neutron ports (without an alias) always take any pool. Groups are found by their suffix
    /// beginning with the request's id.
    ///
    /// # Errors
    /// What Nova stumbles over: `TypeError` for a request without id, `IndexError` for one without
    /// spec or a group without provider, `AttributeError` for a group without id.
    pub(super) fn providers(self, request: &PciRequest) -> Result<Vec<String>, NovaException> {
        if request.alias_name.is_none() {
            return Ok(Vec::new());
        }
        match self {
            Self::Candidate(mappings) if is_empty(mappings) => from_spec(request),
            Self::Candidate(mappings) => {
                let Some(groups) = mappings.as_object() else {
                    return Err(NovaException::new(
                        "AttributeError",
                        "mappings are no object",
                    ));
                };
                let mut providers = Vec::new();
                for (group, found) in groups {
                    if serves(group, request)? {
                        providers.push(first(found)?);
                    }
                }
                Ok(providers)
            }
            Self::Groups([]) => from_spec(request),
            Self::Groups(groups) => from_groups(groups, request),
        }
    }
}

fn from_groups(
    groups: &[RequestGroup],
    request: &PciRequest,
) -> Result<Vec<String>, NovaException> {
    let mut providers = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        // A dictionary by requester: the first place, the last value.
        if groups[..at]
            .iter()
            .any(|earlier| earlier.requester_id == group.requester_id)
        {
            continue;
        }
        let last = groups
            .iter()
            .rfind(|later| later.requester_id == group.requester_id);
        let Some(requester) = group.requester_id.as_deref() else {
            return Err(NovaException::new(
                "AttributeError",
                "a request group without requester",
            ));
        };
        if serves(requester, request)? {
            let provider = last.and_then(|group| group.provider_uuids.first());
            providers.push(provider.cloned().ok_or_else(no_provider)?);
        }
    }
    Ok(providers)
}

fn is_empty(mappings: &Value) -> bool {
    match mappings {
        Value::Null => true,
        Value::Object(groups) => groups.is_empty(),
        _ => false,
    }
}

fn serves(group: &str, request: &PciRequest) -> Result<bool, NovaException> {
    let id = request.request_id.as_deref();
    let id =
        id.ok_or_else(|| NovaException::new("TypeError", "a request for devices without an id"))?;
    Ok(group.starts_with(id))
}

fn first(found: &Value) -> Result<String, NovaException> {
    match found {
        Value::Array(providers) => match providers.first() {
            Some(Value::String(provider)) => Ok(provider.clone()),
            Some(other) => Ok(other.to_string()),
            None => Err(no_provider()),
        },
        Value::String(provider) => provider
            .chars()
            .next()
            .map(String::from)
            .ok_or_else(no_provider),
        Value::Object(_) => Err(NovaException::new(
            "KeyError",
            "providers of a group are no list",
        )),
        _ => Err(NovaException::new(
            "TypeError",
            "providers of a group are no list",
        )),
    }
}

fn no_provider() -> NovaException {
    NovaException::new("IndexError", "a request group without a provider")
}

/// A spec carries the providers as one comma-separated string.
fn from_spec(request: &PciRequest) -> Result<Vec<String>, NovaException> {
    let Some(spec) = request.spec.first() else {
        return Err(NovaException::new(
            "IndexError",
            "a request for devices without a spec",
        ));
    };
    Ok(match spec.get("rp_uuids").and_then(text) {
        Some(list) if !list.is_empty() => list.split(',').map(str::to_owned).collect(),
        _ => Vec::new(),
    })
}
