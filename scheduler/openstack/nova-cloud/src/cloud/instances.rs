//! Servers: where they are, and whether they may be evicted.

use super::Cloud;
use crate::facts::{HeldFacts, InstanceRecord};
use crate::flavor::{PreemptibleTerms, believed_resources, terms};
use ebbtide_nova::model::InstanceFacts;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

/// Servers of a host, in the form of host states.
pub(super) type HostInstanceMap = Arc<BTreeMap<String, InstanceFacts>>;

/// What is known of a host's servers.
#[derive(Debug, Default)]
pub(crate) struct HostInstances {
    pub(crate) instances: HostInstanceMap,
    /// Nova's `host_info` exists: the whole list was set once.
    pub(crate) listed: bool,
    /// Nova's `updated`: the host's compute has confirmed the list since.
    pub(crate) confirmed: bool,
}

/// A server.
#[derive(Debug, Clone)]
pub(crate) struct CloudInstance {
    pub(crate) record: InstanceRecord,
    /// `None` for normal ones.
    pub(crate) terms: Option<PreemptibleTerms>,
    /// The amounts of it that count as evictable, and their provider.
    pub(crate) counted: Option<(Uuid, BTreeMap<String, u64>)>,
}

/// Task states in which a server can get a notice: those that leave it running on its host.
const HARMLESS: [&str; 4] = [
    "image_snapshot",
    "image_snapshot_pending",
    "image_pending_upload",
    "image_uploading",
];

/// VM states in which a server can be evicted: it exists and occupies capacity.
const PRESENT: [&str; 5] = ["active", "paused", "stopped", "suspended", "rescued"];

impl CloudInstance {
    /// Whether the server's state allows its eviction, whatever its flavor says.
    pub(crate) fn is_free_to_go(&self) -> bool {
        let record = &self.record;
        let harmless = |task: &String| HARMLESS.contains(&task.as_str());
        let present = |state: &String| PRESENT.contains(&state.as_str());
        !record.locked
            && record.task_state.as_ref().is_none_or(harmless)
            && record.vm_state.as_ref().is_none_or(present)
    }
}

impl Cloud {
    /// Adds or updates a server: its host, flavor, task, times.
    pub fn put_instance(&mut self, mut record: InstanceRecord) {
        let uuid = record.uuid;
        if record.held == HeldFacts::NotRead
            && let Some(known) = self.instances.get(&uuid)
        {
            record.held.clone_from(&known.record.held);
        }
        let before = self
            .instances
            .get(&uuid)
            .and_then(|known| known.record.host.clone());
        if before != record.host
            && let Some(before) = &before
        {
            self.leave_list(before, uuid);
        }
        if let Some(host) = &record.host {
            let facts = InstanceFacts {
                image_properties: record.image_properties.clone(),
                orphan: false,
            };
            let list = self.host_instances.entry(host.clone()).or_default();
            let key = uuid.to_string();
            if list.instances.get(&key) != Some(&facts) {
                Arc::make_mut(&mut list.instances).insert(key, facts);
                self.follow_instances(host);
            }
        }
        let terms = terms(&record.flavor);
        let counted = self
            .instances
            .get_mut(&uuid)
            .and_then(|known| known.counted.take());
        let instance = CloudInstance {
            record,
            terms,
            counted,
        };
        self.instances.insert(uuid, instance);
        self.follow_lifetime(uuid);
        self.believe(uuid);
        self.count_again(uuid);
        self.follow_named(uuid);
    }

    /// Removes a deleted server. What Placement still holds for it counts as normal usage until
    /// Placement's data change.
    pub fn remove_instance(&mut self, uuid: Uuid) {
        self.uncount(uuid);
        let Some(gone) = self.instances.remove(&uuid) else {
            return;
        };
        if let Some(host) = &gone.record.host {
            self.leave_list(host, uuid);
        }
        // Placement raises no generation when Nova deletes what the server holds.
        let held = self.consumers.get(&uuid);
        let held = held.into_iter().flat_map(|entry| entry.allocations.keys());
        for provider in held {
            if let Some(known) = self.providers.get_mut(provider) {
                known.consumers_known = false;
            }
        }
        self.leaving.remove(&uuid);
        self.started.remove(&uuid);
        self.follow_lifetime(uuid);
        self.forget_belief(uuid);
        self.follow_named(uuid);
    }

    /// A server's last record.
    #[must_use]
    pub fn instance(&self, uuid: Uuid) -> Option<&InstanceRecord> {
        self.instances.get(&uuid).map(|instance| &instance.record)
    }

    /// Marks a server as leaving (the ledger has a row for it) or as spared.
    pub fn set_leaving(&mut self, uuid: Uuid, leaving: bool) {
        let changed = if leaving {
            self.leaving.insert(uuid)
        } else {
            self.leaving.remove(&uuid)
        };
        if changed {
            self.follow_lifetime(uuid);
            self.count_again(uuid);
        }
    }

    fn leave_list(&mut self, host: &str, uuid: Uuid) {
        let Some(list) = self.host_instances.get_mut(host) else {
            return;
        };
        let key = uuid.to_string();
        if list.instances.contains_key(&key) {
            Arc::make_mut(&mut list.instances).remove(&key);
            self.follow_instances(host);
        }
    }

    /// Nova's `update_instance_info`: these servers are on the host. True if the host's instances
    /// are confirmed now; false if the caller has to read them from the cell's database and pass
    /// them to [`Self::host_instances`].
    pub fn update_instance_info(&mut self, host: &str, instances: Vec<InstanceRecord>) -> bool {
        let listed = self
            .host_instances
            .get(host)
            .is_some_and(|list| list.listed);
        if !listed && instances.len() < 2 {
            return false;
        }
        let uuids: BTreeSet<Uuid> = instances.iter().map(|record| record.uuid).collect();
        for record in instances {
            self.take_report(host, record);
        }
        if !listed {
            self.set_list(host, &uuids);
        }
        let list = self.host_instances.entry(host.to_owned()).or_default();
        (list.listed, list.confirmed) = (true, true);
        true
    }

    /// Adds or updates a server of which its compute says that it is on the host. The report may
    /// have been on its way while the row changed; the rows are read before each decision, so one
    /// that is not older than the report is true.
    fn take_report(&mut self, host: &str, mut record: InstanceRecord) {
        record.host = Some(host.to_owned());
        if let Some(known) = self.instances.get(&record.uuid) {
            let known = &known.record;
            if known.host == record.host && known.updated_at >= record.updated_at {
                record = known.clone();
            } else {
                // No report has these.
                record.locked = known.locked;
                record.group = known.group;
            }
        }
        self.put_instance(record);
    }

    /// Nova's `delete_instance_info`: this server is no longer on the host. Returns the same as
    /// [`Self::update_instance_info`].
    pub fn delete_instance_info(&mut self, host: &str, uuid: Uuid) -> bool {
        let Some(list) = self.host_instances.get_mut(host).filter(|list| list.listed) else {
            return false;
        };
        list.confirmed = true;
        self.leave_list(host, uuid);
        true
    }

    /// Nova's `sync_instance_info`: exactly these servers are on the host. False if the known list
    /// differs.
    pub fn sync_instance_info(&mut self, host: &str, uuids: &[Uuid]) -> bool {
        let Some(list) = self.host_instances.get_mut(host).filter(|list| list.listed) else {
            return false;
        };
        let told: BTreeSet<String> = uuids.iter().map(Uuid::to_string).collect();
        let same = told.len() == list.instances.len()
            && told.iter().all(|uuid| list.instances.contains_key(uuid));
        list.confirmed = same;
        same
    }

    /// Sets the complete list of a host's servers from the cell's database. Returns the servers
    /// whose rows are unknown: the caller reads and adds them.
    pub fn host_instances(&mut self, host: &str, uuids: &[Uuid]) -> Vec<Uuid> {
        let all: BTreeSet<Uuid> = uuids.iter().copied().collect();
        self.set_list(host, &all);
        let list = self.host_instances.entry(host.to_owned()).or_default();
        (list.listed, list.confirmed) = (true, false);
        all.into_iter()
            .filter(|uuid| !self.instances.contains_key(uuid))
            .collect()
    }

    fn set_list(&mut self, host: &str, uuids: &BTreeSet<Uuid>) {
        let list = self.host_instances.entry(host.to_owned()).or_default();
        let known = |uuid: &Uuid| {
            let facts = list.instances.get(&uuid.to_string());
            (uuid.to_string(), facts.cloned().unwrap_or_default())
        };
        let instances: BTreeMap<String, InstanceFacts> = uuids.iter().map(known).collect();
        if *list.instances != instances {
            list.instances = Arc::new(instances);
            self.follow_instances(host);
        }
    }

    /// The estimated usage of a server whose allocations are unknown: that of its flavor, on its
    /// node.
    pub(super) fn believed_of(&self, uuid: Uuid) -> Option<(Uuid, BTreeMap<String, u64>)> {
        let record = &self.instances.get(&uuid)?.record;
        let node = self.node_of(record)?;
        Some((
            node,
            believed_resources(&record.flavor, record.boots_from_volume),
        ))
    }

    /// The compute node of a server.
    pub(crate) fn node_of(&self, record: &InstanceRecord) -> Option<Uuid> {
        let nodes = self.nodes_of.get(record.host.as_ref()?)?;
        let mut nodes = nodes.iter().copied();
        match &record.node {
            Some(name) => nodes.find(|uuid| {
                let node = self.nodes.get(uuid);
                node.is_some_and(|node| node.row.nodename == *name)
            }),
            None => nodes.next().filter(|_| nodes.next().is_none()),
        }
    }
}
