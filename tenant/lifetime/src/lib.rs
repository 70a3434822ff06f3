//! How long preemptible instances live, and what follows from it for those who use them.
//!
//! The models of *Modeling the temporally constrained preemptions of transient cloud VMs*
//! (Kadupitiya, Jadhao, Sharma; HPDC 2020, "the paper" in this crate) and their classic rivals. All
//! times are hours, all rates per hour. No I/O, no clock; chance comes from a seed.

pub mod batch;
pub mod change;
pub mod description;
mod distribution;
pub mod distributions;
mod error;
pub mod fit;
mod integrate;
pub mod labelled_life;
pub mod life_tables;
mod observation;
pub mod plan;
pub mod table;

pub use distribution::Lifetime;
pub use error::LifetimeError;
pub use observation::{Observation, Observations};
