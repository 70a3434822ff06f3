//! The books: what a region knows, each with the indexes that follow from its records.
//!
//! A book changes only through its methods, which keep the indexes. `audit` derives each index anew
//! from the records and compares; the tests and the simulator do this after every input.

mod agent_sessions;
mod claims;
mod deleted_servers;
mod evacuations;
mod host_entry;
mod hosts;
mod lifetimes;
mod pending_calls;
mod resume_queue;
mod servers;

pub(crate) use evacuations::EvacuationBook;
pub(crate) use host_entry::HostEntry;
pub(crate) use hosts::HostBook;
pub(crate) use servers::ServerBook;

#[cfg(test)]
mod tests;
