//! Tasks, blocking work, pauses, clocks, identifiers and logins of Ebbtide's shells.
//!
//! Only this crate calls what `clippy.toml` disallows: it reads clocks, spawns tasks and makes
//! random identifiers. The pure crates (model, protocol, engine, solver, region, preemption) do not
//! depend on it: they get the time as an argument and chance as a seed.

pub mod clock;
pub mod ids;
pub mod login;
pub mod task;
