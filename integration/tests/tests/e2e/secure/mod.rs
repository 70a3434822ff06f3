//! Who may do what, tried on real processes.

mod agents;
mod broker;
mod certificates;
mod clones;
mod floods;
mod kit;
mod limits;
mod tenants;
mod tls;
mod tokens;
