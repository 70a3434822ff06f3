//! Servers and evacuations in memory, always consistent with the changes that the region writes.
//!
//! Every change of a server or an evacuation goes through [`Region::save_server`] or
//! [`Region::save_evacuation`], so that indexes, host table, database and watchers agree.

use crate::state::Region;
use crate::transition::Transition;
use crate::{RegionError, RegionEvent, budgets};
use ebbtide_engine::{Instance, InstancePhase};
use ebbtide_model::record::Change;
use ebbtide_model::{
    Evacuation, EvacuationCause, EvacuationId, Resources, Seconds, Server, ServerId, ServerStatus,
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
            .push(RegionEvent::Server(Box::new(server.clone())));
        if server.status.is_gone() {
            self.deleted_servers.add(server.id, transition.now);
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
        self.leave_indexes(&server);
        self.resume_queue.put(&server);
        self.lifetimes
            .put(&server, self.config.default_grace_seconds);
        if !matches!(
            server.status,
            ServerStatus::Building | ServerStatus::Deleting
        ) {
            self.pending_calls.forget(server.id);
        }
        let id = server.id;
        if server.status.is_gone() {
            if let Some(old) = self.servers.remove(&id) {
                self.count_out(&old.project_id);
            }
            self.started_at.remove(&id);
            self.resting.remove(&id);
            self.table.remove_instance(id);
            return Ok(());
        }
        if let Some(host) = &server.host {
            self.by_host.entry(host.clone()).or_default().insert(id);
            if server.status == ServerStatus::Waiting {
                let queue = self.waiting.entry(host.clone()).or_default();
                queue.entry((server.created_at, id)).or_insert(patience);
            }
        }
        let count = self.by_project.entry(server.project_id.clone());
        *count.or_default() += 1;
        if let Some(old) = self.servers.insert(id, server) {
            self.count_out(&old.project_id);
        }
        self.show_to_table(id)
    }

    fn count_out(&mut self, project: &str) {
        if let Some(count) = self.by_project.get_mut(project) {
            *count -= 1;
            if *count == 0 {
                self.by_project.remove(project);
            }
        }
    }

    /// Removes a server from the indexes that do not apply to its new state.
    fn leave_indexes(&mut self, new: &Server) {
        let Some(old) = self.servers.get(&new.id) else {
            return;
        };
        let Some(host) = &old.host else { return };
        let stays = new.host.as_ref() == Some(host) && !new.status.is_gone();
        if !stays && let Some(there) = self.by_host.get_mut(host) {
            there.remove(&new.id);
            if there.is_empty() {
                self.by_host.remove(host);
            }
        }
        if (!stays || new.status != ServerStatus::Waiting)
            && let Some(queue) = self.waiting.get_mut(host)
        {
            queue.remove(&(old.created_at, old.id));
            if queue.is_empty() {
                self.waiting.remove(host);
            }
        }
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
            .max(self.resting.get(&server.id).copied())
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

    fn is_being_spared(&self, server: &Server) -> bool {
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
            && let Some(unsent) = self.unsent_notices.remove(&evacuation.id)
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
            .push(RegionEvent::Evacuation(boxed));
        self.index_evacuation(evacuation);
    }

    /// Puts an evacuation into memory.
    pub(crate) fn index_evacuation(&mut self, evacuation: Evacuation) {
        let id = evacuation.id;
        // An evacuation for another cause than preemption frees capacity that no claim has
        // reserved, so a request that was refused earlier may now succeed.
        if evacuation.cause != EvacuationCause::Preemption && !self.evacuations.contains_key(&id) {
            self.improvements += 1;
        }
        if !evacuation.state.is_final() {
            self.active.insert(id);
            self.leaving
                .entry(evacuation.host.clone())
                .or_default()
                .insert(id);
        } else if self.active.remove(&id)
            && let Some(there) = self.leaving.get_mut(&evacuation.host)
        {
            there.remove(&id);
            if there.is_empty() {
                self.leaving.remove(&evacuation.host);
            }
        }
        for scope in budgets::scopes(&evacuation) {
            self.by_scope.entry(scope).or_default().insert(id);
        }
        self.evacuations.insert(id, evacuation);
    }

    /// Removes an evacuation that no budget counts any more.
    pub(crate) fn forget_evacuation(&mut self, id: EvacuationId) {
        let Some(evacuation) = self.evacuations.remove(&id) else {
            return;
        };
        for scope in budgets::scopes(&evacuation) {
            if let Some(there) = self.by_scope.get_mut(&scope) {
                there.remove(&id);
                if there.is_empty() {
                    self.by_scope.remove(&scope);
                }
            }
        }
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
