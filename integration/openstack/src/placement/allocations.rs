//! Allocations of consumers: read, write, swap, delete.

use super::claim::{is_left_behind, met_empty};
use super::{CLAIM_VERSION, CONSUMER_GENERATION_VERSION, Generation, Placement, Resources};
use crate::adapter::AdapterRequest;
use crate::error::OpenStackError;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// What a consumer (a server, or a migration) holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ConsumerAllocations {
    /// By provider; empty if Placement does not know the consumer.
    pub allocations: BTreeMap<Uuid, ProviderAllocation>,
    /// `None` if Placement does not know the consumer.
    #[serde(default)]
    pub consumer_generation: Option<Generation>,
    /// Whose it is.
    #[serde(default)]
    pub project_id: Option<String>,
    /// Who made it.
    #[serde(default)]
    pub user_id: Option<String>,
}

/// What a consumer holds on one provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ProviderAllocation {
    /// By resource class.
    pub resources: BTreeMap<String, u64>,
    /// The provider's generation.
    #[serde(default)]
    pub generation: Option<Generation>,
}

/// What a consumer shall hold from now on, in place of what it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct NewClaim {
    /// The server.
    pub consumer: Uuid,
    /// What it shall hold.
    pub resources: Resources,
    /// Whose it is.
    pub project_id: String,
    /// Who made it.
    pub user_id: String,
    /// `None` for a consumer that holds nothing yet.
    pub generation: Option<Generation>,
}

/// A consumer that releases all its allocations. The generation is the one that Placement returned.
/// Without a generation Placement would create an unknown consumer that cannot be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleasedConsumer {
    /// The server.
    pub consumer: Uuid,
    /// As it was read.
    pub generation: Generation,
    /// Whose it is.
    pub project_id: String,
    /// Who made it.
    pub user_id: String,
}

impl NewClaim {
    pub(super) fn payload(&self) -> Value {
        let mut payload = self.resources.to_json();
        payload["project_id"] = Value::from(self.project_id.as_str());
        payload["user_id"] = Value::from(self.user_id.as_str());
        payload["consumer_generation"] = json!(self.generation);
        payload
    }
}

impl ReleasedConsumer {
    fn payload(&self) -> Value {
        let Self {
            generation,
            project_id,
            user_id,
            ..
        } = self;
        json!({"allocations": {}, "project_id": project_id, "user_id": user_id, "consumer_generation": generation})
    }
}

impl Placement {
    /// What a consumer holds; nothing and no generation if Placement does not know it.
    ///
    /// # Errors
    /// [`OpenStackError::Unavailable`] and the like.
    pub async fn allocations(&self, consumer: Uuid) -> Result<ConsumerAllocations, OpenStackError> {
        let ask =
            AdapterRequest::get(format!("/allocations/{consumer}")).at(CONSUMER_GENERATION_VERSION);
        let (answer, call) = self.adapter.call(&ask).await?;
        answer.json(&call)
    }

    /// Replaces what one consumer holds.
    ///
    /// # Errors
    /// [`OpenStackError::Conflict`] if another writer changed the consumer meanwhile or the claim
    /// does not fit. Nothing is changed then.
    pub async fn put_allocations(&self, claim: &NewClaim) -> Result<(), OpenStackError> {
        let payload = claim.payload();
        let ask = AdapterRequest::new(Method::PUT, format!("/allocations/{}", claim.consumer))
            .at(CLAIM_VERSION);
        self.adapter.call(&ask.with(&payload)).await.map(drop)
    }

    /// The atomic swap: in one transaction the victims hold nothing any more and the claims hold
    /// what they ask for, or nothing changes at all.
    ///
    /// A conflict of either code means: look again. If the answer is lost
    /// ([`Effect::Unknown`](crate::RequestEffect::Unknown)), read the newcomers' allocations.
    ///
    /// # Errors
    /// [`OpenStackError::Conflict`], [`OpenStackError::Config`] if the lists name one consumer
    /// twice or no consumer at all, [`OpenStackError::Unavailable`] and the like.
    pub async fn post_allocations(
        &self,
        victims: &[ReleasedConsumer],
        claims: &[NewClaim],
    ) -> Result<(), OpenStackError> {
        let mut tried = self.post(victims, claims).await;
        let mut attempt = 1;
        while met_empty(&tried) && self.wait_for_writer(attempt).await {
            attempt += 1;
            tried = self.post(victims, claims).await;
        }
        // Newcomers that a Placement that died has left behind. It takes them in the order of their
        // names, so they are the first ones.
        let mut claims = claims.to_vec();
        claims.sort_by_key(|claim| claim.consumer);
        for place in 0..claims.len() {
            let again = matches!(&tried, Err(OpenStackError::Conflict { text, .. }) if is_left_behind(text));
            if !again {
                break;
            }
            if claims[place].generation.is_none() {
                claims[place].generation = Some(Generation(0));
                tried = self.post(victims, &claims).await;
            }
        }
        tried
    }

    async fn post(
        &self,
        victims: &[ReleasedConsumer],
        claims: &[NewClaim],
    ) -> Result<(), OpenStackError> {
        let mut payload = Map::new();
        let emptied = victims
            .iter()
            .map(|victim| (victim.consumer, victim.payload()));
        let filled = claims.iter().map(|claim| (claim.consumer, claim.payload()));
        for (consumer, entry) in emptied.chain(filled) {
            if payload.insert(consumer.to_string(), entry).is_some() {
                let problem = format!("consumer {consumer} is named twice");
                return Err(OpenStackError::config("swap", "consumer", problem));
            }
        }
        if payload.is_empty() {
            return Err(OpenStackError::config(
                "swap",
                "consumer",
                "no consumer is named",
            ));
        }
        let payload = Value::Object(payload);
        let ask = AdapterRequest::new(Method::POST, "/allocations").at(CLAIM_VERSION);
        self.adapter.call(&ask.with(&payload)).await.map(drop)
    }

    /// Takes everything from a consumer, whatever its generation is. `false` if it held nothing.
    ///
    /// # Errors
    /// [`OpenStackError::Conflict`] if it was changed at this very moment;
    /// [`OpenStackError::Unavailable`] and the like.
    pub async fn delete_allocations(&self, consumer: Uuid) -> Result<bool, OpenStackError> {
        let ask = AdapterRequest::new(Method::DELETE, format!("/allocations/{consumer}"));
        match self.adapter.call(&ask).await {
            Ok(_) => Ok(true),
            Err(OpenStackError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
