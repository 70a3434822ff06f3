//! The harness: its program and the packages that it needs.

mod binary;
mod packages;
