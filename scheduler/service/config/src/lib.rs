//! The scheduler's configuration, apart from the service so that others
//! (`ebbtide-manage config check`) judge a file as the service does.
//!
//! Invariants: every key has a default that works; unknown keys are errors; no error shows a
//! password.

mod config;
mod error;
mod models;
mod quotas;
mod secure;
mod shadow;

pub use config::{Bus, Config, Database, ENVIRONMENT_PREFIX, Grpc, Http, Log, LogFormat};
pub use error::ConfigError;
pub use models::{read_model, read_models};
pub use quotas::{ProjectQuota, Quota, Quotas};
pub use secure::{AgentIdentity, Auth, CallerLimits, ClientCertificates, Tls};
pub use shadow::Shadow;
