//! The world of the standalone region: schedulers of which one leads, a database, a broker, hosts
//! with their agents, tenants.

mod active_schedulers;
mod checks;
mod comebacks;
mod database;
mod decisions;
mod ending;
mod event_text;
mod faults;
mod flow;
mod market;
mod scheduler;
mod service;
mod tenants;
mod world;

pub use market::MARKETS_FROM;
pub use tenants::LIFETIMES_FROM;
pub(crate) use world::{RegionWorld, broken_engine, engine};
