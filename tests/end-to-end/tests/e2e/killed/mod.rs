//! Really killed: processes end at named places of a preemption, servers at named states of it,
//! networks are cut in one direction, disks are full, clocks are set, processes stand still.
//! Whatever happens, what was promised is kept, and the audit finds nothing in the end.

mod clocks;
mod disks;
mod fail_points;
mod kit;
mod networks;
mod quorum;
mod servers;
mod silence;
