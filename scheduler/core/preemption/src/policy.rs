//! Time limits.

use ebbtide_evacuation::{ComebackConfig, EvacuationPolicy};
use ebbtide_model::Seconds;

/// Time limits of a preemption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreemptionPolicy {
    /// Limits and attempts of each victim.
    pub evacuation: EvacuationPolicy,
    /// How long the capacity may take to become free, counted from the plan, before the preemption
    /// is withdrawn. Applies only while the caller waits for it.
    pub room_timeout: Seconds,
    /// How often the caller is asked whether it still waits while victims leave.
    pub caller_every: Seconds,
    /// Maximum pause before a refused return of allocations is retried. The first pause is a tenth
    /// of a second, and each further one is twice as long. Until the return succeeds, a victim may
    /// run in capacity that Placement shows as free.
    pub give_back_pause: Seconds,
    /// When victims that were kept come back.
    pub comeback: ComebackConfig,
}

impl Default for PreemptionPolicy {
    fn default() -> Self {
        Self {
            evacuation: EvacuationPolicy::openstack(),
            room_timeout: Seconds(300),
            caller_every: Seconds(5),
            give_back_pause: Seconds(5),
            comeback: ComebackConfig::default(),
        }
    }
}

/// The first pause after a refused return of allocations. A conflict usually comes from a
/// concurrent write, which is over by then.
const FIRST_GIVE_BACK_MILLIS: i64 = 100;

impl PreemptionPolicy {
    /// The pause after so many refusals of a return of allocations.
    pub(crate) fn give_back_rest_millis(&self, refusals: u32) -> i64 {
        let doubled = FIRST_GIVE_BACK_MILLIS.saturating_mul(1 << refusals.min(16));
        doubled.min(self.give_back_pause.as_millis())
    }
}
