//! The hosts whose agents have registered.

use super::host_entry::HostEntry;
use ebbtide_model::index::{Index, same};
use ebbtide_model::{Host, HostHealth, Reclaim, ServerId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Hosts, their agents, and what these reported last.
#[derive(Debug, Default)]
pub(crate) struct HostBook {
    entries: BTreeMap<String, HostEntry>,
    /// Hosts by the storage that they share.
    by_storage: Index<String, String>,
}

impl HostBook {
    /// Puts a host into the book, in place of its former state.
    pub(crate) fn put(&mut self, entry: HostEntry) {
        let name = entry.host.name.clone();
        let old = self.entries.get(&name);
        let before = old.and_then(|old| old.host.storage.as_deref());
        if before != entry.host.storage.as_deref() {
            if let Some(storage) = before {
                self.by_storage.remove(storage, &name);
            }
            if let Some(storage) = &entry.host.storage {
                self.by_storage.insert(storage.as_str(), name.clone());
            }
        }
        self.entries.insert(name, entry);
    }

    /// Removes a host.
    pub(crate) fn remove(&mut self, name: &str) {
        if let Some((name, old)) = self.entries.remove_entry(name)
            && let Some(storage) = &old.host.storage
        {
            self.by_storage.remove(storage, &name);
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&HostEntry> {
        self.entries.get(name)
    }

    /// All hosts, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &HostEntry)> {
        self.entries.iter()
    }

    /// All hosts, by name.
    pub(crate) fn values(&self) -> impl Iterator<Item = &HostEntry> {
        self.entries.values()
    }

    /// The names of all hosts, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &String> {
        self.entries.keys()
    }

    /// The number of hosts.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Hosts that share a storage, by name.
    pub(crate) fn sharing(&self, storage: &str) -> impl Iterator<Item = (&String, &HostEntry)> {
        let names = self.by_storage.get(storage);
        names.filter_map(|name| self.entries.get_key_value(name))
    }

    /// Increments a host's generation, which invalidates earlier decisions about it.
    pub(crate) fn new_generation(&mut self, name: &str) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.generation += 1;
        }
    }

    /// Disables a host for a reason, or enables it. Returns its new state; `None` if it is unknown.
    pub(crate) fn set_disabled(
        &mut self,
        name: &str,
        reason: Option<String>,
        now: Timestamp,
        down_after_millis: i64,
    ) -> Option<(&Host, HostHealth)> {
        let entry = self.entries.get_mut(name)?;
        entry.host.disabled_reason = reason;
        entry.health = entry.health_at(now, down_after_millis);
        Some((&entry.host, entry.health))
    }

    /// Sets or ends the reclaim of a host, and why it is disabled. Returns its new state; `None` if
    /// it is unknown.
    pub(crate) fn set_reclaim(
        &mut self,
        name: &str,
        reclaim: Option<Reclaim>,
        disabled: Option<String>,
        now: Timestamp,
        down_after_millis: i64,
    ) -> Option<(&Host, HostHealth)> {
        let entry = self.entries.get_mut(name)?;
        entry.host.reclaim = reclaim.map(Box::new);
        self.set_disabled(name, disabled, now, down_after_millis)
    }

    /// Updates the health of all hosts. Returns those whose health has changed, in order.
    pub(crate) fn update_health(&mut self, now: Timestamp, down_after_millis: i64) -> Vec<String> {
        let mut changed = Vec::new();
        for (name, entry) in &mut self.entries {
            let health = entry.health_at(now, down_after_millis);
            if health != entry.health {
                entry.health = health;
                changed.push(name.clone());
            }
        }
        changed
    }

    /// Updates for which hosts two agents report.
    pub(crate) fn update_contested(&mut self, now: Timestamp) {
        for entry in self.entries.values_mut() {
            entry.contested = entry.is_contested(now);
        }
    }

    /// Notes that a host's record is written. Returns the host and its health.
    pub(crate) fn store_seen(&mut self, name: &str) -> Option<(&Host, HostHealth)> {
        let entry = self.entries.get_mut(name)?;
        entry.stored_seen = entry.host.last_seen;
        Some((&entry.host, entry.health))
    }

    /// Takes the servers that should run and were not in the last heartbeat.
    pub(crate) fn take_missing(&mut self, name: &str) -> BTreeSet<ServerId> {
        let entry = self.entries.get_mut(name);
        entry.map_or_else(BTreeSet::new, |entry| std::mem::take(&mut entry.missing))
    }

    /// Sets the servers that should run and were not in the last heartbeat.
    pub(crate) fn set_missing(&mut self, name: &str, missing: BTreeSet<ServerId>) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.missing = missing;
        }
    }

    /// Checks that the index follows from the records.
    ///
    /// # Errors
    /// The contradiction, as text.
    pub(crate) fn audit(&self) -> Result<(), String> {
        if let Some((name, _)) = self.iter().find(|(name, entry)| **name != entry.host.name) {
            return Err(format!("host {name} has another name in its record"));
        }
        let all = self.entries.iter();
        let storages = all.filter_map(|(name, e)| Some((e.host.storage.clone()?, name.clone())));
        same("storages", &self.by_storage, &storages.collect())
    }
}
