//! Who may do what, tried on real processes.

pub(crate) mod agents;
mod broker;
pub(crate) mod certificates;
mod clones;
pub(crate) mod floods;
mod init;
mod kit;
mod limits;
mod removed;
mod tenants;
mod tls;
mod tokens;
