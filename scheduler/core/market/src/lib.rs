//! The market for preemptible capacity: a price for each flavor from supply and demand
//! ([`PriceRule`]), and what each instance-hour is charged ([`billing`]).
//!
//! Integers only, so that the same events give the same prices and bills on every machine. No
//! clock, no I/O.
//!
//! The billing rule is that of the spot instances which Khatua and Mukherjee describe
//! (*Application-centric resource provisioning for Amazon EC2 spot instances*, 2012, section II):
//! the price of an hour is fixed when the hour begins, the last partial hour is free if the
//! provider ends the instance, and charged in full if its user does.

pub mod billing;
mod line;
mod points;
mod rule;

pub use line::PriceLine;
pub use points::{FlavorPrice, SupplyDemand, next_points};
pub use rule::{MarketConfig, MarketError, PriceRule};
