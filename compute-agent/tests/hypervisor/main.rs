//! The libvirt driver on real virtual machines. Needs root, and libvirt (`bash
//! devstack/lib/packages.sh libvirt`).
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that finds something else has failed.

mod conformance;
mod kit;
mod life;
mod metadata;
mod moves;
mod sharing;
