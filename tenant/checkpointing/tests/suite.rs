//! Checkpoint schedules: vectors, the archive of prices, properties, input.

// All of this is tests; helpers too may fail loudly.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod advice;
mod archive;
mod input;
mod markets;
mod properties;
mod vectors;
