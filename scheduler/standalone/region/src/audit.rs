//! Invariants of a region that hold after every input. The tests and the simulator check them after
//! each one.

use crate::{Region, capacity};
use ebbtide_model::{EvacuationCause, EvacuationId, Server, ServerStatus};
use std::collections::BTreeMap;

impl Region {
    /// Checks the region's consistency: the host table against the servers, the invariants of
    /// `claims.rs` for every host, and the indexes against their contents. It scans everything, so
    /// it is for tests, simulations and audits.
    ///
    /// # Errors
    /// The first contradiction, as text.
    pub fn check_consistency(&self) -> Result<(), String> {
        self.table.check_consistency()?;
        for host in self.hosts.keys() {
            self.check_host(host)?;
        }
        self.check_indexes()
    }

    /// Evacuations that are under way.
    pub fn active_evacuations(&self) -> impl Iterator<Item = EvacuationId> {
        self.active.iter().copied()
    }

    /// Servers that are not gone.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        self.servers.values()
    }

    fn check_host(&self, host: &str) -> Result<(), String> {
        let usage = self
            .table
            .usage(host)
            .ok_or_else(|| format!("{host} is not in the host table"))?;
        if let Some(class) = capacity::overpromised(&usage) {
            return Err(format!(
                "{host}: more {class} is promised than there will be: {usage:?}"
            ));
        }
        let queue = self.waiting.get(host).into_iter().flat_map(BTreeMap::keys);
        let waiting: Vec<&Server> = queue.filter_map(|(_, id)| self.servers.get(id)).collect();
        if let Some(id) = self.next_with_room(host) {
            return Err(format!("{host}: {id} waits although its room is free"));
        }
        for id in self.leaving.get(host).into_iter().flatten() {
            let evacuation = self
                .evacuations
                .get(id)
                .ok_or_else(|| format!("{host}: evacuation {id} is indexed and not known"))?;
            let victim = self
                .servers
                .get(&evacuation.victim_id)
                .ok_or_else(|| format!("{host}: evacuation {id} of a server that is gone"))?;
            if evacuation.spare_requested || victim.status == ServerStatus::Deleting {
                continue;
            }
            if victim.status != ServerStatus::Evacuating || victim.evacuation_id != Some(*id) {
                return Err(format!(
                    "{host}: evacuation {id} of a server that is {}",
                    victim.status
                ));
            }
            if evacuation.cause != EvacuationCause::Preemption {
                continue;
            }
            let Some(preemptor) = evacuation.preemptor_id else {
                return Err(format!("{host}: {id} is a preemption without a preemptor"));
            };
            if !waiting.iter().any(|s| s.id == preemptor) {
                return Err(format!(
                    "{host}: {id} is for {preemptor}, which does not wait here"
                ));
            }
            let properties = victim.flavor.properties().map_err(|e| e.to_string())?;
            let frees = properties.resources.without(&properties.retained());
            if capacity::may_stay(&usage, &frees) {
                return Err(format!(
                    "{host}: victim {} has to leave for nothing",
                    victim.id
                ));
            }
        }
        Ok(())
    }

    fn check_indexes(&self) -> Result<(), String> {
        for server in self.servers.values() {
            let waits = server.status == ServerStatus::Waiting;
            let queued = server.host.as_ref().is_some_and(|host| {
                let key = (server.created_at, server.id);
                self.waiting
                    .get(host)
                    .is_some_and(|queue| queue.contains_key(&key))
            });
            if waits != queued {
                return Err(format!(
                    "{} is {} and queued is {queued}",
                    server.id, server.status
                ));
            }
            let listed = server
                .host
                .as_deref()
                .is_some_and(|host| self.resume_queue.waiting_on(host).any(|id| id == server.id));
            if listed != server.waits_to_come_back() {
                return Err(format!(
                    "{} is {} and listed as coming back is {listed}",
                    server.id, server.status
                ));
            }
            let active = server.evacuation_id.filter(|id| self.active.contains(id));
            if server.status == ServerStatus::Evacuating && active.is_none() {
                return Err(format!("{} is evacuating without an evacuation", server.id));
            }
        }
        let asked =
            |s: &&Server| matches!(s.status, ServerStatus::Building | ServerStatus::Deleting);
        let asked = self.servers.values().filter(asked).count();
        let (entries, unsent) = self.pending_calls.len();
        if asked != entries || unsent > entries {
            return Err(format!(
                "{asked} servers are to be started or deleted, {entries} are noted"
            ));
        }
        if self.waiting.values().any(BTreeMap::is_empty)
            || self.leaving.values().any(|set| set.is_empty())
            || self.by_host.values().any(|set| set.is_empty())
        {
            return Err("an index keeps empty entries".to_owned());
        }
        let stray = self
            .unsent_notices
            .keys()
            .find(|id| !self.active.contains(id));
        stray.map_or(Ok(()), |id| {
            Err(format!("the notice of {id}, which is over, is remembered"))
        })
    }
}
