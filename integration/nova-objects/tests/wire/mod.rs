//! What a real Nova sent, against what we read and write.

#![allow(
    clippy::unwrap_used,
    reason = "clippy sees helpers beside the tests as no tests"
)]

mod captures;
mod kit;
mod nova;
mod odd;
