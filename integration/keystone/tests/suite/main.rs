//! The validator and the reader of limits, against a server that answers what a test says, against
//! recorded answers and against a real Keystone.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod answers;
mod cache;
mod cloud;
mod fake;
mod limits;
mod outage;
mod rotation;
mod tokens;
