//! Which OpenStack a user means: `clouds.yaml`, `secure.yaml` and `OS_*` variables, read as
//! openstacksdk and the openstack client read them.
//!
//! - `search` finds and reads the files: the shell of this crate.
//! - `document` is what stands in one, `settings` the merged settings of one cloud.
//! - `resolve` decides which cloud is meant and what it has, without I/O.
//! - `error` has every way to fail, with a stable code and a next step.
//!
//! The result is the [`AuthOptions`](ebbtide_openstack::AuthOptions) and
//! [`AdapterOptions`](ebbtide_openstack::AdapterOptions) of the client of Keystone; there is no
//! second one.
//!
//! Differences from openstacksdk, all of them stricter:
//!
//! - A file that cannot be understood is an error and not skipped. One that may not be read is
//!   skipped, as there.
//! - Variables do not override a named cloud. They add a secret that its files leave out, and may
//!   choose the region.
//! - A single cloud in a file is not taken unless it is named.
//! - Profiles come from `clouds-public.yaml`; the vendors' profiles that openstacksdk brings along
//!   are unknown here.

mod document;
mod error;
mod resolve;
mod search;
mod settings;

pub use error::OsCloudError;
pub use resolve::{CloudConfig, CloudSelector, ENVIRONMENT_CLOUD, SERVICE_TYPE, resolve};
pub use search::{CloudFiles, Environment};
