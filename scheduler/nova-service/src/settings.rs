//! What of the operator's wishes the Nova service itself has to know, whatever file they came from.

use crate::preemption::{Policy, ReplyWhen};
use std::time::Duration;

/// How requests are dealt with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whether normal requests that find no room may drive preemptible instances out.
    pub preemption: bool,
    /// When the caller of such a request gets its answer.
    pub reply_when: ReplyWhen,
    /// How often a plan is made anew because the cloud has changed meanwhile.
    pub plan_rounds: u32,
    /// How long a Placement that is away is waited for, before a request is answered as Nova answers it then.
    pub placement_patience: Duration,
    /// How often providers are looked through for changes.
    pub placement_list_every: Duration,
    /// Limits of evacuations.
    pub evacuation: Policy,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            preemption: true,
            reply_when: ReplyWhen::RoomFree,
            plan_rounds: 8,
            placement_patience: Duration::from_secs(30),
            placement_list_every: Duration::from_secs(10),
            evacuation: Policy::default(),
        }
    }
}
