//! The operator's settings for the Nova service itself, whatever file they come from.

mod headroom;

pub(crate) use self::headroom::{HeadroomOptions, HeadroomRule};

use crate::preemption::{PreemptionPolicy, ReplyWhen};
use ebbtide_model::Seconds;
use std::time::Duration;

/// How long lives are kept: as a standalone region does by default.
pub const LIVES_KEPT: Seconds = Seconds(90 * 24 * 3600);

/// Settings for processing requests.
#[derive(Debug, Clone)]
pub struct SelectSettings {
    /// Whether normal requests that find no capacity may evict preemptible instances.
    pub preemption: bool,
    /// When the caller of such a request gets its answer.
    pub reply_when: ReplyWhen,
    /// Maximum number of times a plan is made again because the cloud has changed meanwhile.
    pub plan_rounds: u32,
    /// How long a request waits for an unavailable Placement, before the scheduler answers as Nova
    /// does then.
    pub placement_patience: Duration,
    /// Interval of checking providers for changes.
    pub placement_list_every: Duration,
    /// Limits of evacuations.
    pub evacuation: PreemptionPolicy,
}

impl Default for SelectSettings {
    fn default() -> Self {
        Self {
            preemption: true,
            reply_when: ReplyWhen::RoomFree,
            plan_rounds: 8,
            placement_patience: Duration::from_secs(30),
            placement_list_every: Duration::from_secs(10),
            evacuation: PreemptionPolicy::default(),
        }
    }
}
