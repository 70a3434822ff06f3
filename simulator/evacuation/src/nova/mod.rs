//! The world of OpenStack mode: Placement, a ledger that several schedulers share, callers that
//! wait for an answer, and agents. The owner of a row in the ledger drives its record of a
//! preemption (`ebbtide-preemption`).

mod actions;
mod adopt;
mod callers;
mod check;
mod choose;
mod drive;
mod faults;
mod inbox;
mod ledger;
mod lifetimes;
mod placement;
mod plan;
mod reclaims;
mod running;
mod world;

pub(crate) use world::NovaWorld;
