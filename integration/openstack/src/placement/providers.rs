//! Resource providers: what they are, have and give.

use super::{
    AGGREGATE_VERSION, CLAIM_VERSION, CONSUMER_GENERATION_VERSION, Generation, NESTED_VERSION,
    Placement, TRAIT_VERSION,
};
use crate::adapter::AdapterRequest;
use crate::error::OpenStackError;
use crate::version::Microversion;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use uuid::Uuid;

/// One resource provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Provider {
    /// Its id: for a compute host the `uuid` of its `compute_nodes` row.
    pub uuid: Uuid,
    /// Its name: for a compute host its hypervisor hostname.
    pub name: String,
    /// Changes with inventory, traits, aggregates and allocations.
    pub generation: Generation,
    /// `None` for a root.
    #[serde(default)]
    pub parent_provider_uuid: Option<Uuid>,
    /// Itself for a root.
    #[serde(default)]
    pub root_provider_uuid: Option<Uuid>,
}

/// One resource class of a provider, in the class's unit.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Inventory {
    /// All there is.
    pub total: u64,
    /// Of it not for consumers.
    #[serde(default)]
    pub reserved: u64,
    /// The least that one consumer may have.
    #[serde(default = "one")]
    pub min_unit: u64,
    /// The most that one consumer may have.
    #[serde(default = "most")]
    pub max_unit: u64,
    /// What a consumer has is a multiple of it.
    #[serde(default = "one")]
    pub step_size: u64,
    /// How many times over it is given.
    #[serde(default = "whole")]
    pub allocation_ratio: f64,
}

fn one() -> u64 {
    1
}

fn most() -> u64 {
    u64::from(u32::MAX >> 1)
}

fn whole() -> f64 {
    1.0
}

/// What a provider has.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Inventories {
    /// By resource class.
    pub inventories: BTreeMap<String, Inventory>,
    /// The provider's.
    #[serde(rename = "resource_provider_generation")]
    pub generation: Generation,
}

/// What a provider has given.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Usages {
    /// By resource class.
    pub usages: BTreeMap<String, u64>,
    /// The provider's.
    #[serde(rename = "resource_provider_generation")]
    pub generation: Generation,
}

/// What a provider is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Traits {
    /// Names.
    pub traits: Vec<String>,
    /// The provider's.
    #[serde(rename = "resource_provider_generation")]
    pub generation: Generation,
}

/// What a provider belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Aggregates {
    /// Ids.
    pub aggregates: Vec<Uuid>,
    /// The provider's.
    #[serde(rename = "resource_provider_generation")]
    pub generation: Generation,
}

/// Who holds something of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Consumers {
    #[serde(rename = "allocations")]
    pub consumers: BTreeMap<Uuid, ProviderConsumer>,
    /// The provider's.
    #[serde(rename = "resource_provider_generation")]
    pub generation: Generation,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ProviderConsumer {
    /// What it holds of this provider, by resource class.
    pub resources: BTreeMap<String, u64>,
    /// Its own generation: what a [`Victim`](super::ReleasedConsumer) needs.
    pub consumer_generation: Generation,
}

#[derive(Deserialize)]
struct Providers {
    resource_providers: Vec<Provider>,
}

impl Placement {
    /// Providers by a query string, for example `in_tree=UUID`, `member_of=in:UUID`, `name=NAME`,
    /// or all with an empty one.
    ///
    /// # Errors
    /// [`OpenStackError::Refused`] for a query that Placement does not understand,
    /// [`OpenStackError::Unavailable`] and the like.
    pub async fn providers(&self, query: &str) -> Result<Vec<Provider>, OpenStackError> {
        let mark = if query.is_empty() { "" } else { "?" };
        // `member_of` with several aggregates, `required` with forbidden traits and the like came
        // after 1.14.
        let found: Providers = self
            .read(format!("/resource_providers{mark}{query}"), CLAIM_VERSION)
            .await?;
        Ok(found.resource_providers)
    }

    /// One provider.
    ///
    /// # Errors
    /// [`OpenStackError::NotFound`], [`OpenStackError::Unavailable`] and the like.
    pub async fn provider(&self, provider: Uuid) -> Result<Provider, OpenStackError> {
        self.read(format!("/resource_providers/{provider}"), NESTED_VERSION)
            .await
    }

    /// What a provider has.
    ///
    /// # Errors
    /// As [`provider`](Self::provider).
    pub async fn inventories(&self, provider: Uuid) -> Result<Inventories, OpenStackError> {
        self.read(
            format!("/resource_providers/{provider}/inventories"),
            CLAIM_VERSION,
        )
        .await
    }

    /// What a provider has given, the sum over all consumers.
    ///
    /// # Errors
    /// As [`provider`](Self::provider).
    pub async fn usages(&self, provider: Uuid) -> Result<Usages, OpenStackError> {
        self.read(
            format!("/resource_providers/{provider}/usages"),
            CLAIM_VERSION,
        )
        .await
    }

    /// What a provider is.
    ///
    /// # Errors
    /// As [`provider`](Self::provider).
    pub async fn traits(&self, provider: Uuid) -> Result<Traits, OpenStackError> {
        self.read(
            format!("/resource_providers/{provider}/traits"),
            TRAIT_VERSION,
        )
        .await
    }

    /// What a provider belongs to.
    ///
    /// # Errors
    /// As [`provider`](Self::provider).
    pub async fn aggregates(&self, provider: Uuid) -> Result<Aggregates, OpenStackError> {
        self.read(
            format!("/resource_providers/{provider}/aggregates"),
            AGGREGATE_VERSION,
        )
        .await
    }

    /// Who holds what of a provider, with the generations that a swap needs.
    ///
    /// # Errors
    /// As [`provider`](Self::provider).
    pub async fn provider_allocations(&self, provider: Uuid) -> Result<Consumers, OpenStackError> {
        let path = format!("/resource_providers/{provider}/allocations");
        self.read(path, CONSUMER_GENERATION_VERSION).await
    }

    async fn read<T: DeserializeOwned>(
        &self,
        path: String,
        version: Microversion,
    ) -> Result<T, OpenStackError> {
        let ask = AdapterRequest::get(path).at(version);
        let (answer, call) = self.adapter.call(&ask).await?;
        answer.json(&call)
    }
}
