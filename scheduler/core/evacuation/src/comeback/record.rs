//! How the record of a server that comes back changes.

use super::ComebackConfig;
use ebbtide_model::{Comeback, SavedState, Timestamp};

/// The record of a server that was evacuated and kept. `before`: its record of an earlier
/// evacuation; `ran_millis`: how long it has run since then.
#[must_use]
pub fn saved(
    before: Option<Comeback>,
    saved_state: SavedState,
    storage: Option<String>,
    ran_millis: i64,
    now: Timestamp,
    config: &ComebackConfig,
) -> Comeback {
    let preempted = match &before {
        Some(before) if ran_millis < config.window_seconds.as_millis() => {
            before.preempted.saturating_add(1)
        }
        _ => 1,
    };
    Comeback {
        saved_state,
        since: now,
        not_before: now.plus(config.waiting_time(preempted)),
        preempted,
        tries: 0,
        reason: None,
        resumed_at: before.and_then(|before| before.resumed_at),
        storage,
    }
}

/// Notes an attempt that failed: the server waits again, and longer.
pub fn failed_attempt(record: &mut Comeback, why: &str, now: Timestamp, config: &ComebackConfig) {
    record.tries = record.tries.saturating_add(1);
    record.not_before = now.plus(config.waiting_time(record.tries));
    record.reason = Some(why.to_owned());
}
