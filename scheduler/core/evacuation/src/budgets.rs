//! Disruption budgets: which evacuations count against a budget, and for how long.
//!
//! The end of a maximum lifetime is no disruption, because the owner knew it from the launch. A
//! server counts once, however many evacuations it took to evict it.

use ebbtide_model::{
    BudgetScope, DisruptionBudget, Evacuation, EvacuationCause, EvacuationState, GroupId, ServerId,
    Timestamp,
};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// How far an evacuation is, as far as budgets care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisruptionStage {
    /// The victim is leaving.
    UnderWay,
    /// The victim is gone.
    Evacuated,
    /// The victim lives on.
    Over,
}

/// An evacuation, as far as budgets care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disruption<'a> {
    pub victim: ServerId,
    /// The victim's project.
    pub project_id: Cow<'a, str>,
    /// The victim's server group.
    pub group_id: Option<GroupId>,
    /// Why the victim has to leave.
    pub cause: EvacuationCause,
    /// Since when its capacity belongs to another server.
    pub claimed_at: Timestamp,
    /// How far it is.
    pub stage: DisruptionStage,
}

impl<'a> From<&'a Evacuation> for Disruption<'a> {
    fn from(evacuation: &'a Evacuation) -> Self {
        Self {
            victim: evacuation.victim_id,
            project_id: Cow::Borrowed(&evacuation.victim_project_id),
            group_id: evacuation.victim_group_id,
            cause: evacuation.cause,
            claimed_at: evacuation.claimed_at,
            stage: match evacuation.state {
                EvacuationState::Evacuated => DisruptionStage::Evacuated,
                state if state.is_final() => DisruptionStage::Over,
                _ => DisruptionStage::UnderWay,
            },
        }
    }
}

impl Disruption<'_> {
    /// The budget scopes that the loss of the victim counts against, whether or not such a budget
    /// exists.
    pub fn scopes(&self) -> impl Iterator<Item = BudgetScope> + use<> {
        scopes(&self.project_id, self.group_id)
    }

    /// True if a budget of one of its scopes counts the evacuation: it is under way, or the victim
    /// is gone and it was claimed within the window.
    #[must_use]
    pub fn counts(&self, budget: &DisruptionBudget, now: Timestamp) -> bool {
        let since = now.minus(budget.window);
        let lately = || self.stage == DisruptionStage::Evacuated && self.claimed_at > since;
        self.cause.is_disruption() && (self.stage == DisruptionStage::UnderWay || lately())
    }

    /// The same without a borrow.
    #[must_use]
    pub fn into_owned(self) -> Disruption<'static> {
        Disruption {
            project_id: Cow::Owned(self.project_id.into_owned()),
            ..self
        }
    }
}

/// The budget scopes of a server.
pub fn scopes(
    project_id: &str,
    group_id: Option<GroupId>,
) -> impl Iterator<Item = BudgetScope> + use<> {
    let project = BudgetScope::Project(project_id.to_owned());
    let group = group_id.map(BudgetScope::Group);
    [Some(project), group].into_iter().flatten()
}

/// The servers that a budget counts among these evacuations, which are of its scope.
pub fn disrupted<'a>(
    budget: &DisruptionBudget,
    of_scope: impl IntoIterator<Item = Disruption<'a>>,
    now: Timestamp,
) -> BTreeSet<ServerId> {
    let counted = of_scope.into_iter().filter(|d| d.counts(budget, now));
    counted.map(|disruption| disruption.victim).collect()
}

/// How many more victims a budget allows that counts so many servers.
#[must_use]
pub fn remaining(budget: &DisruptionBudget, disrupted: usize) -> u32 {
    let used = u32::try_from(disrupted).unwrap_or(u32::MAX);
    budget.max_victims.saturating_sub(used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_model::Seconds;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use uuid::Uuid;

    const SERVERS: u8 = 4;

    fn server(n: u8) -> ServerId {
        ServerId(Uuid::from_u128(n.into()))
    }

    fn any_disruption() -> impl Strategy<Value = Disruption<'static>> {
        let stage = prop_oneof![
            Just(DisruptionStage::UnderWay),
            Just(DisruptionStage::Evacuated),
            Just(DisruptionStage::Over),
        ];
        let cause = prop_oneof![
            Just(EvacuationCause::Preemption),
            Just(EvacuationCause::MaxLifetime),
            Just(EvacuationCause::Headroom),
            Just(EvacuationCause::Reclaim),
        ];
        (0..SERVERS, cause, 100_i64..140, stage).prop_map(|(n, cause, at, stage)| Disruption {
            victim: server(n),
            project_id: Cow::Borrowed("p"),
            group_id: None,
            cause,
            claimed_at: Timestamp::from_millis(at * 1000),
            stage,
        })
    }

    #[test]
    fn a_server_counts_against_its_project_and_its_group() {
        let group = GroupId(Uuid::from_u128(1));
        let project = BudgetScope::Project("p".to_owned());
        let of = |group| scopes("p", group).collect::<Vec<_>>();
        assert_eq!(of(None), std::slice::from_ref(&project));
        assert_eq!(of(Some(group)), [project, BudgetScope::Group(group)]);
    }

    proptest! {
        #[test]
        fn what_remains_is_what_a_look_at_every_server_says(
            all in vec(any_disruption(), 0..12),
            // Later than the longest window after 1970, before which there is no time.
            now in 100_i64..160,
            window in 0_u32..30,
            max_victims in 0_u32..6,
        ) {
            let budget = DisruptionBudget {
                scope: BudgetScope::Project("p".to_owned()),
                max_victims,
                window: Seconds(window),
            };
            let is_lost = |d: &Disruption<'_>| {
                let age = now - d.claimed_at.as_millis() / 1000;
                let gone = d.stage == DisruptionStage::Evacuated && age < i64::from(window);
                gone || d.stage == DisruptionStage::UnderWay
            };
            let of = |n: u8| all.iter().filter(move |d| d.victim == server(n));
            let ended_early = |d: &&Disruption<'_>| d.cause != EvacuationCause::MaxLifetime;
            let lost = |n: &u8| of(*n).filter(ended_early).any(is_lost);
            let used = (0..SERVERS).filter(lost).count();
            let at = Timestamp::from_millis(now * 1000);
            let counted = disrupted(&budget, all.clone(), at);
            prop_assert_eq!(counted.len(), used);
            let rest = i64::from(remaining(&budget, counted.len()));
            prop_assert_eq!(rest, (i64::from(max_victims) - used as i64).max(0));
        }
    }
}
