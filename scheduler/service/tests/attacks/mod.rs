//! Attacks of outsiders and greedy tenants on a real scheduler, and their effect on others.

mod greedy;
mod idle;
