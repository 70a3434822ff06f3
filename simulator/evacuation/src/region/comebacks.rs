//! Checks of servers that come back after an evacuation, and the check that every one comes back
//! for which there is capacity.

use super::checks::holds_room;
use super::world::RegionWorld;
use crate::agent::Agent;
use crate::violation::Invariant;
use ebbtide_model::record::Change;
use ebbtide_model::{ResourceClass, Server, ServerStatus};

impl RegionWorld {
    /// Servers that a transaction tells to go on, which have waited until now.
    fn resumed_servers<'a>(&self, changes: &'a [Change]) -> Vec<(&'a Server, Server)> {
        let told = |change: &'a Change| match change {
            Change::PutServer(s) if s.status == ServerStatus::Building && s.resumes() => Some(s),
            _ => None,
        };
        changes
            .iter()
            .filter_map(told)
            .filter_map(|server| {
                let before = self.database.server(server.id)?;
                before
                    .waits_to_come_back()
                    .then(|| (&**server, before.clone()))
            })
            .collect()
    }

    /// Whether both hosts share the storage in which it was kept.
    fn shares(&self, server: &Server, before: &Server) -> bool {
        let has_it = |host: Option<&str>| {
            self.agents
                .iter()
                .any(|a| Some(a.name.as_str()) == host && a.hypervisor.shared.is_some())
        };
        before.saved_storage().is_some()
            && has_it(server.host.as_deref())
            && has_it(before.host.as_deref())
    }

    /// Before the write: no server comes back too early, or on a host that does not keep it.
    pub(super) fn check_comebacks(&mut self, changes: &[Change]) {
        for (server, before) in self.resumed_servers(changes) {
            self.resumed += 1;
            self.coming_back.extend(server.host.clone());
            self.moved += u64::from(server.host != before.host);
            if server.host != before.host && !self.shares(server, &before) {
                let what = "a server goes on where nothing of it is kept".to_owned();
                self.fail(Invariant::ExactlyOnce, what);
            }
            let Some(waits) = &before.comeback else {
                continue;
            };
            let away = self.config.comeback.waiting_time(waits.preempted);
            let early = waits.tries == 0 && waits.not_before < waits.since.plus(away);
            if early || self.written_at < waits.not_before {
                let what = format!(
                    "a server that had to leave {} times in a row comes back before {} are over",
                    waits.preempted, away
                );
                self.fail(Invariant::NoThrashing, what);
            }
        }
    }

    /// Once they are written: all that runs, leaves or is promised on the host fits together.
    pub(super) fn check_room_of_comebacks(&mut self) {
        let hosts = std::mem::take(&mut self.coming_back);
        for host in hosts {
            if let Some((free, capacity)) = self.free_beyond_promises(&host)
                && free < 0
            {
                let what = format!(
                    "{host}: a server comes back, and {} of {capacity} VCPUs are promised or taken",
                    capacity - free
                );
                self.fail(Invariant::NoRoomTwice, what);
            }
        }
    }

    /// Free VCPUs of a host, without those that a server has, keeps or was promised, and the total.
    /// `None` if a heartbeat of the host was wrong.
    fn free_beyond_promises(&self, host: &str) -> Option<(i64, i64)> {
        let place = self.agents.iter().position(|a| a.name == host)?;
        if self.liars[place] {
            return None;
        }
        let inventory = &self.agents[place].hypervisor.inventory;
        let capacity = inventory.get(&ResourceClass::vcpu())?.capacity();
        let capacity = i64::try_from(capacity).ok()?;
        let there = self.database.servers.values();
        let there = there.filter(|s| s.host.as_deref() == Some(host) && holds_room(s));
        let taken: i64 = there.map(|s| i64::from(s.flavor.vcpus)).sum();
        Some((capacity - taken, capacity))
    }

    /// Whether a server that comes back fits into what is free, and the reserve is left. False for
    /// a host that has lied about that.
    fn has_room_for(&self, server: &Server, host: &str) -> bool {
        let Some((free, capacity)) = self.free_beyond_promises(host) else {
            return false;
        };
        let percent = i64::from(self.config.comeback.reserve_percent);
        // There are 1000 MiB for each VCPU; of memory the reserve is rounded less.
        let reserve = match free == capacity {
            true => 0,
            false => 1000 * capacity * percent / 100,
        };
        1000 * free - reserve >= 1000 * i64::from(server.flavor.vcpus)
    }

    /// A host that shares the storage of a waiting server and has capacity for it. No server may
    /// wait on that host, because it could reserve the capacity for itself.
    fn could_go_on_elsewhere(&self, server: &Server, own: &str) -> Option<&str> {
        server.saved_storage()?;
        let waits_on = |host: &str| {
            let mut all = self.database.servers.values();
            all.any(|s| s.waits_to_come_back() && s.host.as_deref() == Some(host))
        };
        let may = |host: &str| {
            let known = self.database.hosts.get(host);
            known.is_some_and(|h| h.disabled_reason.is_none() && h.storage.is_some())
                && server.group_id.is_none()
                && !server.refused_hosts.iter().any(|h| h == host)
                && !waits_on(host)
        };
        let others = self.agents.iter().map(|a| a.name.as_str());
        let mut others = others.filter(|host| *host != own && may(host));
        others.find(|host| self.has_room_for(server, host))
    }

    /// A token that no server needs any more, or that a server waits for and cannot have.
    pub(super) fn token_astray(&self) -> Option<String> {
        let shared = self
            .agents
            .iter()
            .find_map(|a| a.hypervisor.shared.as_ref())?;
        for id in shared.storage.borrow().list_saved() {
            let known = self.database.server(id);
            if !known.is_some_and(Server::waits_to_come_back) {
                let is = known.map_or("unknown", |s| s.status.as_str());
                let who = self.event_log.of(id.0);
                return Some(format!("{who} is {is}, and is kept for ever"));
            }
        }
        let mut waiting = self.database.servers.values();
        let astray = waiting.find(|s| {
            let own = self
                .agents
                .iter()
                .find(|a| Some(&a.name) == s.host.as_ref());
            // A guest that was lost before its start was reported is no token's fault: who let it
            // go on last has it.
            let lost = |a: &Agent| {
                let shared = a.hypervisor.shared.as_ref();
                shared.is_some_and(|shared| shared.has_lost(s.id))
                    && !a.hypervisor.guests.contains_key(&s.id)
            };
            s.waits_to_come_back()
                && s.saved_storage().is_some()
                && !self.agents.iter().any(lost)
                && !own.is_some_and(|a| a.hypervisor.can_go_on(s.id))
        });
        astray.map(|s| {
            format!(
                "{} waits, and no host can have its token",
                self.event_log.of(s.id.0)
            )
        })
    }

    /// A server that waits although there is capacity for it.
    pub(super) fn could_come_back(&self) -> Option<String> {
        for server in self.database.servers.values() {
            let Some(host) = server
                .host
                .as_deref()
                .filter(|_| server.waits_to_come_back() && self.pays_now(server))
            else {
                continue;
            };
            let enabled = self.database.hosts.get(host);
            let enabled = enabled.is_some_and(|h| h.disabled_reason.is_none());
            let agent = self.agents.iter().find(|a| a.name == host)?;
            // What is lost cannot go on.
            let kept = agent.hypervisor.can_go_on(server.id);
            let fits = self.has_room_for(server, host);
            if kept && let Some(other) = self.could_go_on_elsewhere(server, host) {
                return Some(format!(
                    "{} waits on {host} for ever although {other} shares its storage and has room",
                    self.event_log.of(server.id.0)
                ));
            }
            if enabled && kept && fits {
                return Some(format!(
                    "{} waits on {host} for ever although there is room",
                    self.event_log.of(server.id.0)
                ));
            }
        }
        None
    }
}
