//! Servers and evacuations in memory, always consistent with the changes that the region writes.
//!
//! Every change of a server or an evacuation goes through [`Region::save_server`] or
//! [`Region::save_evacuation`], so that indexes, host table, database and watchers agree.

use crate::RegionError;
use crate::state::Region;
use crate::transition::Transition;
use ebbtide_engine::{Instance, InstancePhase};
use ebbtide_model::record::Change;
use ebbtide_model::{
    CloudEvent, Evacuation, EvacuationCause, Resources, Seconds, Server, ServerId, ServerStatus,
    Timestamp,
};

/// A victim that is being spared is protected until its agent answers. The value is 136 years from
/// 1970, which is longer than any answer takes.
const NOT_AGAIN: Seconds = Seconds(u32::MAX);

impl Region {
    /// Saves a server: memory, host table, database, watchers.
    pub(crate) fn save_server(&mut self, transition: &mut Transition<'_>, server: Server) {
        if let Some(host) = self
            .servers
            .get(&server.id)
            .and_then(|old| old.host.as_deref())
        {
            transition.touch(host);
        }
        if let Some(host) = &server.host {
            transition.touch(host);
        }
        let over = self.ended_life(&server, transition.now);
        let over = over.map(|life| Change::PutLife(Box::new(life)));
        transition.effects.changes.extend(over);
        transition
            .effects
            .changes
            .push(Change::PutServer(Box::new(server.clone())));
        transition
            .effects
            .events
            .push(CloudEvent::Server(Box::new(server.clone())));
        if server.status.is_gone() {
            self.servers.deleted_mut().add(server.id, transition.now);
        }
        let patience = transition.now.plus(self.config.act_timeout_seconds);
        if let Err(error) = self.index_server(server, patience) {
            // The server's flavor was checked when it was created, and its host exists, so this
            // does not happen.
            transition.ignored(format!("the host table refused a server: {error}"));
        }
    }

    /// Puts a server into memory and the host table and replaces its former state. If it waits for
    /// capacity, `patience` is the time until which it waits when no evacuation is under way for
    /// it.
    pub(crate) fn index_server(
        &mut self,
        server: Server,
        patience: Timestamp,
    ) -> Result<(), RegionError> {
        if improves(self.servers.get(&server.id), &server) {
            self.improvements += 1;
        }
        if server.status == ServerStatus::Evacuating
            && let Some(host) = &server.host
        {
            self.speculating.emptied.insert(host.clone());
        }
        let id = server.id;
        self.servers.put(server, patience);
        self.show_to_table(id)
    }

    /// Updates the host table for a server.
    pub(crate) fn show_to_table(&mut self, id: ServerId) -> Result<(), RegionError> {
        let instance = match self.servers.get(&id) {
            Some(server) => self.instance_of(server)?,
            None => None,
        };
        match instance {
            Some(instance) => self.table.put_instance(&instance)?,
            None => {
                self.table.remove_instance(id);
            }
        }
        Ok(())
    }

    /// The server as an instance of the engine's host table; `None` if it holds no capacity.
    pub(crate) fn instance_of(&self, server: &Server) -> Result<Option<Instance>, RegionError> {
        let holds = holds_room(server) || keeps_disk(server);
        let Some(host) = server.host.clone().filter(|_| holds) else {
            return Ok(None);
        };
        let properties = server.flavor.properties()?;
        // A server that is being deleted keeps no disk.
        let retained = match server.status {
            ServerStatus::Deleting if !keeps_disk(server) => Resources::new(),
            _ => properties.retained(),
        };
        let spared = self.is_being_spared(server);
        let phase = match server.status {
            _ if keeps_disk(server) => InstancePhase::Retained,
            ServerStatus::Waiting => InstancePhase::Claimed,
            ServerStatus::Building => InstancePhase::Building,
            // A victim that is being spared keeps its capacity: no other claim may count on it.
            ServerStatus::Evacuating if spared => InstancePhase::Running,
            ServerStatus::Evacuating | ServerStatus::Deleting => InstancePhase::Leaving,
            _ => InstancePhase::Running,
        };
        let protected = properties
            .protected
            .unwrap_or(self.config.default_protected_seconds);
        let protected_until = server
            .launched_at
            .map(|launched| launched.plus(protected))
            .max(self.servers.rests_until(server.id))
            .max(spared.then(|| Timestamp::default().plus(NOT_AGAIN)));
        Ok(Some(Instance {
            id: server.id,
            name: server.name.clone(),
            project_id: server.project_id.clone(),
            host,
            resources: properties.resources,
            retained,
            preemptible: properties.preemptible,
            group_id: server.group_id,
            launched_at: server.launched_at,
            protected_until,
            price_per_hour: properties.price_per_hour,
            max_price: self.bid_of(server),
            flavor: server.flavor.name.clone(),
            ends_at: server
                .launched_at
                .zip(properties.max_lifetime)
                .map(|(launched, most)| launched.plus(most)),
            priority: properties.priority,
            phase,
        }))
    }

    pub(crate) fn is_being_spared(&self, server: &Server) -> bool {
        server.status == ServerStatus::Evacuating
            && server
                .evacuation_id
                .and_then(|id| self.evacuations.get(&id))
                .is_some_and(|e| e.spare_requested)
    }

    /// Saves an evacuation: memory, database, watchers.
    pub(crate) fn save_evacuation(
        &mut self,
        transition: &mut Transition<'_>,
        evacuation: Evacuation,
    ) {
        if evacuation.state.is_final()
            && let Some(unsent) = self.evacuations.take_unsent(&evacuation.id)
        {
            transition.unsend(unsent);
        }
        transition.touch(&evacuation.host);
        let boxed = Box::new(evacuation.clone());
        transition
            .effects
            .changes
            .push(Change::PutEvacuation(boxed.clone()));
        transition
            .effects
            .events
            .push(CloudEvent::Evacuation(boxed));
        self.index_evacuation(evacuation);
    }

    /// Puts an evacuation into memory.
    pub(crate) fn index_evacuation(&mut self, evacuation: Evacuation) {
        // An evacuation for another cause than preemption frees capacity that no claim has
        // reserved, so a request that was refused earlier may now succeed.
        if evacuation.cause != EvacuationCause::Preemption
            && !self.evacuations.contains_key(&evacuation.id)
        {
            self.improvements += 1;
        }
        self.evacuations.put(evacuation);
    }
}

/// True if the change of a server could improve an earlier decision. Lists the changes that cannot;
/// every other change counts.
fn improves(old: Option<&Server>, new: &Server) -> bool {
    use ServerStatus::{Active, Building, Error, Evacuating, Reserved, Waiting};
    let was = old.map(|s| s.status);
    if was == Some(new.status) && old.is_some_and(|s| s.host == new.host) {
        return false;
    }
    let comes = matches!(
        (was, new.status),
        (None, Error)
            | (None | Some(Error), Waiting)
            | (Some(Waiting), Building | Reserved)
            | (Some(Building), Active)
    );
    // The claim that selected a victim already accounts for its capacity, so neither the selection
    // nor the end of the victim is an improvement.
    let leaves = match (was, new.status) {
        (Some(Active | Building | Reserved), Evacuating) => true,
        (Some(Evacuating), status) => !status.holds_room(),
        _ => false,
    };
    // A new preemptible server may be the cheapest victim.
    !(leaves || comes && !new.is_preemptible())
}

/// True for a server that was stopped or hibernated: its disk is on the host until the agent has
/// deleted it.
fn keeps_disk(server: &Server) -> bool {
    match server.status {
        ServerStatus::Stopped | ServerStatus::Hibernated => true,
        ServerStatus::Deleting => {
            let was_kept = server.evacuation_id.is_some() || server.comeback.is_some();
            server.ended_at.is_some() && was_kept
        }
        _ => false,
    }
}

/// True while no other server may have the server's capacity. A server that had ended before its
/// owner deleted it holds none while its agent cleans up.
fn holds_room(server: &Server) -> bool {
    let cleared_up = server.status == ServerStatus::Deleting && server.ended_at.is_some();
    server.status.holds_room() && !cleared_up
}
