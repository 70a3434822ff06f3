//! The cost modules that come with the scheduler.

mod modules;
mod remaining_lifetime;
