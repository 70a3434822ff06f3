//! How Nova lays a guest's NUMA cells onto those of a host (`nova/virt/hardware.py`).
//!
//! [`fit`] tries the arrangements of host cells in Nova's order and takes the first that holds:
//! page sizes, memory, CPUs with their thread siblings, the emulator's own CPU, PCI devices near
//! by, networks near by. [`usage_with`] says what the host's cells look like afterwards, and
//! [`usage_without`] what they look like once a guest has left.
//!
//! Nova changes the guest's topology while it tries: a symbolic page size becomes the size of the
//! first cell that was looked at, a guest cell takes the number of the host cell that it was last
//! fitted on, and what is known not to fit is remembered under these changing numbers. So whether a
//! later arrangement, a later allocation candidate or a later instance of the request fits depends
//! on what was tried before. We change the same things at the same moments.

mod cell;
mod consume;
mod fit;
mod fit_cell;
mod network;
mod order;
mod pack;
mod pages;
mod permutations;
mod usage;

pub use consume::consume;
pub use fit::{NumaFitLimits, PciNeeds, fit};
pub(crate) use pages::{ANY_PAGES, LARGE_PAGES, SMALL_PAGES};
pub use usage::{usage_with, usage_without};
