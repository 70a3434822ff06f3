//! Servers that wait for capacity, by host.

use ebbtide_model::index::same;
use ebbtide_model::{Server, ServerId, ServerStatus, Timestamp};
use std::collections::BTreeMap;

/// A claim on a host: the request time comes first, so that the oldest is the first.
type Claim = (Timestamp, ServerId);

/// Claims that wait for capacity, by host. No empty queues. The value is the time until which a
/// claim waits when no evacuation is under way for it.
#[derive(Debug, Default)]
pub(crate) struct ClaimQueues(BTreeMap<String, BTreeMap<Claim, Timestamp>>);

/// The queue and the position of a server that waits for capacity.
fn place(server: &Server) -> Option<(&str, Claim)> {
    let host = server.host.as_deref()?;
    let waits = server.status == ServerStatus::Waiting;
    waits.then_some((host, (server.created_at, server.id)))
}

impl ClaimQueues {
    /// Updates the queues for a server. A claim that waits already keeps its time.
    pub(super) fn put(&mut self, old: Option<&Server>, new: &Server, patience: Timestamp) {
        let (before, now) = (old.and_then(place), place(new));
        if before == now {
            return;
        }
        if let Some((host, claim)) = before
            && let Some(queue) = self.0.get_mut(host)
        {
            queue.remove(&claim);
            if queue.is_empty() {
                self.0.remove(host);
            }
        }
        if let Some((host, claim)) = now {
            match self.0.get_mut(host) {
                Some(queue) => drop(queue.insert(claim, patience)),
                None => {
                    let queue = BTreeMap::from([(claim, patience)]);
                    self.0.insert(host.to_owned(), queue);
                }
            }
        }
    }

    /// Lets all claims on a host wait until this time.
    pub(super) fn extend(&mut self, host: &str, patience: Timestamp) {
        for until in self
            .0
            .get_mut(host)
            .into_iter()
            .flat_map(BTreeMap::values_mut)
        {
            *until = patience;
        }
    }

    /// Servers that wait on a host, the oldest request first.
    pub(crate) fn on(&self, host: &str) -> impl Iterator<Item = ServerId> + use<'_> {
        let queue = self.0.get(host).into_iter().flat_map(BTreeMap::keys);
        queue.map(|(_, id)| *id)
    }

    /// True if a server waits on the host.
    pub(crate) fn contains(&self, host: &str) -> bool {
        self.0.contains_key(host)
    }

    /// Hosts on which servers wait.
    pub(crate) fn hosts(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// Servers on a host that have waited for too long, the oldest request first.
    pub(crate) fn overdue(&self, host: &str, now: Timestamp) -> Vec<ServerId> {
        let queue = self.0.get(host).into_iter().flatten();
        let late = queue.filter(|(_, until)| **until <= now);
        late.map(|((_, id), _)| *id).collect()
    }

    /// Checks that the queues follow from the servers.
    pub(super) fn audit<'s>(
        &self,
        servers: impl Iterator<Item = &'s Server>,
    ) -> Result<(), String> {
        let mut derived: BTreeMap<&str, BTreeMap<Claim, Timestamp>> = BTreeMap::new();
        for (host, claim) in servers.filter_map(place) {
            let kept = self.0.get(host).and_then(|queue| queue.get(&claim));
            // The time is the queue's own record.
            let until = kept.copied().unwrap_or_default();
            derived.entry(host).or_default().insert(claim, until);
        }
        let kept = self
            .0
            .iter()
            .map(|(host, queue)| (host.as_str(), queue.clone()));
        same("claims", &kept.collect(), &derived)
    }
}
