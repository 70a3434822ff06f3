//! Nova's API, as far as an agent and a scheduler's operator tools need it.

mod actions;
mod create;
mod hosts;
mod servers;

pub use actions::{AcceptedAction, InstanceAction, Migration};
pub use create::{NamedFlavor, NewServer, ServerNetworks};
pub use hosts::{ComputeService, Hypervisor};
pub use servers::{Server, ServerFault, ServerFilter, ServerFlavor};

use crate::adapter::{Adapter, AdapterRequest};
use crate::error::OpenStackError;
use crate::options::AdapterOptions;
use crate::session::Session;
use crate::version::{Microversion, VersionRange};
use serde::Deserialize;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// What we ask with if Nova knows it (Train, 2019). Newer ones take the sizes out of the
/// hypervisors (2.88).
pub const PREFERRED_VERSION: Microversion = Microversion::new(2, 79);
/// The oldest that is enough: the flavor with its extra specs is in the server (2.47), hypervisors
/// have a UUID (2.53).
pub const OLDEST_VERSION: Microversion = Microversion::new(2, 53);

/// A client of Nova's API. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Compute {
    adapter: Adapter,
    version: Arc<OnceCell<Microversion>>,
}

impl Compute {
    /// A client; nothing is sent yet.
    ///
    /// # Errors
    /// [`OpenStackError::Config`] for options that make no sense.
    pub fn new(session: Session, options: AdapterOptions) -> Result<Self, OpenStackError> {
        if options.service_type != "compute" {
            let problem = format!(
                "{:?}: microversions are asked for as compute",
                options.service_type
            );
            return Err(OpenStackError::config("compute", "service_type", problem));
        }
        let version = Arc::new(OnceCell::new());
        Ok(Self {
            adapter: Adapter::new(session, options),
            version,
        })
    }

    /// The session below.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.adapter.session()
    }

    /// The same client; what it sends carries this request id, which is in the logs of all services
    /// that it reaches (the global request id). The id that an instance action names is Nova's own;
    /// see [`AcceptedAction`].
    #[must_use]
    pub fn for_request(&self, request_id: &str) -> Self {
        let version = Arc::clone(&self.version);
        Self {
            adapter: self.adapter.for_request(request_id),
            version,
        }
    }

    /// Which microversions it supports: `GET /v2.1/`.
    ///
    /// # Errors
    /// [`OpenStackError::Unavailable`], [`OpenStackError::BadAnswer`] if the endpoint is not that
    /// of `/v2.1`.
    pub async fn versions(&self) -> Result<VersionRange, OpenStackError> {
        let ask = AdapterRequest::get("/");
        let (answer, call) = self.adapter.call(&ask).await?;
        let found: Discovery = answer.json(&call)?;
        let parsed = found
            .version
            .min_version
            .parse()
            .and_then(|min| Ok((min, found.version.version.parse()?)));
        let (min, max) = parsed.map_err(|problem: String| answer.bad(&call, problem))?;
        Ok(VersionRange { min, max })
    }

    /// The microversion that everything is asked with; found at the first call.
    ///
    /// # Errors
    /// [`OpenStackError::Version`] if Nova is too old, and those of [`versions`](Self::versions).
    pub async fn negotiated(&self) -> Result<Microversion, OpenStackError> {
        let find = || async {
            let range = self.versions().await?;
            let version = PREFERRED_VERSION.min(range.max);
            if version >= OLDEST_VERSION && range.contains(version) {
                return Ok(version);
            }
            let (min, max) = (range.min.to_string(), range.max.to_string());
            let needed = format!("{OLDEST_VERSION} to {PREFERRED_VERSION}");
            Err(OpenStackError::Version {
                service: "compute".to_owned(),
                min,
                max,
                needed,
            })
        };
        self.version.get_or_try_init(find).await.copied()
    }
}

#[derive(Deserialize)]
struct Discovery {
    version: DiscoveredVersion,
}

#[derive(Deserialize)]
struct DiscoveredVersion {
    version: String,
    min_version: String,
}

/// A value for a query, percent-encoded.
pub(crate) fn encoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}
