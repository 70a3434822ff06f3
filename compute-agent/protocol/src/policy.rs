//! Numbers of tries and time limits of the agent, with the reason for each default.

use ebbtide_model::InterruptionBehaviour;
use ebbtide_model::settings::check_ranges;
use serde::{Deserialize, Serialize};

/// Longest wait between two tries, in milliseconds.
const MAX_BACKOFF_MS: u32 = 600_000;

ebbtide_model::settings! {
    /// Numbers of tries and time limits.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct AgentPolicy: Default {
        /// Maximum number of tries to give or withdraw a guest's notice.
        // Three tries with waits of 1 s and 2 s: enough for a busy hypervisor, and the
        // preemptor does not wait long.
        pub notice_tries: u32 = 3 => key("5").range(1..=100);
        /// Maximum number of tries of an interruption.
        pub act_tries: u32 = 3 => key("5").range(1..=100);
        /// Maximum number of checks whether the capacity is free: a hypervisor may need a moment to
        /// release memory.
        // Ten looks over about two minutes: releasing the pages of a large guest takes time.
        pub verify_tries: u32 = 10 => key("20").range(1..=1000);
        /// Maximum number of tries of a start.
        pub start_tries: u32 = 3 => key("5").range(1..=100);
        /// Wait before the second try; doubles with each further one.
        pub backoff_first_ms: u32 = 1_000 => key("500").range(1..=60_000);
        /// The wait never exceeds this. Not below `backoff_first_ms`.
        pub backoff_cap_ms: u32 = 30_000 => key("60000").range(1..=MAX_BACKOFF_MS);
        /// If a victim can neither be stopped nor hibernated: true terminates it all the same (its
        /// memory, and with it the tenant's work, is lost), false lets it live and reports the
        /// failure.
        // The tenant chose hibernation; losing the memory instead is the operator's decision.
        pub escalate_to_terminate: bool = false => key("true");
        /// Maximum number of tries of the operator's fence on a victim that could not be
        /// terminated, or whose capacity does not become free. 0: there is no fence. The shell sets
        /// this, because it knows whether there is one.
        #[serde(skip)]
        pub fence_tries: u32 = 0 => internal().range(0..=100);
        /// How a victim ends that should move to another host but cannot.
        // The only behaviour that frees all of the capacity and always works.
        pub live_migrate_fallback: InterruptionBehaviour = InterruptionBehaviour::Terminate
            => key("stop").words(&["terminate", "stop", "hibernate"]);
        /// An interruption that begins later than this after the end of the grace period is late:
        /// the scheduler may have withdrawn it.
        // Longer than a busy host needs to resume, and well within the minute for which
        // schedulers wait for the report of the end.
        pub late_ms: u32 = 2_000 => key("5000").range(100..=60_000);
        /// Before a late interruption the agent reports to the scheduler once more and waits this
        /// long for an objection.
        // A spare waits in the agent's queue; reading it takes milliseconds, connecting to a
        // broker a second or two.
        pub objection_ms: u32 = 5_000 => key("2000").range(0..=60_000);
        /// How many finished evacuations and removed servers the agent remembers. A late or
        /// repeated message about one of them gets an answer and has no other effect.
        // A few hundred bytes each. The broker repeats messages within minutes; a busy host
        // ends a few servers a minute.
        pub remember: u32 = 4_096 => key("16384").range(16..=1_000_000);
    }
}

impl AgentPolicy {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The key that is out of range, and what is allowed.
    pub fn check(&self) -> Result<(), (String, String)> {
        check_ranges(self).map_err(|range| (range.key.clone(), range.problem()))?;
        if self.backoff_first_ms > self.backoff_cap_ms {
            let (cap, first) = (self.backoff_cap_ms, self.backoff_first_ms);
            let problem = format!("{cap} is out of range, allowed is {first} to {MAX_BACKOFF_MS}");
            return Err(("backoff_cap_ms".to_owned(), problem));
        }
        if self.live_migrate_fallback == InterruptionBehaviour::LiveMigrate {
            let problem = "it cannot be live-migrate, use terminate, stop or hibernate".to_owned();
            return Err(("live_migrate_fallback".to_owned(), problem));
        }
        Ok(())
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
