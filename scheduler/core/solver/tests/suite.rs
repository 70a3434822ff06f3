//! The solver against brute force, a MIP solver and its own promises.

// All of this is tests; helpers too may fail loudly.
#![allow(clippy::unwrap_used)]

mod alternatives;
mod brute_force;
mod common;
mod hard;
mod joint;
mod joint_mip;
mod judged;
mod malformed;
mod mip;
mod properties;
mod set_cost;
