//! Servers that went recently.

use ebbtide_model::index::same;
use ebbtide_model::{ServerId, Timestamp};
use std::collections::{HashSet, VecDeque};

/// Ids of servers that are gone, for as long as they are remembered.
#[derive(Debug, Default)]
pub(crate) struct DeletedServers {
    ids: HashSet<ServerId>,
    /// In the order in which the servers went.
    order: VecDeque<(Timestamp, ServerId)>,
}

impl DeletedServers {
    pub(crate) fn add(&mut self, id: ServerId, at: Timestamp) {
        if self.ids.insert(id) {
            self.order.push_back((at, id));
        }
    }

    pub(crate) fn contains(&self, id: ServerId) -> bool {
        self.ids.contains(&id)
    }

    /// Forgets a server that turns out to be there.
    pub(crate) fn remove(&mut self, id: ServerId) {
        if self.ids.remove(&id) {
            self.order.retain(|(_, gone)| *gone != id);
        }
    }

    /// When a remembered server went.
    pub(crate) fn since(&self, id: ServerId) -> Option<Timestamp> {
        let found = self.order.iter().find(|(_, gone)| *gone == id);
        found.map(|(at, _)| *at)
    }

    /// Removes servers that went at `oldest` or before.
    pub(crate) fn forget(&mut self, oldest: Timestamp) {
        while let Some((at, id)) = self.order.front().copied()
            && at <= oldest
        {
            self.order.pop_front();
            self.ids.remove(&id);
        }
    }

    /// Checks that the ids follow from the order.
    pub(super) fn audit(&self) -> Result<(), String> {
        let ids = self.order.iter().map(|(_, id)| *id).collect();
        same("servers that went", &self.ids, &ids)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }
}
