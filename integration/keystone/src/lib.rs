//! Keystone for a service that is called: who calls, what the caller may do, which limits its
//! project has.
//!
//! [`TokenValidator`] does what keystonemiddleware's `auth_token` does in front of Nova, with the
//! same section `[keystone_authtoken]` of the same file ([`AuthTokenOptions`]). [`LimitReader`]
//! reads unified limits as oslo.limit does. Requests go through [`ebbtide_openstack::Identity`].
//!
//! ```no_run
//! # use ebbtide_keystone::KeystoneError;
//! # async fn example(config: &oslo_config::Config) -> Result<(), KeystoneError> {
//! use ebbtide_keystone::{
//!     AccessPolicy, ApiRequest, ApiRole, AuthTokenOptions, TokenValidator,
//! };
//! let validator = TokenValidator::new(AuthTokenOptions::read(config)?)?;
//! let request = ApiRequest::new("GET", "/v1/servers").with_token(Some("gAAAAABr…"));
//! let caller = validator.authenticate(&request).await?;
//! if AccessPolicy::default().api_role(&caller.token)? == ApiRole::Admin { /* all projects */ }
//! # Ok(()) }
//! ```
//!
//! What holds:
//!
//! - **A refusal has a meaning.** [`KeystoneError::meaning`] says whether the caller has to
//!   authenticate (401), may not do this (403), or has to come back later (503).
//! - **No token is kept or shown.** The cache is keyed by a salted hash; neither `Debug` nor an
//!   error has a token, and what Keystone says about one is not repeated.
//! - **Never beyond its end.** A cached token is used for at most `token_cache_time`, counted from
//!   the question to Keystone, and not after its own expiry. A revocation is therefore obeyed
//!   within `token_cache_time`.
//! - **One question for one token**, however many requests carry it at the same moment. Refusals
//!   are kept for [`CachePolicy::refused`], so that a flood of bad tokens is no flood on Keystone.
//! - **Keystone away**: cached tokens go on until the end of their cache time. Others are answered
//!   with [`KeystoneError::Unavailable`] after at most [`CachePolicy::limit`].
//! - **Pure but for the shells.** [`token`], [`access_rules`], [`access_policy`], [`admission`],
//!   [`roles`], [`policy`] and [`limits::effective`] have no I/O and read no clock; `validator`,
//!   `cache` and [`limits::LimitReader`] are the shells.
//!
//! # Differences from keystonemiddleware
//!
//! All of them refuse more:
//!
//! - Unscoped tokens are refused here; the middleware leaves that to the service's policy.
//! - Access rules of an application credential are waived for a request with a service token only
//!   if that token has one of `service_token_roles`. The middleware waives them for any
//!   `X-Service-Token`, which a holder of a restricted credential could add itself.
//! - A path pattern of an access rule is compared literally but for `*`, `**` and `{tag}`. The
//!   middleware takes the rest for a regular expression.
//! - An expired token that a service may use (`allow_expired`) is not cached.
//! - The section needs `auth_type`; the plugin of before 2015 (`admin_user` and the like) is an
//!   error, as is `delay_auth_decision`.
//!
//! # Roles
//!
//! [`AccessPolicy::api_role`] maps a token to one of the roles of secure RBAC. The scheduler's
//! own roles (`ebbtide_access::Role`, a crate above this one) correspond so:
//!
//! | [`ApiRole`] | `ebbtide_access::Role` | projects of the caller |
//! |---|---|---|
//! | `Admin` | `Operator` | – |
//! | `GlobalReader` | `Reader` | – |
//! | `ProjectMember` | `Tenant` | the token's |
//! | `ProjectReader` | `TenantReader` | the token's |
//! | `Service` | none: only calls that are made for services | – |

pub mod access_policy;
pub mod access_rules;
pub mod admission;
mod cache;
mod error;
pub mod limits;
mod options;
pub mod policy;
pub mod roles;
pub mod token;
mod validator;

pub use access_policy::{AccessPolicy, ROLE_RULES};
pub use admission::{ApiRequest, TokenRules};
pub use error::{KeystoneError, Meaning};
pub use limits::{LimitOptions, LimitReader, ProjectLimits};
pub use options::{AuthTokenOptions, OPTIONS, SECTION};
pub use policy::{CachePolicy, Clock, ClockReading, SystemClock};
pub use roles::ApiRole;
pub use token::{Scope, ValidatedToken};
pub use validator::{Authentication, TokenValidator};
