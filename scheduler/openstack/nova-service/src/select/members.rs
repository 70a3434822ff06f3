//! Members of server groups that are not on their hosts yet.
//!
//! A preemption, or at least a build, lies between a decision and the row in Nova's database that
//! shows a member on its host. A request that is decided meanwhile must know of that member;
//! otherwise the group violates its policy. nova-compute then refuses the member
//! (`_validate_instance_group_policy`), and its victim was evicted for nothing. So the scheduler
//! reads members from the ledger, which has the preemptions of all schedulers, remembers its own
//! answers, and decides requests of one group one after another.

use super::{SelectRequest, Selector};
use crate::evacuate::Newcomer;
use ebbtide_nova_cloud::ExpectedInstances;
use ebbtide_runtime::clock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

/// How long an answer is remembered whose instance is not on its host. After that its build has
/// failed, or its row shows the host.
const REMEMBERED_MICROS: i64 = 300_000_000;

/// The members that are on their way. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Members {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Instances of groups that this scheduler has answered, with their hosts, and when.
    placed: Mutex<HashMap<Uuid, (String, i64)>>,
    /// One lock for each group.
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// The lock of a group, until it is dropped.
pub(super) type GroupLock = OwnedMutexGuard<()>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Members {
    async fn turn(&self, group: &str) -> GroupLock {
        let turn = {
            let mut turns = lock(&self.shared.turns);
            // Removes locks that no task holds or waits for.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(group.to_owned()).or_default())
        };
        turn.lock_owned().await
    }

    /// Remembers the answer to a request.
    pub(super) fn placed(&self, instances: impl Iterator<Item = (Uuid, String)>, now: i64) {
        let mut placed = lock(&self.shared.placed);
        placed.extend(instances.map(|(instance, host)| (instance, (host, now))));
    }

    /// The members that are on their way. `is_there`: whether an instance has a host by its row, or
    /// never will.
    fn on_their_way(
        &self,
        newcomers: Vec<Newcomer>,
        is_there: impl Fn(Uuid) -> bool,
        now: i64,
    ) -> ExpectedInstances {
        let mut placed = lock(&self.shared.placed);
        placed.retain(|instance, (_, at)| now - *at < REMEMBERED_MICROS && !is_there(*instance));
        let mut all: HashMap<Uuid, String> = placed
            .iter()
            .map(|(instance, (host, _))| (*instance, host.clone()))
            .collect();
        for newcomer in newcomers {
            // An instance that moves is on its old host until then.
            if newcomer.under_way || !is_there(newcomer.instance) {
                all.insert(newcomer.instance, newcomer.host);
            }
        }
        all.into_iter().collect()
    }
}

impl Selector {
    /// Waits until no other task decides for the request's group, and reads the group's members
    /// that are on their way. Does nothing without a group.
    pub(super) async fn enter_group(&self, request: &SelectRequest) {
        let Some(group) = &request.schedule.spec.instance_group else {
            return;
        };
        if request.group().turn.is_some() {
            return;
        }
        let turn = self.members.turn(&group.uuid).await;
        let newcomers = match self.preempting.get() {
            None => Vec::new(),
            Some(evacuations) => evacuations.newcomers().await.unwrap_or_else(|error| {
                tracing::warn!(
                    code = error.code(),
                    "{error}; members of server groups that other schedulers make room for are not known"
                );
                Vec::new()
            }),
        };
        let expected = self.facts.read(|cloud| {
            let is_there = |instance| {
                cloud.instance(instance).is_some_and(|record| {
                    record.host.is_some() || record.vm_state.as_deref() == Some("error")
                })
            };
            self.members
                .on_their_way(newcomers, is_there, clock::unix_micros())
        });
        let mut known = request.group();
        known.expected = expected;
        // The turn is for answers that others must learn of.
        known.turn = request.trial.is_none().then_some(turn);
    }

    /// Remembers the answer to a request, and lets the next request of its group be decided.
    pub(super) fn leave_group(&self, request: &SelectRequest, hosts: &[String]) {
        if request.schedule.spec.instance_group.is_none() {
            return;
        }
        let instances = request.call.instance_uuids.iter().flatten();
        let instances = instances.map(|uuid| Uuid::parse_str(uuid).ok());
        let placed = instances
            .zip(hosts)
            .filter_map(|(instance, host)| Some((instance?, host.clone())));
        if request.trial.is_none() {
            self.members.placed(placed, clock::unix_micros());
        }
        request.group().turn = None;
    }
}

/// The state of a request's group.
#[derive(Default)]
pub(super) struct GroupState {
    pub(super) expected: ExpectedInstances,
    /// Held from the decision until others can know of it.
    pub(super) turn: Option<GroupLock>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn newcomer(instance: u128, host: &str, under_way: bool) -> Newcomer {
        Newcomer {
            instance: Uuid::from_u128(instance),
            host: host.to_owned(),
            under_way,
        }
    }

    fn expected(all: &[(u128, &str)]) -> ExpectedInstances {
        let all = all.iter();
        all.map(|(instance, host)| (Uuid::from_u128(*instance), (*host).to_owned()))
            .collect()
    }

    #[test]
    fn requests_for_one_group_take_turns_and_those_for_others_do_not_wait() {
        let members = Members::default();
        let first = members.turn("a").now_or_never();
        assert!(first.is_some());
        assert!(members.turn("a").now_or_never().is_none());
        assert!(members.turn("b").now_or_never().is_some());
        drop(first);
        assert!(members.turn("a").now_or_never().is_some());
        assert!(lock(&members.shared.turns).len() <= 2, "nothing grows");
    }

    #[test]
    fn a_member_counts_from_the_answer_until_its_row_shows_it() {
        let members = Members::default();
        let one = std::iter::once((Uuid::from_u128(1), "a".to_owned()));
        members.placed(one, 0);
        let on_the_way = |there: bool, now| members.on_their_way(Vec::new(), |_| there, now);
        assert_eq!(on_the_way(false, 1), expected(&[(1, "a")]));
        assert_eq!(on_the_way(true, 1), expected(&[]));
        assert_eq!(on_the_way(false, 1), expected(&[]), "it was forgotten then");
        let one = std::iter::once((Uuid::from_u128(1), "a".to_owned()));
        members.placed(one, 0);
        assert_eq!(on_the_way(false, REMEMBERED_MICROS), expected(&[]));
    }

    #[test]
    fn newcomers_of_preemptions_count_while_they_are_under_way_and_until_they_are_there() {
        let members = Members::default();
        let rows = || vec![newcomer(1, "a", true), newcomer(2, "b", false)];
        let neither = members.on_their_way(rows(), |_| false, 0);
        assert!(
            neither == expected(&[(1, "a"), (2, "b")])
                || neither == expected(&[(2, "b"), (1, "a")])
        );
        let both = members.on_their_way(rows(), |_| true, 0);
        assert_eq!(
            both,
            expected(&[(1, "a")]),
            "one that moves counts where it goes, too"
        );
    }
}
