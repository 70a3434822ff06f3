//! From rows to what the scheduler works with.

pub(crate) mod compute;
pub(crate) mod instance;
pub(crate) mod numa;
pub(crate) mod pci;
mod primitive;
pub(crate) mod service;
