//! The world of OpenStack mode: Placement, a ledger that several schedulers share, callers who wait for an answer, agents, and the record of
//! a preemption (`ebbtide-preemption`) that whoever owns its row drives.

mod act;
mod adopt;
mod callers;
mod check;
mod choose;
mod drive;
mod faults;
mod inbox;
mod ledger;
mod placement;
mod plan;
mod running;
mod world;

pub(crate) use world::NovaWorld;
