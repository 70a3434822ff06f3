//! The metadata that a guest can read about itself, in the forms that tools already poll: EC2's,
//! GCE's and Azure's, and Ebbtide's own.
//!
//! - [`answer()`] is pure: from one request, the data about the guest and the time it makes the
//!   answer.
//! - [`serve`] is the shell: one listener for each guest, so that a guest reaches only its own
//!   metadata.
//!
//! All input comes from guests and is untrusted: sizes and numbers of connections are limited for
//! each guest.

mod answer;
mod azure;
mod ebbtide;
mod ec2;
mod gce;
mod request;
pub mod serve;
mod tokens;

pub use answer::{GuestReply, LongPollReply, MetadataAnswer, answer};
pub use request::MetadataRequest;
pub use tokens::Tokens;

use ebbtide_model::{EvacuationId, InterruptionBehaviour, Seconds, ServerId, Timestamp};

/// The data about one guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub server_id: ServerId,
    pub name: String,
    /// The name of its flavor.
    pub flavor: String,
    /// True if it may be evacuated.
    pub preemptible: bool,
    /// Its pending end; `None` if it may stay.
    pub notice: Option<PendingNotice>,
}

/// The pending end of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingNotice {
    pub evacuation_id: EvacuationId,
    /// How it will end.
    pub behaviour: InterruptionBehaviour,
    /// Length of its grace period.
    pub grace: Seconds,
    /// The earliest time of its end.
    pub not_before: Timestamp,
    /// When it got its notice.
    pub at: Timestamp,
    /// The guest has released the rest of its time.
    pub released: bool,
}

impl PendingNotice {
    /// True if the guest stops running: a live migration is no interruption.
    fn interrupts(&self) -> bool {
        self.behaviour != InterruptionBehaviour::LiveMigrate
    }
}

#[cfg(test)]
mod tests;
