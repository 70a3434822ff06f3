//! The end of a world, after its last fault: every evacuation and start comes to an end, and the
//! hosts then run the servers that the database lists.

use super::world::RegionWorld;
use crate::violation::Invariant;
use ebbtide_model::ServerStatus;

/// Longest time that a world may take to end, in seconds: three hosts are tried one after another,
/// each with its notices, grace periods and starts.
const SECONDS: u32 = 400;
/// Shortest, in seconds: two heartbeats, and the time after which a host counts as dead.
const AT_LEAST: u32 = 45;

impl RegionWorld {
    /// No more faults, then time until everything is over.
    pub(crate) fn finish(&mut self) {
        self.mend();
        self.flow();
        for second in 0..SECONDS {
            self.run(1);
            if self.broken.is_some() {
                return;
            }
            if second >= AT_LEAST && second % 5 == 0 && self.find_unfinished_work().is_none() {
                break;
            }
        }
        if let Some(what) = self.find_unfinished_work() {
            self.fail(Invariant::EverythingEnds, what);
        }
        for who in 0..self.schedulers.len() {
            if self.shared && self.catch_up(who) || self.leader() == Some(who) {
                self.check_region(who);
            }
        }
    }

    /// What is not over yet.
    fn find_unfinished_work(&self) -> Option<String> {
        if self.leader().is_none() {
            return Some("no scheduler leads".to_owned());
        }
        if let Some(e) = self.database.active.values().next() {
            return Some(format!(
                "an evacuation stays {} for ever ({})",
                e.state,
                self.event_log.of(e.id.0)
            ));
        }
        for server in self.database.servers.values() {
            let rests = matches!(
                server.status,
                ServerStatus::Active
                    | ServerStatus::Error
                    | ServerStatus::Stopped
                    | ServerStatus::Hibernated
                    | ServerStatus::Reserved
            );
            if !rests {
                return Some(format!(
                    "{} stays {} for ever",
                    self.event_log.of(server.id.0),
                    server.status
                ));
            }
        }
        if let Some(what) = self.could_come_back() {
            return Some(what);
        }
        if let Some(what) = self.stays_unpaid() {
            return Some(what);
        }
        if let Some(what) = self.token_astray() {
            return Some(what);
        }
        if !self.database.outbox.is_empty() {
            return Some(format!(
                "{} messages are never sent",
                self.database.outbox.len()
            ));
        }
        for agent in &self.agents {
            if !agent.is_quiet() {
                return Some(format!("the agent of {} does not come to rest", agent.name));
            }
            for id in agent
                .hypervisor
                .guests
                .keys()
                .filter(|id| agent.hypervisor.runs(**id))
            {
                let known = self.database.server(*id);
                let here = known.is_some_and(|s| {
                    s.status == ServerStatus::Active && s.host.as_ref() == Some(&agent.name)
                });
                if !here {
                    let is = known.map_or("unknown", |s| s.status.as_str());
                    return Some(format!(
                        "{} runs on {} and is {is}",
                        self.event_log.of(id.0),
                        agent.name
                    ));
                }
            }
        }
        let lost = self.database.servers.values().find(|s| {
            s.status == ServerStatus::Active
                && !s.external
                && !self
                    .agents
                    .iter()
                    .any(|a| Some(&a.name) == s.host.as_ref() && a.hypervisor.runs(s.id))
        });
        lost.map(|s| format!("{} is active and does not run", self.event_log.of(s.id.0)))
    }
}
