//! The API on an OpenStack: a real Keystone, Nova's databases on SQLite, Placement in memory, a
//! ledger. What both clouds have in common is tested on both.

mod kit;

pub(crate) use kit::OpenStack;

#[path = "../../../../integration/keystone/tests/suite/cloud.rs"]
#[allow(
    dead_code,
    reason = "shared with the tests of the Keystone crate, which need more of it"
)]
mod keystone;

mod budgets;
mod decisions;
mod lives;
mod market;
mod policy;
mod reclaims;
mod tenants;
mod tokens;
mod views;
mod watchers;
mod what_if;
