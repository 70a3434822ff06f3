//! Tests of the region: scenarios in a world with real agent cores. Random worlds are in
//! `simulator/evacuation`.

mod checks;
mod database;
mod host;
mod words;
mod world;

mod admin;
mod agents;
mod budgets;
mod claims;
mod clocks;
mod comebacks;
mod elsewhere;
mod examine;
mod hosts;
mod lifetimes;
mod lives;
mod market;
mod overlaps;
mod reports;
mod restarts;
mod servers;
mod spares;
mod starts;
mod story;
mod stubborn;
mod thrashing;
