//! Nova's recorded decisions, decided again.

mod conform;
mod filters;
mod numa_pci;
