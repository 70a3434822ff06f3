//! Detects two agents of one host, and agents of hosts that Nova does not have. Nova knows its
//! hosts itself, so heartbeats are read only for this. Each run of an agent has its own session. A
//! session that returns after another one is no restart but a second agent, for example after an
//! image was cloned.

use ebbtide_model::Timestamp;
use ebbtide_model::message::Heartbeat;
use std::collections::HashMap;
use uuid::Uuid;

/// Returns within this time belong together: agents send heartbeats every ten seconds.
/// Milliseconds.
const CALM: i64 = 120_000;
/// A single return may be a late heartbeat.
const RETURNS: u32 = 2;
/// Number of former sessions that are remembered for each host.
const FORMER: usize = 8;
/// Maximum number of hosts. No cloud has more, and names can be invented.
const MOST_HOSTS: usize = 100_000;

/// The agents of all hosts.
#[derive(Debug, Default)]
pub(super) struct AgentSessions {
    heard: HashMap<String, HostSession>,
    /// The last session that reported for a host that Nova does not have.
    refused: HashMap<String, Uuid>,
}

#[derive(Debug)]
struct HostSession {
    session: Uuid,
    former: Vec<Uuid>,
    returns: u32,
    returned_at: Timestamp,
    told_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeartbeatResult {
    /// One agent.
    One,
    /// Two agents of one host; already logged.
    Two,
    /// Two agents of one host; to be logged now.
    TwoNow,
}

impl AgentSessions {
    /// Notes a heartbeat of a host that Nova does not have. True for the first one of a session.
    pub(super) fn refuse(&mut self, beat: &Heartbeat) -> bool {
        self.heard.remove(&beat.host);
        if self.refused.len() >= MOST_HOSTS && !self.refused.contains_key(&beat.host) {
            return false;
        }
        self.refused.insert(beat.host.clone(), beat.session) != Some(beat.session)
    }

    pub(super) fn is_refused(&self, host: &str) -> bool {
        self.refused.contains_key(host)
    }

    /// Forgets all that was heard of a host.
    pub(super) fn forget(&mut self, host: &str) {
        self.heard.remove(host);
        self.refused.remove(host);
    }

    pub(super) fn hear(&mut self, beat: &Heartbeat, now: Timestamp) -> HeartbeatResult {
        let Some(voice) = self.heard.get_mut(&beat.host) else {
            if self.heard.len() >= MOST_HOSTS {
                return HeartbeatResult::One;
            }
            let voice = HostSession {
                session: beat.session,
                former: Vec::new(),
                returns: 0,
                returned_at: now,
                told_at: None,
            };
            self.heard.insert(beat.host.clone(), voice);
            return HeartbeatResult::One;
        };
        if voice.session == beat.session {
            return HeartbeatResult::One;
        }
        let returns = voice.former.contains(&beat.session);
        voice.former.retain(|known| *known != beat.session);
        voice.former.push(voice.session);
        if voice.former.len() > FORMER {
            voice.former.remove(0);
        }
        voice.session = beat.session;
        if !returns {
            return HeartbeatResult::One;
        }
        if now.millis_since(voice.returned_at) > CALM {
            voice.returns = 0;
        }
        (voice.returns, voice.returned_at) = (voice.returns + 1, now);
        if voice.returns < RETURNS {
            return HeartbeatResult::One;
        }
        if voice.told_at.is_some_and(|at| now.millis_since(at) <= CALM) {
            return HeartbeatResult::Two;
        }
        voice.told_at = Some(now);
        HeartbeatResult::TwoNow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn hear(voices: &mut AgentSessions, session: u128, seconds: i64) -> HeartbeatResult {
        let beat = Heartbeat {
            host: "compute-1".to_owned(),
            session: Uuid::from_u128(session),
            sequence: 1,
            inventory: BTreeMap::new(),
            traits: BTreeSet::new(),
            servers: Vec::new(),
            storage: None,
        };
        voices.hear(&beat, Timestamp::from_millis(seconds * 1000))
    }

    #[test]
    fn two_agents_with_one_name_are_told_once_in_a_while() {
        let mut voices = AgentSessions::default();
        let heard: Vec<HeartbeatResult> = (0..8)
            .map(|n| hear(&mut voices, u128::from(n % 2 == 0), n * 5))
            .collect();
        assert_eq!(heard[..3], [HeartbeatResult::One; 3]);
        assert_eq!(heard[3], HeartbeatResult::TwoNow);
        assert_eq!(heard[4..], [HeartbeatResult::Two; 4]);
        assert_eq!(
            hear(&mut voices, 1, 200),
            HeartbeatResult::One,
            "calm since then"
        );
        assert_eq!(hear(&mut voices, 0, 205), HeartbeatResult::TwoNow);
    }

    #[test]
    fn an_agent_that_starts_again_and_one_late_word_are_no_second_agent() {
        let mut voices = AgentSessions::default();
        for run in 0..50 {
            assert_eq!(hear(&mut voices, run, 10), HeartbeatResult::One);
        }
        assert_eq!(
            hear(&mut voices, 48, 11),
            HeartbeatResult::One,
            "a late word"
        );
        assert_eq!(hear(&mut voices, 50, 12), HeartbeatResult::One);
    }
}
