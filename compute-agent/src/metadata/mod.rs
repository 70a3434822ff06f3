//! What a guest can read about itself, in the forms that tools already poll: EC2's, GCE's and Azure's, and our own.
//!
//! - [`answer()`] is pure: one request, what is known of the guest, the time; and what is to be answered.
//! - [`serve`] is the shell: one listener for each guest, so that a guest reaches its own and nobody else's.
//!
//! Everything that comes in is a guest's and not to be trusted: sizes and numbers of connections are limited for each guest.

mod answer;
mod azure;
mod ec2;
mod gce;
mod own;
mod request;
pub mod serve;
mod tokens;

pub use answer::{Answer, Held, Reply, answer};
pub use request::Request;
pub use tokens::Tokens;

use ebbtide_model::{EvacuationId, InterruptionBehaviour, Seconds, ServerId, Timestamp};

/// What is known of one guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The server.
    pub server_id: ServerId,
    /// Its name.
    pub name: String,
    /// The name of its flavor.
    pub flavor: String,
    /// True if it may be evacuated.
    pub preemptible: bool,
    /// What will happen to it; `None` if it may stay.
    pub notice: Option<Notice>,
}

/// What will happen to a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The evacuation.
    pub evacuation_id: EvacuationId,
    /// How it will end.
    pub behaviour: InterruptionBehaviour,
    /// How long it had when it was told.
    pub grace: Seconds,
    /// The earliest moment of its end.
    pub not_before: Timestamp,
    /// When it was told.
    pub at: Timestamp,
    /// It has said that it needs no more time.
    pub released: bool,
}

impl Notice {
    /// True if the guest will not run any more here or anywhere else: a live migration is no interruption.
    fn interrupts(&self) -> bool {
        self.behaviour != InterruptionBehaviour::LiveMigrate
    }
}

#[cfg(test)]
mod tests;
