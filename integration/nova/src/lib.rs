//! Nova's scheduler, reimplemented to decide exactly as Nova 34. For a request that needs no
//! preemption the answer is Nova's own, to the last bit of every weight, with Nova's class of error
//! where Nova fails the request.
//!
//! The crate is pure: no clock, no I/O, and no randomness except for a seed. Where Nova's choice is
//! random (the order of a hash set, `random.choice`), this crate decides by the order of the input
//! or by the seed. A comment marks each such choice.

pub mod boot;
mod constraints;
pub mod fault;
pub mod fields;
pub mod filtering;
pub mod filters;
pub mod hosts;
pub mod image;
pub mod model;
pub mod numa;
pub mod options;
pub mod pci;
pub mod placement;
mod plugins;
pub mod python;
pub mod release;
pub mod schedule;
mod startup;
pub mod states;
pub mod table;
pub mod weighing;
