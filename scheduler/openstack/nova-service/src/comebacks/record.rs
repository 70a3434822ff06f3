//! The record of a server that was evacuated and kept, as the ledger has it. Pure.

use crate::preemption::Victim;
use ebbtide_evacuation::{ComebackConfig, ResumeEntry, ResumeState, failed_attempt, saved};
use ebbtide_model::{Comeback, SavedState, Seconds, Timestamp};
use ebbtide_nova_cloud::RetainedServerState;
use serde::{Deserialize, Serialize};

/// How long a server may show no effect of its start: Nova writes that it works on it before it
/// answers. A scheduler that died before it asked is found so, too.
const SETTLE: Seconds = Seconds(60);
/// Where servers wait that left their host.
pub(super) const ANY_HOST: &str = "";

/// Whether a server waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub(crate) enum RetainedState {
    Waiting,
    /// A scheduler resumes it.
    Returning {
        since: Timestamp,
    },
    /// It runs again.
    Running {
        /// Since when, as the schedulers saw it.
        since: Timestamp,
    },
}

/// A server that was evacuated and kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RetainedServer {
    /// What it held, and what it was left.
    pub(crate) victim: Victim,
    /// When it may come back.
    pub(crate) comeback: Comeback,
    /// Whether it waits.
    pub(crate) state: RetainedState,
}

/// What follows from what Nova shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetainedChange {
    /// Nothing.
    Unchanged,
    /// It runs again: the scheduler has resumed it.
    Resumed,
    /// It runs again: its owner has started it.
    StartedByOwner,
    /// The attempt to resume it has failed. What was claimed for it is given back.
    Failed,
    /// Its record is not needed any more.
    Over,
}

impl RetainedServer {
    /// A server that has just been kept. `before`: its record of an earlier evacuation.
    pub(crate) fn new(
        victim: Victim,
        saved_state: SavedState,
        before: Option<Self>,
        now: Timestamp,
        config: &ComebackConfig,
    ) -> Self {
        let ran = before.as_ref().map_or(0, |before| match before.state {
            RetainedState::Running { since } => now.millis_since(since),
            RetainedState::Waiting | RetainedState::Returning { .. } => 0,
        });
        let before = before.map(|before| before.comeback);
        Self {
            victim,
            comeback: saved(before, saved_state, None, ran, now, config),
            state: RetainedState::Waiting,
        }
    }

    /// Its entry in the queue.
    pub(crate) fn entry(&self) -> ResumeEntry {
        ResumeEntry {
            place: match self.comeback.saved_state {
                SavedState::Stopped => self.victim.host.clone(),
                SavedState::Hibernated => ANY_HOST.to_owned(),
            },
            project: self.victim.had.project_id.clone(),
            state: match self.state {
                RetainedState::Waiting => ResumeState::Waiting,
                RetainedState::Returning { .. } => ResumeState::Returning,
                RetainedState::Running { .. } => ResumeState::Other,
            },
            since: self.comeback.since,
            not_before: self.comeback.not_before,
            resumed_at: self.comeback.resumed_at,
        }
    }

    /// A scheduler is about to resume it.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.state = RetainedState::Returning { since: now };
        self.comeback.resumed_at = Some(now);
    }

    /// It could not be resumed: it waits again, and longer.
    pub(crate) fn fail(&mut self, why: &str, now: Timestamp, config: &ComebackConfig) {
        self.state = RetainedState::Waiting;
        failed_attempt(&mut self.comeback, why, now, config);
    }

    /// Takes in what Nova shows. `None`: the server does not exist any more.
    pub(crate) fn observe(
        &mut self,
        seen: Option<RetainedServerState>,
        now: Timestamp,
        config: &ComebackConfig,
    ) -> RetainedChange {
        let Some(seen) = seen else {
            return RetainedChange::Over;
        };
        match (self.state, seen) {
            (RetainedState::Waiting, RetainedServerState::Runs) => {
                self.state = RetainedState::Running { since: now };
                RetainedChange::StartedByOwner
            }
            (RetainedState::Returning { .. }, RetainedServerState::Runs) => {
                self.state = RetainedState::Running { since: now };
                RetainedChange::Resumed
            }
            (RetainedState::Returning { since }, RetainedServerState::Saved)
                if since.plus(SETTLE) <= now =>
            {
                self.fail("Nova did not start it", now, config);
                RetainedChange::Failed
            }
            // Its owner has to look at it: Nova neither starts nor unshelves it.
            (
                RetainedState::Waiting | RetainedState::Returning { .. },
                RetainedServerState::Other,
            ) => RetainedChange::Over,
            (RetainedState::Running { since }, _) if since.plus(config.window_seconds) <= now => {
                RetainedChange::Over
            }
            _ => RetainedChange::Unchanged,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::preemption::{Holding, VictimState};
    use ebbtide_model::{EvacuationId, InterruptionBehaviour, ServerId};
    use serde_json::json;
    use uuid::Uuid;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn victim() -> Victim {
        Victim {
            server: ServerId(Uuid::from_u128(1)),
            name: String::new(),
            cost: 0.0,
            evacuation: EvacuationId(Uuid::from_u128(2)),
            host: "compute1".to_owned(),
            had: Holding {
                allocations: json!({}),
                mappings: None,
                project_id: "p1".to_owned(),
                user_id: "u1".to_owned(),
                generation: Some(1),
            },
            generation: 1,
            keeps: None,
            behaviour: InterruptionBehaviour::Stop,
            grace: Seconds(0),
            flavor: "m1.small".to_owned(),
            launched_at: None,
            released: false,
            state: VictimState::Claimed,
        }
    }

    fn kept(before: Option<RetainedServer>, now: i64) -> RetainedServer {
        let config = ComebackConfig::default();
        RetainedServer::new(victim(), SavedState::Stopped, before, at(now), &config)
    }

    fn see(server: &mut RetainedServer, seen: RetainedServerState, now: i64) -> RetainedChange {
        server.observe(Some(seen), at(now), &ComebackConfig::default())
    }

    #[test]
    fn one_that_comes_back_runs_for_a_window_before_its_record_ends() {
        let mut server = kept(None, 0);
        assert_eq!(
            see(&mut server, RetainedServerState::Saved, 10),
            RetainedChange::Unchanged
        );
        server.begin(at(30));
        assert_eq!(server.entry().state, ResumeState::Returning);
        assert_eq!(
            see(&mut server, RetainedServerState::Busy, 31),
            RetainedChange::Unchanged
        );
        assert_eq!(
            see(&mut server, RetainedServerState::Runs, 32),
            RetainedChange::Resumed
        );
        assert_eq!(
            see(&mut server, RetainedServerState::Runs, 3631),
            RetainedChange::Unchanged
        );
        assert_eq!(
            see(&mut server, RetainedServerState::Runs, 3632),
            RetainedChange::Over
        );
    }

    #[test]
    fn one_that_leaves_again_within_the_window_waits_twice_as_long() {
        let mut server = kept(None, 0);
        assert_eq!(server.comeback.not_before, at(30));
        server.begin(at(30));
        see(&mut server, RetainedServerState::Runs, 32);
        let again = kept(Some(server.clone()), 100);
        assert_eq!(again.comeback.not_before, at(160));
        assert_eq!(again.comeback.resumed_at, Some(at(30)));
        let later = kept(Some(server), 32 + 3600);
        assert_eq!(later.comeback.not_before, at(32 + 3600 + 30));
    }

    #[test]
    fn a_start_that_shows_no_effect_has_failed_after_a_minute() {
        let mut server = kept(None, 0);
        server.begin(at(30));
        assert_eq!(
            see(&mut server, RetainedServerState::Saved, 89),
            RetainedChange::Unchanged
        );
        assert_eq!(
            see(&mut server, RetainedServerState::Saved, 90),
            RetainedChange::Failed
        );
        assert_eq!(server.state, RetainedState::Waiting);
        assert_eq!(
            (server.comeback.tries, server.comeback.not_before),
            (1, at(120))
        );
    }

    #[test]
    fn its_owner_may_start_it_and_one_in_error_or_deleted_is_left_alone() {
        let mut server = kept(None, 0);
        assert_eq!(
            see(&mut server.clone(), RetainedServerState::Other, 1),
            RetainedChange::Over
        );
        let gone = server.observe(None, at(1), &ComebackConfig::default());
        assert_eq!(gone, RetainedChange::Over);
        assert_eq!(
            see(&mut server, RetainedServerState::Runs, 5),
            RetainedChange::StartedByOwner
        );
        // Its owner may stop it again.
        assert_eq!(
            see(&mut server, RetainedServerState::Saved, 60),
            RetainedChange::Unchanged
        );
        assert_eq!(server.entry().state, ResumeState::Other);
    }
}
