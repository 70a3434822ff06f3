//! What must hold when somebody comes back, and that everybody does for whom there is room.

use super::checks::holds_room;
use super::world::RegionWorld;
use crate::violation::Promise;
use ebbtide_model::record::Change;
use ebbtide_model::{ResourceClass, Server, ServerStatus};

impl RegionWorld {
    /// Servers that a transaction tells to go on, which have waited until now.
    fn told_to_go_on<'a>(&self, changes: &'a [Change]) -> Vec<(&'a Server, Server)> {
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

    /// Before they are written: nobody too early, nobody elsewhere.
    pub(super) fn check_comebacks(&mut self, changes: &[Change]) {
        for (server, before) in self.told_to_go_on(changes) {
            self.resumed += 1;
            self.coming_back.extend(server.host.clone());
            if server.host != before.host {
                let what = "a server goes on where nothing of it is kept".to_owned();
                self.fail(Promise::ExactlyOnce, what);
            }
            let Some(waits) = &before.comeback else {
                continue;
            };
            let away = self.config.comeback.stay_away(waits.preempted);
            let early = waits.tries == 0 && waits.not_before < waits.since.plus(away);
            if early || self.written_at < waits.not_before {
                let what = format!(
                    "a server that had to leave {} times in a row comes back before {} are over",
                    waits.preempted, away
                );
                self.fail(Promise::NoThrashing, what);
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
                    "{host}: somebody comes back, and {} of {capacity} VCPUs are promised or taken",
                    capacity - free
                );
                self.fail(Promise::NoRoomTwice, what);
            }
        }
    }

    /// VCPUs of a host that nobody has, keeps or was promised, and all that it has. `None` if it has lied about that.
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

    /// Somebody who waits although there is room.
    pub(super) fn could_come_back(&self) -> Option<String> {
        let percent = i64::from(self.config.comeback.reserve_percent);
        for server in self.database.servers.values() {
            let Some(host) = server
                .host
                .as_deref()
                .filter(|_| server.waits_to_come_back())
            else {
                continue;
            };
            let enabled = self.database.hosts.get(host);
            let enabled = enabled.is_some_and(|h| h.disabled_reason.is_none());
            let agent = self.agents.iter().find(|a| a.name == host)?;
            // What is lost cannot go on.
            let kept = agent.hypervisor.guests.contains_key(&server.id);
            let Some((free, capacity)) = self.free_beyond_promises(host) else {
                continue;
            };
            let alone = free == capacity;
            // There are 1000 MiB for each VCPU; of memory the reserve is rounded less.
            let reserve = if alone {
                0
            } else {
                1000 * capacity * percent / 100
            };
            let needs = 1000 * i64::from(server.flavor.vcpus);
            if enabled && kept && 1000 * free - reserve >= needs {
                return Some(format!(
                    "{} waits on {host} for ever although there is room",
                    self.story.of(server.id.0)
                ));
            }
        }
        None
    }
}
