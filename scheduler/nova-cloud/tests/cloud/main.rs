//! The cloud in memory against Placement's and Nova's rules, and plans against brute force.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test program: what is missing shall fail loudly"
)]
#![allow(
    unreachable_pub,
    reason = "the kit is shared with benchmarks and examples"
)]

mod deciding;
mod following;
mod kit;
mod offering;
mod planning;
mod planning_oracle;
