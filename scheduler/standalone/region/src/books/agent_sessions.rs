//! The agent sessions of a host, to detect two agents with one host name.

use ebbtide_model::Timestamp;
use uuid::Uuid;

/// The agent sessions of a host. Each run of an agent has a session of its own. A restart brings a
/// new session, so a session that returns after another one was heard is a second agent.
#[derive(Debug, Clone, Default)]
pub(super) struct AgentSessions {
    /// Replaced sessions, the newest last.
    former: Vec<Uuid>,
    /// How many times a replaced session returned, and when it last did.
    returns: u32,
    returned_at: Timestamp,
    pub(super) contested_until: Timestamp,
    /// When the session before the present one was last heard.
    former_seen: Option<Timestamp>,
}

/// Limit of remembered sessions. More than two machines with one name need no better detection than
/// two.
const FORMER_SESSIONS: usize = 8;
/// Returns that prove two agents. A single one may be a late message of an ended session that a
/// scheduler has received after a restart.
const RETURNS: u32 = 2;

impl AgentSessions {
    /// Notes a heartbeat; `former` is the session that was heard before, and when. True if this
    /// heartbeat proves that two agents report.
    pub(super) fn record(
        &mut self,
        session: Uuid,
        (former, seen): (Option<Uuid>, Option<Timestamp>),
        now: Timestamp,
        down_after: i64,
    ) -> bool {
        let Some(former) = former.filter(|former| *former != session) else {
            return false;
        };
        // If both agents live, both are heard within this time.
        let calm = down_after.saturating_mul(2);
        if now.millis_since(self.returned_at) > calm {
            self.returns = 0;
        }
        let returns = self.former.contains(&session);
        self.former
            .retain(|known| *known != former && *known != session);
        self.former.push(former);
        if self.former.len() > FORMER_SESSIONS {
            self.former.remove(0);
        }
        self.former_seen = seen;
        if !returns {
            return false;
        }
        (self.returns, self.returned_at) = (self.returns + 1, now);
        if self.returns < RETURNS {
            return false;
        }
        let known = now < self.contested_until;
        self.contested_until = Timestamp::from_millis(now.as_millis().saturating_add(calm));
        !known
    }

    /// True while the session before the present one may still be alive, that is until it is silent
    /// for much longer than the heartbeat interval. Servers that the present agent does not have
    /// may then run where the former one is.
    pub(super) fn former_may_live(&self, now: Timestamp, down_after: i64) -> bool {
        self.former_seen
            .is_some_and(|seen| now.millis_since(seen) < down_after / 2)
    }
}
