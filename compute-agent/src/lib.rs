//! The compute agent: notices in, guests warned, instances evacuated, reports out
pub mod clock;
pub mod driver;
pub mod error;
pub mod journal;
pub mod protocol;
mod task;
#[cfg(test)]
mod testing;
