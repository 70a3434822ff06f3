//! Lifetime models: distributions, fits, plans, changes, their text form.

// All of this is tests; helpers too may fail loudly.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod batch;
mod changes;
mod data;
mod distributions;
mod fits;
mod plans;
mod text;
