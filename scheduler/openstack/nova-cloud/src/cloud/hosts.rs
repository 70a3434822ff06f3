//! Cells, aggregates, services and compute nodes: what Nova's databases say about hosts.

use super::{Cloud, HostInstances};
use crate::error::CloudError;
use crate::facts::{CellFacts, ComputeFacts, HostRef, ServiceFacts};
use ebbtide_nova::hosts::{self, ComputeRow};
use ebbtide_nova::model::{Aggregate, HostState, Service};
use ebbtide_nova::states::HostStateList;
use ebbtide_nova::table::HostSet;
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// A compute node.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) row: ComputeRow,
    pub(crate) cell_uuid: String,
    /// Its place in the table, if it can be scheduled to.
    pub(crate) place: Option<usize>,
}

/// The part of a host state that is to be rebuilt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Row,
    Service,
    Aggregates,
    Instances,
}

impl Cloud {
    /// Sets all cells. Hosts of cells that are missing or disabled get no instances (except those
    /// that a request sends into a disabled cell by name). The hosts return with the cell.
    pub fn set_cells(&mut self, cells: &[CellFacts]) {
        self.cells = cells.to_vec();
    }

    /// What the computes of a host report, whenever they did: rows with equal content are equal.
    #[must_use]
    pub fn reports_of(&self, host: &str) -> Vec<ComputeRow> {
        let nodes = self.nodes_of.get(host).into_iter().flatten();
        let rows = nodes.filter_map(|uuid| self.nodes.get(uuid));
        rows.map(|node| ComputeRow {
            updated_at: None,
            ..node.row.clone()
        })
        .collect()
    }

    /// The lowest version of a nova-compute over all cells (`services.version`).
    pub fn set_min_compute_version(&mut self, version: i64) {
        self.min_compute_version = version;
    }

    /// All aggregates there are; hosts by the names of their services.
    pub fn set_aggregates(&mut self, aggregates: Vec<Aggregate>) {
        let named: BTreeSet<i64> = aggregates.iter().map(|aggregate| aggregate.id).collect();
        let gone: Vec<i64> = self
            .aggregates
            .keys()
            .copied()
            .filter(|id| !named.contains(id))
            .collect();
        gone.into_iter().for_each(|id| self.remove_aggregate(id));
        aggregates
            .into_iter()
            .for_each(|aggregate| self.put_aggregate(aggregate));
    }

    /// One aggregate, new or changed (fanout `update_aggregates`).
    pub fn put_aggregate(&mut self, aggregate: Aggregate) {
        if self
            .aggregates
            .get(&aggregate.id)
            .is_some_and(|known| **known == aggregate)
        {
            return;
        }
        let before = self.aggregates.get(&aggregate.id).cloned();
        let mut touched: BTreeSet<String> = before
            .iter()
            .flat_map(|a| a.hosts.iter().cloned())
            .collect();
        touched.extend(aggregate.hosts.iter().cloned());
        let id = aggregate.id;
        for host in &touched {
            let ids = self.aggregates_of.entry(host.clone()).or_default();
            if aggregate.hosts.contains(host) {
                ids.insert(id);
            } else {
                ids.remove(&id);
            }
        }
        self.aggregates.insert(id, Arc::new(aggregate));
        self.follow_aggregates(touched);
    }

    /// An aggregate is gone (fanout `delete_aggregate`).
    pub fn remove_aggregate(&mut self, id: i64) {
        let Some(gone) = self.aggregates.remove(&id) else {
            return;
        };
        for host in &gone.hosts {
            if let Some(ids) = self.aggregates_of.get_mut(host) {
                ids.remove(&id);
            }
        }
        self.follow_aggregates(gone.hosts.iter().cloned().collect());
    }

    fn follow_aggregates(&mut self, touched: BTreeSet<String>) {
        self.aggregate_list = self.aggregates.values().cloned().collect();
        for host in touched {
            self.follow_host(&host, Part::Aggregates);
        }
    }

    /// A nova-compute, new or changed. Returns whether an operator has disabled or enabled it since
    /// its row was last seen.
    pub fn put_service(&mut self, service: ServiceFacts) -> bool {
        if self.services.get(&service.host) == Some(&service.service) {
            return false;
        }
        let disabled = service.service.disabled;
        let known = self.services.insert(service.host.clone(), service.service);
        let part = known.as_ref().map_or(Part::Row, |_| Part::Service);
        self.follow_host(&service.host, part);
        known.is_some_and(|known| known.disabled != disabled)
    }

    /// Whether Nova has a nova-compute of this host.
    #[must_use]
    pub fn has_service(&self, host: &str) -> bool {
        self.services.contains_key(host)
    }

    /// Number of servers on the host of a nova-compute, also of one that Nova does not have any
    /// more.
    #[must_use]
    pub fn servers_on(&self, host: &str) -> usize {
        let known = self.host_instances.get(host);
        known.map_or(0, |known| known.instances.len())
    }

    /// A nova-compute is gone: its nodes get nothing any more.
    pub fn remove_service(&mut self, host: &str) {
        if self.services.remove(host).is_some() {
            for uuid in self.nodes_of.get(host).cloned().unwrap_or_default() {
                self.unplace(uuid);
            }
        }
    }

    /// A row of `compute_nodes`, new or changed.
    ///
    /// # Errors
    /// [`CloudError::BadComputeNode`]; the host is left out until a better row comes.
    pub fn put_compute(&mut self, compute: ComputeFacts) -> Result<(), CloudError> {
        let ComputeFacts {
            uuid,
            cell_uuid,
            row,
        } = compute;
        let place = match self.nodes.get(&uuid) {
            // Another name or cell makes another host of it.
            Some(known)
                if known.row.host != row.host
                    || known.row.nodename != row.nodename
                    || known.cell_uuid != cell_uuid =>
            {
                self.remove_compute(uuid);
                None
            }
            Some(known) => known.place,
            None => None,
        };
        self.nodes_of
            .entry(row.host.clone())
            .or_default()
            .insert(uuid);
        self.providers.entry(uuid).or_default();
        self.others.remove(&uuid);
        self.nodes.insert(
            uuid,
            Node {
                row,
                cell_uuid,
                place,
            },
        );
        let made = self.place(uuid);
        if made.is_err() {
            self.unplace(uuid);
        }
        made
    }

    /// A compute node is gone. Instances on it stay known.
    pub fn remove_compute(&mut self, uuid: Uuid) {
        self.unplace(uuid);
        let Some(node) = self.nodes.remove(&uuid) else {
            return;
        };
        if let Some(nodes) = self.nodes_of.get_mut(&node.row.host) {
            nodes.remove(&uuid);
            if nodes.is_empty() {
                self.nodes_of.remove(&node.row.host);
            }
        }
        // One that Placement has told of is a provider still.
        if self
            .providers
            .get(&uuid)
            .is_some_and(|provider| provider.root.is_some())
        {
            self.others.insert(uuid);
        }
    }

    /// A host, as answers name it.
    pub(crate) fn host_at(&self, place: usize) -> HostRef {
        let state = self.table.states().get(place);
        HostRef {
            host: state.host.clone(),
            nodename: state.nodename.clone(),
            uuid: self.at.get(place).copied().flatten().unwrap_or_default(),
            cell_uuid: state.cell_uuid.clone(),
        }
    }

    /// The instances of a host changed: its nodes' states follow.
    pub(super) fn follow_instances(&mut self, host: &str) {
        self.follow_host(host, Part::Instances);
    }

    fn follow_host(&mut self, host: &str, part: Part) {
        for uuid in self.nodes_of.get(host).cloned().unwrap_or_default() {
            let place = self.nodes.get(&uuid).and_then(|node| node.place);
            let Some(place) = place.filter(|_| part != Part::Row) else {
                // The service has returned. If the row was unusable before, it still is, and there
                // is no caller to report that to.
                let _refused = self.place(uuid);
                continue;
            };
            let mut state = self.table.states().get(place).clone();
            match part {
                Part::Service => {
                    state.service = self.services.get(host).cloned().unwrap_or_default();
                }
                Part::Aggregates => state.aggregates = self.aggregates_on(host),
                Part::Instances | Part::Row => state.instances = self.instances_on(host),
            }
            self.table.put(place, state);
        }
    }

    fn aggregates_on(&self, host: &str) -> Vec<Arc<Aggregate>> {
        let ids = self.aggregates_of.get(host).into_iter().flatten();
        ids.filter_map(|id| self.aggregates.get(id).cloned())
            .collect()
    }

    fn instances_on(&self, host: &str) -> super::instances::HostInstanceMap {
        let known = self.host_instances.get(host);
        known.map_or_else(Default::default, |known: &HostInstances| {
            Arc::clone(&known.instances)
        })
    }

    /// Puts a node's state into the table, if it has a service.
    fn place(&mut self, uuid: Uuid) -> Result<(), CloudError> {
        let Some(node) = self.nodes.get(&uuid) else {
            return Ok(());
        };
        let Some(service) = self.services.get(&node.row.host) else {
            return Ok(());
        };
        let state = self.state_of(uuid, node, service.clone())?;
        let cell_uuid = node.cell_uuid.clone();
        match node.place {
            Some(place) => {
                self.table.put(place, state);
                self.devices.touch(place);
                // What is believed of its inventories may have changed with it.
                if self
                    .providers
                    .get(&uuid)
                    .is_none_or(|p| p.inventories.is_none())
                {
                    self.follow_amounts(uuid);
                }
            }
            None => self.enter(uuid, state, &cell_uuid),
        }
        Ok(())
    }

    fn state_of(&self, uuid: Uuid, node: &Node, service: Service) -> Result<HostState, CloudError> {
        let row = &node.row;
        let mut state = hosts::new_state(&row.host, &row.nodename, &node.cell_uuid);
        hosts::update(&mut state, row).map_err(|fault| CloudError::BadComputeNode {
            host: row.host.clone(),
            uuid,
            problem: fault.to_string(),
        })?;
        state.service = service;
        state.aggregates = self.aggregates_on(&row.host);
        state.instances = self.instances_on(&row.host);
        Ok(state)
    }

    fn enter(&mut self, uuid: Uuid, state: HostState, cell_uuid: &str) {
        let name = self.free_name(&state);
        let place = self.table.add(state);
        let len = place + 1;
        if self.at.len() < len {
            Arc::make_mut(&mut self.at).resize(len, None);
            self.names.resize(len, String::new());
            self.numbers.resize(len, None);
        }
        self.columns.grow(self.at.len());
        let all = self.at.len();
        self.of_cell.values_mut().for_each(|hosts| hosts.grow(all));
        let cell = self.of_cell.entry(cell_uuid.to_owned());
        cell.or_insert_with(|| HostSet::none(all)).set(place);
        Arc::make_mut(&mut self.at)[place] = Some(uuid);
        self.named.insert(name.clone(), place);
        self.names[place] = name;
        if let Some(node) = self.nodes.get_mut(&uuid) {
            node.place = Some(place);
        }
        self.layout += 1;
        self.devices.touch(place);
        self.follow_provider(uuid);
        // Its preemptible instances can be found now.
        self.count_again_at(uuid);
    }

    /// The host's name for explanations; several nodes of one host are told apart.
    fn free_name(&self, state: &HostState) -> String {
        let long = || format!("{} ({})", state.host, state.nodename);
        let uuid = || state.uuid.clone().unwrap_or_default();
        [state.host.clone(), long(), uuid()]
            .into_iter()
            .find(|name| !self.named.contains_key(name))
            .unwrap_or_else(|| format!("{} [{}]", long(), self.layout))
    }

    fn unplace(&mut self, uuid: Uuid) {
        let Some(place) = self.nodes.get_mut(&uuid).and_then(|node| node.place.take()) else {
            return;
        };
        self.table.remove(place);
        self.columns.clear(place);
        self.of_cell
            .values_mut()
            .for_each(|hosts| hosts.clear(place));
        Arc::make_mut(&mut self.at)[place] = None;
        let name = std::mem::take(&mut self.names[place]);
        self.named.remove(&name);
        self.victims.remove_host(&name);
        self.numbers[place] = None;
        self.layout += 1;
        self.devices.touch(place);
        self.count_again_at(uuid);
    }
}
