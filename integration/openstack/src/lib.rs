//! Keystone, Placement and Nova's API over HTTP.
//!
//! A [`Session`] knows who we are: it holds the credentials, gets a Keystone token when one is
//! needed, renews it before it expires, and keeps the service catalog. [`Placement`] and
//! [`Compute`] are clients of one service each over a shared session. All of them are cheap to
//! clone and to share between tasks.
//!
//! ```no_run
//! # async fn example() -> Result<(), ebbtide_openstack::OpenStackError> {
//! use ebbtide_openstack::{AdapterOptions, AuthOptions, Placement, Session, SessionOptions};
//! let section = |key: &str| std::env::var(format!("OS_{}", key.to_uppercase())).ok();
//! let session = Session::new(AuthOptions::from_lookup("environment", section)?,
//! SessionOptions::new("ebbtide"))?;
//! let placement = Placement::new(session, AdapterOptions::placement())?;
//! let request = placement.for_request("req-5b2a8f5c-8a3b-4d5e-9d5a-0f5f9f1c6b7a");
//! let found = request.allocation_candidates("limit=1000&resources=VCPU%3A1").await?;
//! # drop(found); Ok(()) }
//! ```
//!
//! Three things are kept here and nowhere else:
//!
//! - **What a failure means.** [`OpenStackError`] tells a conflict from a refusal from a service
//!   that is away, and says of the last whether what was asked may have happened
//!   ([`RequestEffect::Unknown`]): then the caller has to read before it decides.
//! - **Secrets stay inside.** Passwords and tokens are in [`Secret`], whose `Debug` says nothing;
//!   answers of Keystone are never repeated in an error.
//! - **No phantom consumers.** A write without allocations and without a generation makes Placement
//!   create a consumer that cannot be removed. [`ReleasedConsumer`] always has a generation,
//!   [`Resources`] is
//!   never empty, and nothing else can be written.

mod adapter;
pub mod compute;
mod error;
mod identity;
mod keystone;
mod named;
mod options;
pub mod placement;
mod secret;
mod session;
mod tls;
pub mod transport;
mod version;

pub use adapter::Adapter;
pub use compute::Compute;
pub use ebbtide_runtime::ids::new_request_id;
pub use error::{ConflictCode, OpenStackError, RequestEffect};
pub use identity::Identity;
pub use keystone::{Catalog, CatalogEndpoint};
pub use named::{NamedResource, images_named, networks_named};
pub use options::{
    AdapterOptions, ApplicationCredential, AuthMethod, AuthOptions, IdOrName, SessionOptions,
    TlsOptions, TokenScope,
};
pub use placement::{AllocationResult, NewClaim, Placement, ReleasedConsumer, Resources};
pub use secret::Secret;
pub use session::Session;
pub use version::{Microversion, VersionRange};
