//! `ebbtide run`: cases, server metadata, simulated worlds.

mod cases;
mod metadata;
mod world;
