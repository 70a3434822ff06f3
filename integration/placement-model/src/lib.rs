//! Placement in memory: the part of its API that the scheduler uses, as one deterministic state
//! machine.
//!
//! [`Model`] answers requests as Placement 8.0 does: generations of providers and consumers,
//! capacity, all-or-nothing writes, the codes and words of its conflicts. `tests/conformance.rs`
//! holds it against answers that were recorded from a real Placement and against a real one that
//! the test starts.
//!
//! [`InProcess`] puts a model under the client of `ebbtide-openstack`, so that the scheduler's own
//! code runs unchanged over it, with answers that get lost, requests that are not heard, and other
//! writers in between.
//!
//! [`PlacementProcess`] is the real Placement, for tests that compare with it.
//!
//! Not modelled: nested providers, shared providers, several request groups, reshaping, policies.
//! What is not modelled is answered with 501.

mod allocations;
mod candidates;
mod model;
mod process;
mod providers;
mod transport;

pub use allocations::Flight;
pub use model::{Inventory, Model, ModelConsumer, ModelRequest, ModelResponse, Provider, Version};
pub use process::PlacementProcess;
pub use transport::{InProcess, RecordedRequest, ScriptedStep, TransportFault};
