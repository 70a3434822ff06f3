//! The story of `./devstack/up`.
//!
//! Loads one of the four tables of the preemptible-scheduler paper into a running region, sends the
//! normal request of that table, and tells what happens as it happens. The region is a real one:
//! everything goes through its API.

pub mod scenario;
pub mod story;
