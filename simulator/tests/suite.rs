//! The simulator: offline optimum and lifetimes of virtual machines.

mod offline;
mod vm_lifetimes;
