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

mod comparing;
mod deciding;
mod explaining;
mod filters;
mod following;
mod groups;
mod kit;
mod lifetimes;
mod needs;
mod needs_alike;
mod needs_odd;
mod needs_oracle;
mod offering;
mod one_pass;
mod planning;
mod planning_oracle;
mod real_placement;
mod reclaim;
mod releases;
mod running;
mod tree_examples;
mod trees;
mod viewing;

/// Requests are decided by many tasks over one cloud, and go on in others.
#[test]
fn a_cloud_is_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<ebbtide_nova_cloud::Cloud>();
    shared::<ebbtide_nova_cloud::CandidateHosts>();
    sent::<ebbtide_nova_cloud::Scheduling>();
}
