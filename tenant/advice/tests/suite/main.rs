//! Advice from lives of known distributions: right, calibrated, bounded, and silent about others.

// All of this is tests; helpers too may fail loudly.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod answers;
mod calibration;
mod chances;
mod privacy;
mod world;
