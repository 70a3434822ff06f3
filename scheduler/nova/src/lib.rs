//! Nova's scheduler, decided exactly as Nova 34 decides: for a request that needs no preemption the answer is Nova's own, to the
//! last bit of every weight, with Nova's class of error where Nova fails the request.
//!
//! The crate is pure: it knows no clock, no randomness but a seed, no I/O. What Nova leaves to chance (the order of a hash
//! set, `random.choice`) is decided here by the order of the input or the seed; each such choice is told where it is made.

pub mod answer;
pub mod bench_input;
pub mod case;
pub mod conform;
pub mod fault;
pub mod filtering;
pub mod filters;
pub mod hosts;
pub mod image;
pub mod model;
pub mod numa;
pub mod options;
pub mod pci;
pub mod placement;
pub mod python;
pub mod release;
pub mod schedule;
pub mod states;
pub mod table;
pub mod weighing;
