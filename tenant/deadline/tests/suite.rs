//! Deadlines: the promise, the optimum, the paper's rules, the recorded traces.

// All of this is tests; helpers too may fail loudly.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod optimum;
mod policies;
mod promise;
mod read;
mod support;
mod traces;
