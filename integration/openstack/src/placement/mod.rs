//! Placement, as nova-scheduler uses it, and the swap that it does not know.

mod allocations;
mod candidates;
mod claim;
mod providers;
mod resources;

pub use allocations::{ConsumerAllocations, NewClaim, ProviderAllocation, ReleasedConsumer};
pub use candidates::{AllocationCandidates, ProviderSummary, ResourceSummary};
pub use claim::AllocationResult;
pub use providers::{
    Aggregates, Consumers, Inventories, Inventory, Provider, ProviderConsumer, Traits, Usages,
};
pub use resources::{Generation, Resources};

use crate::adapter::{Adapter, AdapterRequest};
use crate::error::OpenStackError;
use crate::options::AdapterOptions;
use crate::session::Session;
use crate::version::{Microversion, VersionRange};
use serde::Deserialize;
use std::time::Duration;

/// What Nova asks candidates and claims with (`same_subtree`).
pub const CLAIM_VERSION: Microversion = Microversion::new(1, 36);
/// What Nova reads allocations with (consumer generations).
pub const CONSUMER_GENERATION_VERSION: Microversion = Microversion::new(1, 28);
/// What Nova reads providers with (`parent_provider_uuid`, `in_tree`).
pub const NESTED_VERSION: Microversion = Microversion::new(1, 14);
/// What Nova reads aggregates with (generation).
pub const AGGREGATE_VERSION: Microversion = Microversion::new(1, 19);
/// What Nova reads traits with.
pub const TRAIT_VERSION: Microversion = Microversion::new(1, 6);

/// A client of Placement. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Placement {
    adapter: Adapter,
    retry_wait: Duration,
}

/// By how much the longest wait grows from try to try when a claim met another writer.
const NOVA_RETRY_WAIT: Duration = Duration::from_secs(2);

impl Placement {
    /// A client; nothing is sent yet.
    ///
    /// # Errors
    /// [`OpenStackError::Config`] for options that make no sense.
    pub fn new(session: Session, options: AdapterOptions) -> Result<Self, OpenStackError> {
        if options.service_type != "placement" {
            let problem = format!(
                "{:?}: microversions are asked for as placement",
                options.service_type
            );
            return Err(OpenStackError::config(
                "[placement]",
                "service_type",
                problem,
            ));
        }
        Ok(Self {
            adapter: Adapter::new(session, options),
            retry_wait: NOVA_RETRY_WAIT,
        })
    }

    /// The session below.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.adapter.session()
    }

    /// The same client; what it sends carries this request id.
    #[must_use]
    pub fn for_request(&self, request_id: &str) -> Self {
        Self {
            adapter: self.adapter.for_request(request_id),
            ..self.clone()
        }
    }

    /// Another step for the waits between the tries of a claim than Nova's 2 seconds.
    #[must_use]
    pub fn with_retry_wait(self, retry_wait: Duration) -> Self {
        Self { retry_wait, ..self }
    }

    /// Which microversions it supports: `GET /`, without a token, as keystoneauth does.
    ///
    /// # Errors
    /// [`OpenStackError::Unavailable`], [`OpenStackError::BadAnswer`] and the like.
    pub async fn versions(&self) -> Result<VersionRange, OpenStackError> {
        let ask = AdapterRequest::get("/");
        let (answer, call) = self.adapter.discover(&ask).await?;
        let found: Discovery = answer.json(&call)?;
        let ranges = found.versions.iter().filter_map(|version| {
            let (min, max) = (
                version.min_version.parse().ok()?,
                version.max_version.parse().ok()?,
            );
            Some(VersionRange { min, max })
        });
        let newest = ranges.max_by_key(|range| range.max);
        newest.ok_or_else(|| {
            answer.bad(
                &call,
                "it names no version with min_version and max_version",
            )
        })
    }

    /// Checks that Placement can what a scheduler needs.
    ///
    /// # Errors
    /// [`OpenStackError::Version`] if it is too old, and those of [`versions`](Self::versions).
    pub async fn check_version(&self) -> Result<VersionRange, OpenStackError> {
        let range = self.versions().await?;
        if range.contains(CLAIM_VERSION) {
            return Ok(range);
        }
        let (min, max) = (range.min.to_string(), range.max.to_string());
        Err(OpenStackError::Version {
            service: "placement".to_owned(),
            min,
            max,
            needed: CLAIM_VERSION.to_string(),
        })
    }
}

#[derive(Deserialize)]
struct Discovery {
    versions: Vec<DiscoveredVersion>,
}

#[derive(Deserialize)]
struct DiscoveredVersion {
    #[serde(default)]
    min_version: String,
    #[serde(default)]
    max_version: String,
}
