//! The weighers that come with the scheduler.

// All of this is tests; helpers too may fail loudly.
#![allow(clippy::unwrap_used)]

mod contract;
mod interruption_risk;
mod nova;
mod opie;
mod support;
