//! Maximum lifetimes: which servers get their notice because of their age.

use ebbtide_model::{Seconds, ServerId, Timestamp};
use std::collections::{BTreeSet, HashMap};

/// When the notice of a server is due: one grace period before it has run for its lifetime.
#[must_use]
pub fn notice_at(launched: Timestamp, lifetime: Seconds, grace: Seconds) -> Timestamp {
    launched.plus(Seconds(lifetime.0.saturating_sub(grace.0)))
}

/// The time of the notice of each server that has one. Looking for due servers costs as much as
/// there are due ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lifetimes {
    at: HashMap<ServerId, Timestamp>,
    order: BTreeSet<(Timestamp, ServerId)>,
}

impl Lifetimes {
    /// Updates the entry of a server; `None`: it has no notice to come.
    pub fn put(&mut self, server: ServerId, notice_at: Option<Timestamp>) {
        if let Some(before) = self.at.remove(&server) {
            self.order.remove(&(before, server));
        }
        if let Some(at) = notice_at {
            self.at.insert(server, at);
            self.order.insert((at, server));
        }
    }

    /// Servers whose notice is due, the longest due first.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Vec<ServerId> {
        let due = self.order.iter().take_while(|(at, _)| *at <= now);
        due.map(|(_, id)| *id).collect()
    }

    /// When the first notice is due that is not due yet.
    #[must_use]
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        self.order.iter().map(|(at, _)| *at).find(|at| *at > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use uuid::Uuid;

    fn server(n: u8) -> ServerId {
        ServerId(Uuid::from_u128(n.into()))
    }

    #[test]
    fn the_notice_comes_a_grace_period_before_the_end_and_not_before_the_launch() {
        let launched = Timestamp::from_millis(5000);
        let at = |lifetime, grace| notice_at(launched, Seconds(lifetime), Seconds(grace));
        assert_eq!(at(300, 20), launched.plus(Seconds(280)));
        assert_eq!(at(300, 300), launched);
        assert_eq!(at(300, 900), launched);
    }

    proptest! {
        #[test]
        fn the_index_says_what_a_look_at_every_server_says(
            puts in vec((0_u8..6, proptest::option::of(0_i64..50)), 0..40),
            now in 0_i64..50,
        ) {
            let mut book = Lifetimes::default();
            let mut all = BTreeMap::new();
            for (n, at) in puts {
                let at = at.map(Timestamp::from_millis);
                book.put(server(n), at);
                all.insert(server(n), at);
            }
            let now = Timestamp::from_millis(now);
            let mut due: Vec<_> = all.iter()
                .filter_map(|(id, at)| Some((at.filter(|at| *at <= now)?, *id)))
                .collect();
            due.sort();
            let due: Vec<_> = due.into_iter().map(|(_, id)| id).collect();
            prop_assert_eq!(book.due(now), due);
            let next = all.values().flatten().filter(|at| **at > now).min();
            prop_assert_eq!(book.next_after(now), next.copied());
        }
    }
}
