//! Tests of the pure protocol: single stories, and properties over random worlds.

mod cases;
mod fences;
mod lateness;
mod properties;
mod server_cases;
mod world;
