//! Generations, and amounts on providers that are never nothing.

use crate::error::OpenStackError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use uuid::Uuid;

/// How often a consumer or provider was changed. A write that names an old one is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(pub u64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What is asked for on which providers, with the mapping of request groups to providers:
/// Placement's allocation request. There is always something in it: an empty one would be a
/// deletion, and for an unknown consumer a phantom.
#[derive(Debug, Clone, PartialEq)]
pub struct Resources {
    allocations: Map<String, Value>,
    mappings: Option<Value>,
}

impl Resources {
    /// Takes `{"PROVIDER": {"resources": {"VCPU": 1, …}}, …}` and, if there is one, `{"":
    /// ["PROVIDER"], …}`, as Placement writes them.
    ///
    /// # Errors
    /// [`OpenStackError::Config`] if there is nothing in it, or something else.
    pub fn new(allocations: Value, mappings: Option<Value>) -> Result<Self, OpenStackError> {
        Self::checked(allocations, mappings)
            .map_err(|problem| OpenStackError::config("allocation request", "allocations", problem))
    }

    /// From amounts of resource classes on providers.
    ///
    /// # Errors
    /// [`OpenStackError::Config`] if there is nothing in it.
    pub fn from_amounts(
        amounts: &BTreeMap<Uuid, BTreeMap<String, u64>>,
    ) -> Result<Self, OpenStackError> {
        let allocations: Map<_, _> = amounts
            .iter()
            .map(|(provider, of)| (provider.to_string(), json!({"resources": of})))
            .collect();
        Self::new(Value::Object(allocations), None)
    }

    pub(super) fn checked(allocations: Value, mappings: Option<Value>) -> Result<Self, String> {
        let Value::Object(allocations) = allocations else {
            return Err("it is no object".to_owned());
        };
        if allocations.is_empty() {
            return Err("it is empty".to_owned());
        }
        for (provider, on_provider) in &allocations {
            if Uuid::try_parse(provider).is_err() {
                return Err(format!(
                    "{:?} is no UUID",
                    provider.chars().take(64).collect::<String>()
                ));
            }
            let resources = on_provider["resources"]
                .as_object()
                .filter(|resources| !resources.is_empty());
            let resources =
                resources.ok_or_else(|| format!("provider {provider} has no resources"))?;
            let positive = |amount: &Value| amount.as_u64().is_some_and(|amount| amount > 0);
            if let Some((class, _)) = resources.iter().find(|(_, amount)| !positive(amount)) {
                return Err(format!(
                    "the amount of {class:?} on provider {provider} is not positive"
                ));
            }
        }
        match &mappings {
            None | Some(Value::Object(_)) => Ok(Self {
                allocations,
                mappings,
            }),
            Some(_) => Err("mappings are no object".to_owned()),
        }
    }

    /// By provider, as Placement writes it.
    #[must_use]
    pub fn allocations(&self) -> &Map<String, Value> {
        &self.allocations
    }

    /// By request group, as Placement writes it.
    #[must_use]
    pub fn mappings(&self) -> Option<&Value> {
        self.mappings.as_ref()
    }

    pub fn providers(&self) -> impl Iterator<Item = Uuid> + '_ {
        self.allocations
            .keys()
            .filter_map(|provider| Uuid::try_parse(provider).ok())
    }

    /// The amounts of all providers.
    pub fn amounts(&self) -> impl Iterator<Item = (Uuid, &str, u64)> + '_ {
        self.allocations.iter().flat_map(|(provider, on_provider)| {
            let provider = Uuid::try_parse(provider).ok();
            let resources = on_provider["resources"].as_object().into_iter().flatten();
            resources.filter_map(move |(class, amount)| {
                Some((provider?, class.as_str(), amount.as_u64()?))
            })
        })
    }

    /// The whole allocation request as JSON: what a `Selection` carries as text.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut request = json!({"allocations": self.allocations});
        if let Some(mappings) = &self.mappings {
            request["mappings"] = mappings.clone();
        }
        request
    }

    /// These, and what a consumer has already on other providers: the "doubled-up" allocation of an
    /// evacuation. What it has on a provider of both stays as it was (shared storage), and there
    /// are no mappings, as in Nova's `_move_operation_alloc_request`.
    #[must_use]
    pub(super) fn doubled_up(&self, current: &BTreeMap<Uuid, super::ProviderAllocation>) -> Self {
        let mut allocations = self.allocations.clone();
        allocations.retain(|provider, _| {
            Uuid::try_parse(provider).is_ok_and(|uuid| !current.contains_key(&uuid))
        });
        for (provider, has) in current {
            allocations.insert(provider.to_string(), json!({"resources": has.resources}));
        }
        Self {
            allocations,
            mappings: None,
        }
    }
}
