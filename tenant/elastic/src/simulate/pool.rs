//! A set of servers of which one is drawn at random, in constant time.

/// Servers, each at most once.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerPool {
    members: Vec<u32>,
    /// For each server its place in `members`.
    places: Vec<Option<u32>>,
}

impl ServerPool {
    pub(crate) fn of(servers: impl Iterator<Item = u32>) -> Self {
        let mut pool = Self::default();
        servers.for_each(|server| pool.insert(server));
        pool
    }

    pub(crate) fn len(&self) -> u32 {
        self.members.len() as u32
    }

    pub(crate) fn contains(&self, server: u32) -> bool {
        matches!(self.places.get(server as usize), Some(Some(_)))
    }

    pub(crate) fn get(&self, at: u32) -> Option<u32> {
        self.members.get(at as usize).copied()
    }

    pub(crate) fn insert(&mut self, server: u32) {
        if self.contains(server) {
            return;
        }
        let index = server as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, None);
        }
        if let Some(place) = self.places.get_mut(index) {
            *place = Some(self.members.len() as u32);
            self.members.push(server);
        }
    }

    pub(crate) fn remove(&mut self, server: u32) {
        let Some(place) = self.places.get_mut(server as usize).and_then(Option::take) else {
            return;
        };
        self.members.swap_remove(place as usize);
        if let Some(moved) = self.members.get(place as usize)
            && let Some(its) = self.places.get_mut(*moved as usize)
        {
            *its = Some(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ServerPool;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_pool_is_a_set(changes in prop::collection::vec((any::<bool>(), 0u32..20), 0..100)) {
            let (mut pool, mut set) = (ServerPool::default(), BTreeSet::new());
            for (insert, server) in changes {
                if insert {
                    pool.insert(server);
                    set.insert(server);
                } else {
                    pool.remove(server);
                    set.remove(&server);
                }
                let members: BTreeSet<u32> = (0..pool.len()).filter_map(|at| pool.get(at)).collect();
                prop_assert_eq!(&members, &set);
                prop_assert_eq!(pool.len() as usize, set.len());
                prop_assert!((0..20).all(|server| pool.contains(server) == set.contains(&server)));
            }
        }
    }
}
