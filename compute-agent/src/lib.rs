//! The compute agent: notices in, guests warned, instances evacuated, reports out
pub mod driver;
pub mod protocol;
