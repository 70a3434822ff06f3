//! Applies the changes that other schedulers have written.
//!
//! Several schedulers may be active on one database. Each holds the whole region in memory and
//! applies the changes of the others in the order in which they were written (`ebbtide-store`,
//! `write_transaction`). The records in the database are the truth. What the database does not
//! contain (how much time an agent has left, which messages are unsent) begins anew now, as after a
//! restart. Nothing is decided here.

use crate::books::HostEntry;
use crate::{Region, RegionError};
use ebbtide_model::record::{Change, OutboxMessage};
use ebbtide_model::{
    BudgetScope, CloudEvent, Evacuation, EvacuationState, Host, HostHealth, MessageId, Server,
    ServerId, ServerStatus, Timestamp,
};
use std::collections::BTreeSet;

/// What applying one list of changes has touched.
#[derive(Default)]
struct ChangeScope<'c> {
    hosts: BTreeSet<String>,
    /// Victims of the changed evacuations: their state decides whether the engine may select them.
    victims: BTreeSet<ServerId>,
    sent: Vec<&'c OutboxMessage>,
    dequeued: Vec<MessageId>,
    aggregates: bool,
    events: Vec<CloudEvent>,
}

impl Region {
    /// Applies the changes that another scheduler has made durable with one commit. Returns the
    /// events for watchers, without decisions.
    ///
    /// # Errors
    /// The host table refuses a server because its flavor cannot be read. The caller must then read
    /// the region anew.
    pub fn apply_commit(
        &mut self,
        now: Timestamp,
        changes: &[Change],
    ) -> Result<Vec<CloudEvent>, RegionError> {
        let mut touched = ChangeScope::default();
        for change in changes {
            match change {
                Change::PutHost(host) => self.apply_host(&mut touched, host, now),
                Change::DeleteHost(name) => {
                    self.hosts.remove(name);
                    self.table.remove_host(name);
                    self.removed.remove(name);
                    self.improvements += 1;
                }
                Change::PutAggregate(aggregate) => {
                    self.aggregates.insert(aggregate.id, aggregate.clone());
                    touched.aggregates = true;
                }
                Change::DeleteAggregate(id) => {
                    self.aggregates.remove(id);
                    touched.aggregates = true;
                }
                Change::PutFlavor(flavor) => drop(self.flavors.insert(flavor.id, flavor.clone())),
                Change::DeleteFlavor(id) => drop(self.flavors.remove(id)),
                Change::PutGroup(group) => {
                    self.table.put_group(group);
                    self.groups.insert(group.id, group.clone());
                    self.catalog += 1;
                }
                Change::DeleteGroup(id) => {
                    self.groups.remove(id);
                    self.budgets.remove(&BudgetScope::Group(*id));
                    self.table.remove_group(*id);
                    self.catalog += 1;
                }
                Change::PutBudget(budget) => {
                    self.budgets.insert(budget.scope.clone(), budget.clone());
                    self.catalog += 1;
                }
                Change::DeleteBudget(scope) => {
                    self.budgets.remove(scope);
                    self.catalog += 1;
                }
                Change::PutServer(server) => self.apply_server(&mut touched, server, now)?,
                Change::PutEvacuation(evacuation) => {
                    self.apply_evacuation(&mut touched, evacuation)?;
                }
                // Only API queries read these, from the database.
                Change::PutDecision(_) | Change::PutLife(_) => {}
                Change::PutPrice(point) => self.market.put(point.clone()),
                Change::Enqueue(message) => touched.sent.push(message),
                Change::Dequeue(id) => touched.dequeued.push(*id),
                // Only the store sets the mark. A scheduler that was running reads everything anew
                // then, because numbers of commits are left out.
                Change::PutRestoreMark(_) => {}
                Change::DeleteRestoreMark => self.restored = None,
            }
        }
        if touched.aggregates {
            self.refresh_aggregates();
            self.catalog += 1;
        }
        for id in std::mem::take(&mut touched.victims) {
            self.show_to_table(id)?;
        }
        // Messages come last, because a message is noted with the state that it brought about.
        for message in &touched.sent {
            self.restore_unsent(message, now);
        }
        for id in &touched.dequeued {
            self.apply_dequeued(*id, now);
        }
        self.new_generations(&touched.hosts);
        Ok(touched.events)
    }

    fn apply_server(
        &mut self,
        touched: &mut ChangeScope<'_>,
        server: &Server,
        now: Timestamp,
    ) -> Result<(), RegionError> {
        let (id, status) = (server.id, server.status);
        let old = self.servers.get(&id).and_then(|old| old.host.clone());
        touched
            .hosts
            .extend(old.into_iter().chain(server.host.clone()));
        if status.is_gone() {
            self.servers.deleted_mut().add(id, now);
        }
        match status {
            // A server whose start was requested has not been reported since.
            ServerStatus::Building if server.launched_at.is_none() => {
                self.servers.forget_started(id);
            }
            ServerStatus::Building | ServerStatus::Waiting => {}
            ServerStatus::Stopped | ServerStatus::Hibernated => {
                self.servers.forget_started(id);
            }
            _ => {
                if let Some(reported) = server.reported_at.or(server.launched_at) {
                    self.servers.note_started_once(id, reported);
                }
            }
        }
        self.index_server(server.clone(), now.plus(self.config.act_timeout_seconds))?;
        let asked = matches!(status, ServerStatus::Building | ServerStatus::Deleting);
        if asked && !self.servers.calls().contains(id) {
            let until = now.plus(self.config.start_timeout_seconds);
            self.servers.calls_mut().waits(id, until);
        }
        touched
            .events
            .push(CloudEvent::Server(Box::new(server.clone())));
        Ok(())
    }

    fn apply_evacuation(
        &mut self,
        touched: &mut ChangeScope<'_>,
        evacuation: &Evacuation,
    ) -> Result<(), RegionError> {
        touched.hosts.insert(evacuation.host.clone());
        touched.victims.insert(evacuation.victim_id);
        if evacuation.state == EvacuationState::Failed {
            let ended = evacuation.ended_at.unwrap_or_default();
            let until = self.config.evacuation().rest_limit(ended);
            self.servers.rest_at_least(evacuation.victim_id, until);
        }
        let before = self.evacuations.get(&evacuation.id).map(|e| e.state);
        self.index_evacuation(evacuation.clone());
        if before == Some(EvacuationState::Failed) && evacuation.state == EvacuationState::Evacuated
        {
            // The loop over the touched victims updates the host table in the end.
            self.rest_anew(evacuation.victim_id)?;
        }
        let event = CloudEvent::Evacuation(Box::new(evacuation.clone()));
        touched.events.push(event);
        Ok(())
    }

    /// Applies a host record. A scheduler writes it when something about the host changes, and from
    /// time to time because it has heard the agent. A scheduler that does not hear agents itself
    /// therefore takes a host for silent a little later than one that does.
    fn apply_host(&mut self, touched: &mut ChangeScope<'_>, host: &Host, now: Timestamp) {
        if host.removed_at.is_some() {
            if self.hosts.get(&host.name).is_some() {
                let event = CloudEvent::Host(Box::new(host.clone()), HostHealth::Disabled);
                touched.events.push(event);
            }
            return self.note_removed(host);
        }
        let down_after = self.config.host_down_seconds.as_millis();
        let before = self.hosts.get(&host.name).cloned();
        let mut entry = match &before {
            Some(before) => before.with_record(host.clone()),
            None => HostEntry::restored(host.clone(), now),
        };
        let heard = before
            .as_ref()
            .is_none_or(|before| host.last_seen > before.host.last_seen);
        if heard {
            let trusted = now.as_millis().saturating_add(down_after + down_after / 4);
            entry.trust_until(Timestamp::from_millis(trusted));
        }
        entry.health = entry.health_at(now, down_after);
        let same = |what: &dyn Fn(&HostEntry) -> bool| before.as_ref().is_some_and(what);
        let same_room =
            same(&|old| old.host.inventory == host.inventory && old.host.traits == host.traits);
        let same_health = same(&|old| old.health == entry.health);
        if !same_room {
            self.table.put_host(&entry.host);
        }
        if !same_room || !same_health {
            self.table.set_health(&host.name, entry.health);
            self.improvements += 1;
            touched.hosts.insert(host.name.clone());
            let event = CloudEvent::Host(Box::new(entry.host.clone()), entry.health);
            touched.events.push(event);
        }
        self.hosts.put(entry);
    }

    /// Notes a dequeued message: the broker has it, or it was withdrawn.
    fn apply_dequeued(&mut self, id: MessageId, now: Timestamp) {
        let until = now.plus(self.config.start_timeout_seconds);
        self.servers.calls_mut().published(id, until);
        self.evacuations.forget_notice(id);
    }

    /// Notes that time has passed, without deciding anything: for a scheduler that is not on duty.
    pub fn observe(&mut self, now: Timestamp) {
        let down_after = self.config.host_down_seconds.as_millis();
        let mut changed = BTreeSet::new();
        for name in self.hosts.update_health(now, down_after) {
            if let Some(entry) = self.hosts.get(&name) {
                self.table.set_health(&name, entry.health);
                self.improvements += u64::from(entry.health == HostHealth::Up);
            }
            changed.insert(name);
        }
        self.new_generations(&changed);
        self.forget(now);
    }
}
