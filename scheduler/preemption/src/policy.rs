//! How long what may take.

use ebbtide_model::Seconds;

/// Limits of a preemption. The defaults are those of the region (`docs/evacuation.md`), so that agents see the same from both modes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// From a notice that the broker has to the agent's answer.
    pub notice_timeout: Seconds,
    /// How often a notice is sent before its agent counts as silent.
    pub notice_attempts: u32,
    /// From the end of the grace period to the report that the victim is gone.
    pub act_timeout: Seconds,
    /// How long the room may take to become free, from the plan on, before it is called off. Only while the caller waits for that.
    pub room_timeout: Seconds,
    /// How often the caller is asked whether it still waits while victims leave.
    pub caller_every: Seconds,
    /// The longest rest of a refused return of allocations before it is tried again. The first one
    /// is a tenth of a second, and each further one twice as long: until it is done a victim may
    /// run in room that Placement shows as free.
    pub give_back_pause: Seconds,
    /// After an early answer: how long a victim rests whose evacuation has failed, before it is told again.
    pub failed_rest: Seconds,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            notice_timeout: Seconds(10),
            notice_attempts: 3,
            act_timeout: Seconds(60),
            room_timeout: Seconds(300),
            caller_every: Seconds(5),
            give_back_pause: Seconds(5),
            failed_rest: Seconds(60),
        }
    }
}

/// The first rest of a refused return of allocations. A conflict mostly comes of a write that met
/// ours and is over by then.
const FIRST_GIVE_BACK_MILLIS: i64 = 100;

impl Policy {
    /// How long a return of allocations rests that was refused so often before.
    pub(crate) fn give_back_rest_millis(&self, refusals: u32) -> i64 {
        let doubled = FIRST_GIVE_BACK_MILLIS.saturating_mul(1 << refusals.min(16));
        doubled.min(self.give_back_pause.as_millis())
    }

    /// How long an agent has in all to begin: after that it must not.
    #[must_use]
    pub fn patience(&self) -> Seconds {
        Seconds(self.notice_timeout.0.saturating_mul(self.notice_attempts))
    }
}
