//! The servers of a cloud, indexed by host: one agent serves up to a thousand hosts, and each asks
//! for its own servers every second.

use ebbtide_openstack::compute::Server;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

#[derive(Debug, Default)]
pub(super) struct Servers {
    by_id: BTreeMap<Uuid, Server>,
    by_host: BTreeMap<String, BTreeSet<Uuid>>,
}

impl Servers {
    /// Takes in what a server is now.
    pub(super) fn put(&mut self, server: Server) {
        self.remove(server.id);
        if let Some(host) = &server.host {
            self.by_host
                .entry(host.clone())
                .or_default()
                .insert(server.id);
        }
        self.by_id.insert(server.id, server);
    }

    pub(super) fn remove(&mut self, id: Uuid) {
        let host = self.by_id.remove(&id).and_then(|server| server.host);
        let Some(host) = host else { return };
        if let Some(there) = self.by_host.get_mut(&host) {
            there.remove(&id);
            if there.is_empty() {
                self.by_host.remove(&host);
            }
        }
    }

    /// Forgets all others.
    pub(super) fn keep_only(&mut self, kept: &BTreeSet<Uuid>) {
        let others: Vec<Uuid> = self
            .by_id
            .keys()
            .filter(|id| !kept.contains(id))
            .copied()
            .collect();
        for id in others {
            self.remove(id);
        }
    }

    pub(super) fn contains(&self, id: Uuid) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Those of a host, by id.
    pub(super) fn on(&self, host: &str) -> impl Iterator<Item = &Server> {
        let there = self.by_host.get(host).into_iter().flatten();
        there.filter_map(|id| self.by_id.get(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn server(host: Option<&str>) -> Server {
        let id = Uuid::from_u128(1).to_string();
        serde_json::from_value(json!({"id": id, "status": "ACTIVE", "OS-EXT-SRV-ATTR:host": host}))
            .unwrap()
    }

    #[test]
    fn a_server_is_on_the_host_that_was_heard_last_and_on_no_other() {
        let mut servers = Servers::default();
        servers.put(server(Some("a")));
        servers.put(server(Some("b")));
        assert_eq!((servers.on("a").count(), servers.on("b").count()), (0, 1));
        servers.put(server(None));
        assert_eq!(servers.on("b").count(), 0);
        assert!(servers.contains(Uuid::from_u128(1)) && servers.by_host.is_empty());
        servers.remove(Uuid::from_u128(1));
        assert!(!servers.contains(Uuid::from_u128(1)));
    }
}
