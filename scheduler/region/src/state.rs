//! The region itself: what it holds, how it is restored, and the door through which every input comes.

use crate::{Command, Effects, Event, Ids, Input, RegionConfig, RegionError, Reply};
use ebbtide_engine::{Engine, HostTable, Instance, Phase};
use ebbtide_model::message::{Body, Message};
use ebbtide_model::record::{Change, OutboxMessage, Snapshot};
use ebbtide_model::{
    Aggregate, AggregateId, BudgetScope, DisruptionBudget, Evacuation, EvacuationId, Flavor, FlavorId,
    GroupId, Host, HostHealth, MessageId, Server, ServerGroup, ServerId, ServerStatus, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use uuid::Uuid;

/// Who the scheduler is on the bus.
pub(crate) const SOURCE: &str = "/ebbtide/scheduler";

/// A host and what is known of its agent.
#[derive(Debug, Clone)]
pub(crate) struct HostEntry {
    pub(crate) host: Host,
    pub(crate) health: HostHealth,
    /// The newest heartbeat of the present session.
    pub(crate) sequence: u64,
    /// The `last_seen` that is in the database: it is not written at every heartbeat.
    pub(crate) stored_seen: Option<Timestamp>,
}

/// The state machine. See the crate's text.
pub struct Region {
    pub(crate) config: RegionConfig,
    pub(crate) engine: Arc<Engine>,
    pub(crate) table: HostTable,
    pub(crate) hosts: BTreeMap<String, HostEntry>,
    pub(crate) aggregates: BTreeMap<AggregateId, Aggregate>,
    pub(crate) flavors: BTreeMap<FlavorId, Flavor>,
    pub(crate) groups: BTreeMap<GroupId, ServerGroup>,
    pub(crate) budgets: BTreeMap<BudgetScope, DisruptionBudget>,
    /// Servers that are not gone.
    pub(crate) servers: HashMap<ServerId, Server>,
    /// Servers by the host where they are or are going to be, if they are not gone.
    pub(crate) by_host: BTreeMap<String, BTreeSet<ServerId>>,
    /// Evacuations under way, and those that budgets still count.
    pub(crate) evacuations: HashMap<EvacuationId, Evacuation>,
    /// Evacuations under way, in the order in which something is due.
    pub(crate) active: BTreeSet<EvacuationId>,
    /// Victims of each preemptor, while their evacuations are under way.
    pub(crate) victims_of: HashMap<ServerId, BTreeSet<EvacuationId>>,
    /// Claims that wait for room, by host, in the order of their decisions.
    pub(crate) waiting: BTreeMap<String, Vec<ServerId>>,
    /// Servers that an agent was told to start, with the time at which another host is tried.
    pub(crate) building: BTreeMap<ServerId, Timestamp>,
    /// Notices that the broker has not confirmed yet.
    pub(crate) unsent_notices: HashMap<EvacuationId, MessageId>,
    /// Victims whose evacuation failed, with the end of their rest.
    pub(crate) resting: BTreeMap<ServerId, Timestamp>,
    /// When agents said that they had started servers, by their clocks: a heartbeat from before says nothing about those.
    pub(crate) started_at: HashMap<ServerId, Timestamp>,
}

impl Region {
    /// A region as the database knows it.
    ///
    /// Evacuations that were under way get at least one more notice timeout from `now` on: reports about them may be waiting in
    /// the scheduler's queue, and a scheduler that was down must not punish agents for its own silence.
    ///
    /// # Errors
    /// A configuration out of range, or a snapshot that contradicts itself.
    pub fn restore(
        config: RegionConfig,
        engine: Arc<Engine>,
        snapshot: Snapshot,
        now: Timestamp,
    ) -> Result<Self, RegionError> {
        config.check()?;
        let mut region = Self {
            config,
            engine,
            table: HostTable::new(),
            hosts: BTreeMap::new(),
            aggregates: snapshot.aggregates.into_iter().map(|a| (a.id, a)).collect(),
            flavors: snapshot.flavors.into_iter().map(|f| (f.id, f)).collect(),
            groups: BTreeMap::new(),
            budgets: snapshot.budgets.into_iter().map(|b| (b.scope.clone(), b)).collect(),
            servers: HashMap::new(),
            by_host: BTreeMap::new(),
            evacuations: HashMap::new(),
            active: BTreeSet::new(),
            victims_of: HashMap::new(),
            waiting: BTreeMap::new(),
            building: BTreeMap::new(),
            unsent_notices: HashMap::new(),
            resting: BTreeMap::new(),
            started_at: HashMap::new(),
        };
        for host in snapshot.hosts {
            let health = host.health(now, region.config.host_down_seconds.as_millis());
            region.table.put_host(&host);
            region.table.set_health(&host.name, health);
            let entry = HostEntry { health, sequence: 0, stored_seen: host.last_seen, host };
            region.hosts.insert(entry.host.name.clone(), entry);
        }
        region.refresh_aggregates();
        for group in snapshot.groups {
            region.table.put_group(&group);
            region.groups.insert(group.id, group);
        }
        let patience = now.plus(region.config.notice_timeout_seconds);
        for mut evacuation in snapshot.evacuations {
            if !evacuation.state.is_final() {
                evacuation.give_up_at = evacuation.give_up_at.max(patience);
            }
            region.index_evacuation(evacuation);
        }
        for message in snapshot.outbox {
            if let Some(evacuation) = message.evacuation_id {
                region.unsent_notices.insert(evacuation, message.id);
            }
        }
        let mut servers = snapshot.servers;
        servers.sort_by_key(|s| (s.created_at, s.id));
        for server in servers {
            region.index_server(server, now)?;
        }
        Ok(region)
    }

    /// Deals with one input. The reply may be given, and the events told, once the changes are durable.
    ///
    /// # Errors
    /// What was refused; there are no effects then.
    pub fn handle(
        &mut self,
        now: Timestamp,
        ids: &mut dyn Ids,
        input: Input,
    ) -> Result<(Reply, Effects), RegionError> {
        let mut step = Step { now, ids, effects: Effects::default() };
        let reply = match input {
            Input::Command(command) => self.command(&mut step, command)?,
            Input::Report(message) => {
                self.report(&mut step, message);
                Reply::Done
            }
            Input::Published { id, evacuation_id } => {
                self.published(&mut step, id, evacuation_id);
                Reply::Done
            }
            Input::Tick => {
                self.tick(&mut step);
                Reply::Done
            }
        };
        Ok((reply, step.effects))
    }

    fn command(&mut self, step: &mut Step<'_>, command: Command) -> Result<Reply, RegionError> {
        match command {
            Command::CreateServers(create) => self.create_servers(step, *create),
            Command::WhatIf(request) => self.what_if(step, &request),
            Command::DeleteServer(id) => self.delete_server(step, id),
            Command::ReleaseServer(id) => self.release_server(step, id),
            Command::AdoptServer(adopt) => self.adopt_server(step, *adopt),
            Command::DisableHost { name, reason } => self.set_disabled(step, &name, Some(reason)),
            Command::EnableHost(name) => self.set_disabled(step, &name, None),
            Command::CreateFlavor(flavor) => self.create_flavor(step, flavor),
            Command::DeleteFlavor(name) => self.delete_flavor(step, &name),
            Command::PutAggregate(aggregate) => self.put_aggregate(step, aggregate),
            Command::DeleteAggregate(name) => self.delete_aggregate(step, &name),
            Command::CreateGroup(group) => self.create_group(step, group),
            Command::DeleteGroup(name) => self.delete_group(step, &name),
            Command::PutBudget(budget) => self.put_budget(step, budget),
            Command::DeleteBudget(scope) => self.delete_budget(step, &scope),
        }
    }

    /// Tells the table which aggregates there are.
    pub(crate) fn refresh_aggregates(&mut self) {
        let all: Vec<Aggregate> = self.aggregates.values().cloned().collect();
        self.table.set_aggregates(&all);
    }

    fn index_server(&mut self, server: Server, now: Timestamp) -> Result<(), RegionError> {
        if let Some(host) = server.host.clone().filter(|_| !server.status.is_gone()) {
            self.by_host.entry(host.clone()).or_default().insert(server.id);
            match server.status {
                ServerStatus::Waiting => self.waiting.entry(host).or_default().push(server.id),
                ServerStatus::Building => {
                    self.building.insert(server.id, now.plus(self.config.start_timeout_seconds));
                }
                _ => {}
            }
        }
        if let Some(instance) = self.instance_of(&server)? {
            self.table.put_instance(&instance)?;
        }
        if !server.status.is_gone() {
            self.servers.insert(server.id, server);
        }
        Ok(())
    }

    pub(crate) fn index_evacuation(&mut self, evacuation: Evacuation) {
        if evacuation.state.is_final() {
            self.active.remove(&evacuation.id);
            self.unsent_notices.remove(&evacuation.id);
            if let Some(others) = self.victims_of.get_mut(&evacuation.preemptor_id) {
                others.remove(&evacuation.id);
                if others.is_empty() {
                    self.victims_of.remove(&evacuation.preemptor_id);
                }
            }
        } else {
            self.active.insert(evacuation.id);
            self.victims_of.entry(evacuation.preemptor_id).or_default().insert(evacuation.id);
        }
        self.evacuations.insert(evacuation.id, evacuation);
    }

    /// The server as the engine's table sees it; `None` if it holds no room.
    pub(crate) fn instance_of(&self, server: &Server) -> Result<Option<Instance>, RegionError> {
        let (true, Some(host)) = (server.status.holds_room(), server.host.clone()) else {
            return Ok(None);
        };
        let properties = server.flavor.properties()?;
        let protected = properties.protected.unwrap_or(self.config.default_protected_seconds);
        let protected_until = server
            .launched_at
            .map(|launched| launched.plus(protected))
            .max(self.resting.get(&server.id).copied());
        Ok(Some(Instance {
            id: server.id,
            name: server.name.clone(),
            project_id: server.project_id.clone(),
            host,
            resources: properties.resources,
            preemptible: properties.preemptible,
            group_id: server.group_id,
            launched_at: server.launched_at,
            protected_until,
            price_per_hour: properties.price_per_hour,
            priority: properties.priority,
            phase: match server.status {
                ServerStatus::Waiting => Phase::Claimed,
                ServerStatus::Building => Phase::Building,
                ServerStatus::Evacuating | ServerStatus::Deleting => Phase::Leaving,
                _ => Phase::Running,
            },
        }))
    }

    /// Writes a server: memory, host table, database, watchers.
    pub(crate) fn save_server(&mut self, step: &mut Step<'_>, server: Server) {
        let old_host = self.servers.get(&server.id).and_then(|old| old.host.clone());
        if let Some(old) = old_host.filter(|old| server.host.as_ref() != Some(old) || server.status.is_gone()) {
            if let Some(there) = self.by_host.get_mut(&old) {
                there.remove(&server.id);
            }
            if let Some(queue) = self.waiting.get_mut(&old) {
                queue.retain(|id| *id != server.id);
            }
        }
        if server.status != ServerStatus::Building {
            self.building.remove(&server.id);
        }
        if let Some(host) = server.host.clone().filter(|_| !server.status.is_gone()) {
            self.by_host.entry(host.clone()).or_default().insert(server.id);
            let queue = self.waiting.entry(host).or_default();
            match (server.status == ServerStatus::Waiting, queue.contains(&server.id)) {
                (true, false) => queue.push(server.id),
                (false, true) => queue.retain(|id| *id != server.id),
                _ => {}
            }
        }
        // A server's flavor was checked when it was created, so it is readable; its host exists, or it would not be there.
        match self.instance_of(&server) {
            Ok(Some(instance)) => {
                if let Err(error) = self.table.put_instance(&instance) {
                    step.ignored(format!("server {}: the host table refused it: {error}", server.id));
                }
            }
            _ => {
                self.table.remove_instance(server.id);
            }
        }
        step.effects.changes.push(Change::PutServer(Box::new(server.clone())));
        step.effects.events.push(Event::Server(Box::new(server.clone())));
        if server.status.is_gone() {
            self.servers.remove(&server.id);
            self.started_at.remove(&server.id);
        } else {
            self.servers.insert(server.id, server);
        }
    }

    /// Writes an evacuation: memory, database, watchers.
    pub(crate) fn save_evacuation(&mut self, step: &mut Step<'_>, evacuation: Evacuation) {
        step.effects.changes.push(Change::PutEvacuation(Box::new(evacuation.clone())));
        step.effects.events.push(Event::Evacuation(Box::new(evacuation.clone())));
        self.index_evacuation(evacuation);
    }

    /// How the engine decides here.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The host table, for reading.
    #[must_use]
    pub fn table(&self) -> &HostTable {
        &self.table
    }
}

/// One input on its way through the region.
pub(crate) struct Step<'a> {
    pub(crate) now: Timestamp,
    pub(crate) ids: &'a mut dyn Ids,
    pub(crate) effects: Effects,
}

impl Step<'_> {
    /// Puts a message for an agent into the outbox and returns its id.
    pub(crate) fn send(&mut self, host: &str, body: Body, notice_of: Option<EvacuationId>) -> MessageId {
        let message =
            Message { id: MessageId(self.ids.next()), source: SOURCE.to_owned(), time: self.now, body };
        match message.to_bytes() {
            Ok(bytes) => self.effects.changes.push(Change::Enqueue(OutboxMessage {
                id: message.id,
                host: host.to_owned(),
                body: bytes,
                evacuation_id: notice_of,
                created_at: self.now,
            })),
            // Only numbers that are not finite cannot be written, and what we send to agents has none.
            Err(error) => self.ignored(format!("message {} to {host}: {error}", message.id)),
        }
        message.id
    }

    /// Says that something was not followed.
    pub(crate) fn ignored(&mut self, why: String) {
        self.effects.events.push(Event::Ignored(why));
    }

    /// A new identifier.
    pub(crate) fn uuid(&mut self) -> Uuid {
        self.ids.next()
    }
}
