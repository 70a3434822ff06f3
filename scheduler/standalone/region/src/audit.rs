//! Invariants of a region that hold after every input. The tests and the simulator check them after
//! each one.

use crate::{Region, capacity};
use ebbtide_model::{EvacuationId, Server, ServerId, ServerStatus};

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
        self.evacuations.active()
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
        let waiting: Vec<ServerId> = self.servers.claims().on(host).collect();
        if let Some(id) = self.next_with_room(host) {
            return Err(format!("{host}: {id} waits although its room is free"));
        }
        for evacuation in self.evacuations.leaving(host) {
            let id = evacuation.id;
            let victim = self
                .servers
                .get(&evacuation.victim_id)
                .ok_or_else(|| format!("{host}: evacuation {id} of a server that is gone"))?;
            if evacuation.spare_requested || victim.status == ServerStatus::Deleting {
                continue;
            }
            if victim.status != ServerStatus::Evacuating || victim.evacuation_id != Some(id) {
                return Err(format!(
                    "{host}: evacuation {id} of a server that is {}",
                    victim.status
                ));
            }
            if self.leaves_anyway(evacuation) {
                continue;
            }
            let Some(preemptor) = evacuation.preemptor_id else {
                return Err(format!(
                    "{host}: {id} is a {} without a preemptor",
                    evacuation.cause.as_str()
                ));
            };
            if !waiting.contains(&preemptor) {
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
        self.hosts.audit()?;
        self.servers.audit()?;
        self.evacuations.audit()?;
        for server in self.servers.values() {
            let active = server
                .evacuation_id
                .filter(|id| self.evacuations.is_active(id));
            if server.status == ServerStatus::Evacuating && active.is_none() {
                return Err(format!("{} is evacuating without an evacuation", server.id));
            }
        }
        let asked =
            |s: &&Server| matches!(s.status, ServerStatus::Building | ServerStatus::Deleting);
        let asked = self.servers.values().filter(asked).count();
        let entries = self.servers.calls().len();
        if asked != entries {
            return Err(format!(
                "{asked} servers are to be started or deleted, {entries} are noted"
            ));
        }
        Ok(())
    }
}
