//! New projects and examples: they build, pass their own tests and the conformance kit, and do what
//! they say; what is wrong is found.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that cannot go on fails.

mod abi;
mod examples;
mod installed;
mod languages;
mod projects;
mod services;
mod support;
