//! The client of a region's gRPC API, for the commands and for `ebbtide-batch`.
//!
//! - `region` connects, `credentials` proves the caller's identity, `channel` sends it with every
//!   call, `endpoint` reads addresses.
//! - `pages` reads whole lists from a region that answers in pages, `events` follows its event
//!   stream.
//! - `error` has every way to fail, with the region's stable code and next step.

mod channel;
mod credentials;
pub mod endpoint;
mod error;
mod events;
pub mod pages;
mod region;
mod unverified;

pub use channel::RegionChannel;
pub use credentials::{Bearer, Credentials, IssuedToken, TokenIssuer};
pub use error::ClientError;
pub use events::Events;
pub use region::Region;
