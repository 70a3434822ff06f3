//! What the scheduler tells the world: payloads of the notifications
//! `scheduler.select_destinations.start` and `.end`, in the old form and as versioned objects
//! (`nova/scheduler/manager.py`, `nova/notifications/objects/request_spec.py`).

mod legacy;
mod source;
mod versioned;

pub use legacy::{legacy_payload, legacy_payload_after_versioned};
pub use versioned::versioned_payload;

/// Event type of the notification before a decision. None is sent where Placement has no
/// candidates.
pub const START: &str = "scheduler.select_destinations.start";
/// Event type of the notification after a decision; none is sent where no host was found.
pub const END: &str = "scheduler.select_destinations.end";
