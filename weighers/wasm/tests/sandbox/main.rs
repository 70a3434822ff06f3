//! What plugins do, and what comes of it. Whatever it is, the caller lives and hears what happened.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that cannot go on fails.

mod contract;
mod costs;
mod files;
mod filters;
mod kit;
mod violations;
