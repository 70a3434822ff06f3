//! Tests of the region: scenarios in a world with real agent cores. Random worlds are in
//! `simulator/evacuation`.

mod checks;
mod database;
mod host;
mod tenant_calls;
mod world;

mod admin;
mod agents;
mod backup;
mod budgets;
mod claims;
mod clocks;
mod comebacks;
mod examine;
mod hosts;
mod lifetimes;
mod main_scenario;
mod market;
mod overlaps;
mod past_lives;
mod reclaim;
mod removal;
mod reports;
mod restarts;
mod servers;
mod shared_storage;
mod spares;
mod starts;
mod stubborn;
mod thrashing;
