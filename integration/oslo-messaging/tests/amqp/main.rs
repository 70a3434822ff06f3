//! Tests with a real RabbitMQ, and with Python's oslo.messaging on the other side.

// This is test code outside of `#[cfg(test)]`: it may panic, spawn and make up identifiers.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods
)]

mod calls;
mod deaths;
mod frames;
mod python;
mod raw;
mod restart;
mod rotation;
mod support;
mod tap;
mod tls;
