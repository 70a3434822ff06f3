//! `GET /allocation_candidates`.

use super::{CLAIM_VERSION, Placement, Resources};
use crate::adapter::AdapterRequest;
use crate::error::OpenStackError;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use uuid::Uuid;

/// Where a request would fit, in the order in which Placement said it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AllocationCandidates {
    /// What could be claimed, each as a whole.
    pub allocation_requests: Vec<Resources>,
    /// What the providers of these requests, and of their trees, have and are.
    pub provider_summaries: Vec<(Uuid, ProviderSummary)>,
}

/// What Placement says about one provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ProviderSummary {
    /// By resource class.
    pub resources: BTreeMap<String, ResourceSummary>,
    /// Names of traits.
    #[serde(default)]
    pub traits: Vec<String>,
    /// `None` for a root.
    #[serde(default)]
    pub parent_provider_uuid: Option<Uuid>,
    /// Itself for a root.
    #[serde(default)]
    pub root_provider_uuid: Option<Uuid>,
}

/// One resource class of a provider, in the class's unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct ResourceSummary {
    /// (total − reserved) × allocation ratio.
    pub capacity: i64,
    /// What all consumers hold.
    pub used: i64,
}

#[derive(Deserialize)]
struct Answer {
    allocation_requests: Vec<RequestAnswer>,
    provider_summaries: OrderedMap<ProviderSummary>,
}

#[derive(Deserialize)]
struct RequestAnswer {
    allocations: Value,
    mappings: Option<Value>,
}

/// The entries of a JSON object in their order.
struct OrderedMap<T>(Vec<(Uuid, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrderedMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = OrderedMap<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with UUIDs as keys")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedMap<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(OrderedMap(entries))
            }
        }
        deserializer.deserialize_map(Entries(std::marker::PhantomData))
    }
}

impl Placement {
    /// Asks for candidates; `query` is the query string, percent-encoded, as Nova's
    /// `ResourceRequest` writes it.
    ///
    /// # Errors
    /// [`OpenStackError::Refused`] for a query that Placement does not understand (Nova then finds
    /// no valid host), [`OpenStackError::Unavailable`] and the like.
    pub async fn allocation_candidates(
        &self,
        query: &str,
    ) -> Result<AllocationCandidates, OpenStackError> {
        let ask = AdapterRequest::get(format!("/allocation_candidates?{query}")).at(CLAIM_VERSION);
        let (answer, call) = self.adapter.call(&ask).await?;
        let found: Answer = answer.json(&call)?;
        let requests = found.allocation_requests.into_iter();
        let requests: Result<Vec<_>, String> = requests
            .map(|r| Resources::checked(r.allocations, r.mappings))
            .collect();
        let allocation_requests = requests
            .map_err(|problem| answer.bad(&call, format!("an allocation request: {problem}")))?;
        Ok(AllocationCandidates {
            allocation_requests,
            provider_summaries: found.provider_summaries.0,
        })
    }

    /// The same answer as it came, for readers that take Placement's own form.
    ///
    /// # Errors
    /// As [`allocation_candidates`](Self::allocation_candidates).
    pub async fn allocation_candidates_json(
        &self,
        query: &str,
    ) -> Result<serde_json::Value, OpenStackError> {
        let ask = AdapterRequest::get(format!("/allocation_candidates?{query}")).at(CLAIM_VERSION);
        let (answer, call) = self.adapter.call(&ask).await?;
        answer.json(&call)
    }
}
