//! The clients against a real HTTP server that answers what a test says.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod compute;
mod connection;
mod hostile;
mod identity;
mod keystone;
mod recorded;
mod server;
mod swap;
