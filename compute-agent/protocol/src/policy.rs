//! Numbers of tries and time limits of the agent, with the reason for each default.

use ebbtide_model::InterruptionBehaviour;
use serde::{Deserialize, Serialize};

/// Numbers of tries and time limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentPolicy {
    /// Maximum number of tries to give or withdraw a guest's notice. 1 to 100.
    pub notice_tries: u32,
    /// Maximum number of tries of an interruption. 1 to 100.
    pub act_tries: u32,
    /// Maximum number of looks whether the capacity is free: a hypervisor may need a moment to
    /// release memory. 1 to 1000.
    pub verify_tries: u32,
    /// Maximum number of tries of a start. 1 to 100.
    pub start_tries: u32,
    /// Wait before the second try, in milliseconds; doubles with each further one. 1 to 60000.
    pub backoff_first_ms: u32,
    /// The wait never exceeds this, in milliseconds. At least `backoff_first_ms`, at most 600000.
    pub backoff_cap_ms: u32,
    /// If a victim can neither be stopped nor hibernated: true terminates it all the same (its
    /// memory, and with it the tenant's work, is lost), false lets it live and reports the failure.
    pub escalate_to_terminate: bool,
    /// Maximum number of tries of the operator's fence on a victim that could not be terminated, or
    /// whose capacity does not become free. 0: there is no fence. The shell sets this, because it
    /// knows whether there is one.
    #[serde(skip)]
    pub fence_tries: u32,
    /// How a victim ends that should move to another host but cannot: `terminate`, `stop` or
    /// `hibernate`.
    pub live_migrate_fallback: InterruptionBehaviour,
    /// An interruption that begins later than this after the end of the grace period is late: the
    /// scheduler may have withdrawn it. Milliseconds, 100 to 60000.
    pub late_ms: u32,
    /// Before a late interruption the agent reports to the scheduler once more and waits this long
    /// for an objection. Milliseconds, 0 to 60000.
    pub objection_ms: u32,
    /// How many finished evacuations and removed servers the agent remembers. A late or repeated
    /// message about one of them gets an answer and has no other effect. 16 to 1000000.
    pub remember: u32,
}

impl Default for AgentPolicy {
    fn default() -> Self {
        Self {
            // Three tries with waits of 1 s and 2 s: enough for a busy hypervisor, and the
            // preemptor does not wait long.
            notice_tries: 3,
            act_tries: 3,
            start_tries: 3,
            // Ten looks over about two minutes: releasing the pages of a large guest takes time.
            verify_tries: 10,
            backoff_first_ms: 1_000,
            backoff_cap_ms: 30_000,
            // The tenant chose hibernation; losing the memory instead is the operator's decision.
            escalate_to_terminate: false,
            fence_tries: 0,
            // The only behaviour that frees all of the capacity and always works.
            live_migrate_fallback: InterruptionBehaviour::Terminate,
            // Longer than a busy host needs to resume, and well within the minute for which
            // schedulers wait for the report of the end.
            late_ms: 2_000,
            // A spare waits in the agent's queue; reading it takes milliseconds, connecting to a
            // broker a second or two.
            objection_ms: 5_000,
            // A few hundred bytes each. The broker repeats messages within minutes; a busy host
            // ends a few servers a minute.
            remember: 4_096,
        }
    }
}

impl AgentPolicy {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The key that is out of range, and what is allowed.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let within = |key, value: u32, low: u32, high: u32| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err((
                    key,
                    format!("{value} is out of range, allowed is {low} to {high}"),
                ))
            }
        };
        within("notice_tries", self.notice_tries, 1, 100)?;
        within("act_tries", self.act_tries, 1, 100)?;
        within("start_tries", self.start_tries, 1, 100)?;
        within("verify_tries", self.verify_tries, 1, 1_000)?;
        within("fence_tries", self.fence_tries, 0, 100)?;
        within("backoff_first_ms", self.backoff_first_ms, 1, 60_000)?;
        within(
            "backoff_cap_ms",
            self.backoff_cap_ms,
            self.backoff_first_ms,
            600_000,
        )?;
        within("late_ms", self.late_ms, 100, 60_000)?;
        within("objection_ms", self.objection_ms, 0, 60_000)?;
        if self.live_migrate_fallback == InterruptionBehaviour::LiveMigrate {
            let problem = "it cannot be live-migrate, use terminate, stop or hibernate".to_owned();
            return Err(("live_migrate_fallback", problem));
        }
        within("remember", self.remember, 16, 1_000_000)
    }

    /// How a victim ends that could not be interrupted in this way; `None` if it is left running.
    #[must_use]
    pub fn instead_of(&self, behaviour: InterruptionBehaviour) -> Option<InterruptionBehaviour> {
        match behaviour {
            InterruptionBehaviour::LiveMigrate => Some(self.live_migrate_fallback),
            InterruptionBehaviour::Stop | InterruptionBehaviour::Hibernate => self
                .escalate_to_terminate
                .then_some(InterruptionBehaviour::Terminate),
            InterruptionBehaviour::Terminate => None,
        }
    }

    /// The wait after this many failed tries (from 1), in milliseconds.
    #[must_use]
    pub fn backoff_ms(&self, tries: u32) -> i64 {
        // 31 doublings exceed any cap; stopping there keeps the shift defined.
        let doublings = tries.saturating_sub(1).min(31);
        let wait = i64::from(self.backoff_first_ms) << doublings;
        wait.min(i64::from(self.backoff_cap_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_cap() {
        let policy = AgentPolicy::default();
        let waits: Vec<i64> = (1..=7).map(|n| policy.backoff_ms(n)).collect();
        assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(policy.backoff_ms(u32::MAX), 30_000);
    }

    #[test]
    fn a_policy_out_of_range_names_the_key() {
        assert_eq!(AgentPolicy::default().check(), Ok(()));
        let bad = AgentPolicy {
            backoff_cap_ms: 10,
            ..AgentPolicy::default()
        };
        let (key, problem) = bad.check().unwrap_err();
        assert_eq!(key, "backoff_cap_ms");
        assert!(problem.contains("1000 to 600000"), "{problem}");
    }
}
