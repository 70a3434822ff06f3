//! Findings of an operator's audit: disagreements between the database, the memory and the agents'
//! reports.
//!
//! Operations under way are not judged: a server that is starting, leaving or being deleted is
//! between two states.

use crate::books::HostEntry;
use crate::{Region, orphaned_start};
use ebbtide_model::message::HostedState;
use ebbtide_model::record::Snapshot;
use ebbtide_model::{Host, HostHealth, Seconds, Server, ServerId, ServerStatus, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Disagreement {
    /// Stable code, listed in `docs/reference/errors.md`.
    pub code: &'static str,
    /// The subject: `server ID`, `host NAME`, `evacuation ID`, `region`.
    pub subject: String,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub next: &'static str,
}

/// What was examined, and the findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examination {
    /// Known hosts.
    pub hosts: usize,
    /// Hosts whose agents this scheduler has heard, so that their servers could be compared.
    pub compared_hosts: usize,
    /// Servers that are not gone.
    pub servers: usize,
    /// Evacuations under way.
    pub evacuations: usize,
    /// Every disagreement, by code and subject.
    pub findings: Vec<Disagreement>,
}

impl Region {
    /// Checks the region's consistency and compares it with the agents' last reports.
    /// `hears_agents`: this scheduler receives those reports.
    #[must_use]
    pub fn examine(&self, now: Timestamp, hears_agents: bool) -> Examination {
        let mut found = Vec::new();
        if let Some(held) = self.held_finding() {
            return Examination {
                hosts: self.hosts.len(),
                servers: self.servers.len(),
                evacuations: self.evacuations.active_count(),
                findings: vec![held],
                ..Examination::default()
            };
        }
        if let Err(what) = self.check_consistency() {
            found.push(Disagreement {
                code: "EB-AUDIT-101",
                subject: "region".to_owned(),
                what,
                next: "restart this scheduler, it reads everything anew; report what was found",
            });
        }
        self.overdue_evacuations(now, &mut found);
        let mut compared_hosts = 0;
        for (name, entry) in self.hosts.iter() {
            match entry.last_heartbeat() {
                Some(_) if hears_agents && entry.health != HostHealth::Down => {
                    compared_hosts += 1;
                    self.compare_host(name, entry, &mut found);
                }
                _ if entry.health == HostHealth::Down => self.silent_host(name, entry, &mut found),
                _ => {}
            }
        }
        self.refused_agents(now, &mut found);
        found.sort();
        Examination {
            hosts: self.hosts.len(),
            compared_hosts,
            servers: self.servers.len(),
            evacuations: self.evacuations.active_count(),
            findings: found,
        }
    }

    /// Tolerated delay of a heartbeat, of a report in a queue, or of a scheduler that has just come
    /// on duty.
    pub(crate) fn late(&self) -> Seconds {
        Seconds(self.config.host_down_seconds.0 / 2)
    }

    /// Finds evacuations that are past their time limit. Every wait has one.
    fn overdue_evacuations(&self, now: Timestamp, found: &mut Vec<Disagreement>) {
        for id in self.evacuations.active() {
            let Some(evacuation) = self.evacuations.get(&id) else {
                continue;
            };
            // Without a broker the notice cannot be sent, so the evacuation is not late.
            let unsent = self.evacuations.unsent(&id).is_some();
            if evacuation.give_up_at.plus(self.late()) < now && !unsent {
                found.push(Disagreement {
                    code: "EB-AUDIT-102",
                    subject: format!("evacuation {id}"),
                    what: format!(
                        "it is {} since its last limit at {}",
                        evacuation.state, evacuation.give_up_at
                    ),
                    next: "see whether a scheduler is on duty (ebbtide_on_duty) and what its log says",
                });
            }
        }
    }

    /// Finds removed hosts whose agents report. Only the scheduler that receives reports knows.
    fn refused_agents(&self, now: Timestamp, found: &mut Vec<Disagreement>) {
        for (name, removed) in &self.removed {
            let Some(heard_at) = removed.heard_at else {
                continue;
            };
            if heard_at.plus(self.config.host_down_seconds) >= now {
                found.push(Disagreement {
                    code: "EB-AUDIT-111",
                    subject: format!("host {name}"),
                    what: format!(
                        "it was removed, and its agent reports, the last time at {heard_at}"
                    ),
                    next: "stop the agent and delete its login and queue at the broker, or: ebbtide host readmit HOST",
                });
            }
        }
    }

    fn silent_host(&self, name: &str, entry: &HostEntry, found: &mut Vec<Disagreement>) {
        let there = self.servers_on(name).filter(|s| s.status.holds_room());
        let count = there.count();
        if count > 0 {
            let seen = entry.host.last_seen;
            let since = seen.map_or_else(|| "ever".to_owned(), |at| format!("since {at}"));
            found.push(Disagreement {
                code: "EB-AUDIT-103",
                subject: format!("host {name}"),
                what: format!(
                    "its agent has not been heard {since}; what became of its {count} servers is not known"
                ),
                next: "start its agent, or see whether the host lives",
            });
        }
    }

    /// Compares the last report of a host's agent with the region.
    fn compare_host(&self, name: &str, entry: &HostEntry, found: &mut Vec<Disagreement>) {
        let Some((heard_at, hosted)) = entry.last_heartbeat() else {
            return;
        };
        // Only a state that was reached well before the report can contradict it.
        let settled = |at: Option<Timestamp>| at.is_none_or(|at| at.plus(self.late()) < heard_at);
        let mut there: BTreeMap<ServerId, HostedState> = BTreeMap::new();
        for server in hosted {
            there.insert(server.server_id, server.state);
        }
        for (id, state) in &there {
            let known = self
                .servers
                .get(id)
                .filter(|s| s.host.as_deref() == Some(name));
            let orphan = self.servers.contains_key(&orphaned_start::id_of(*id, name));
            match known {
                None if orphan || self.is_saved_for_other_hosts(*id, *state, entry) => {}
                None if self.servers.deleted().contains(*id)
                    && !settled(self.servers.deleted().since(*id)) => {}
                None => found.push(Disagreement {
                    code: "EB-AUDIT-104",
                    subject: format!("server {id}"),
                    what: format!(
                        "host {name} has it ({state:?}), and the region knows of none there"
                    ),
                    next: "if it belongs to no server, end it on the host; else adopt it",
                }),
                Some(server) => {
                    let ended = matches!(
                        server.status,
                        ServerStatus::Stopped | ServerStatus::Hibernated
                    );
                    if ended && *state == HostedState::Running && settled(server.ended_at) {
                        found.push(Disagreement {
                            code: "EB-AUDIT-105",
                            subject: format!("server {id}"),
                            what: format!("it runs on host {name}, and is said to be {}", server.status),
                            next: "end it on the host, or delete it here: its room may be given away",
                        });
                    }
                }
            }
        }
        for server in self.servers_on(name) {
            self.missing(name, server, &there, &settled, found);
        }
    }

    /// True for a server that the host has stopped or hibernated on shared storage. The host that
    /// was asked to resume it is responsible for it, not this one.
    fn is_saved_for_other_hosts(
        &self,
        id: ServerId,
        state: HostedState,
        entry: &HostEntry,
    ) -> bool {
        let saved_storage = self.servers.get(&id).and_then(Server::saved_storage);
        state != HostedState::Running
            && saved_storage.is_some()
            && saved_storage == entry.host.storage
    }

    /// True if another host has stopped or hibernated the server on storage that both hosts share:
    /// it was to be resumed here and has not started.
    fn is_saved_on_other_host(&self, server: &Server) -> bool {
        let Some(storage) = server.saved_storage() else {
            return false;
        };
        let mut sharing = self.hosts.sharing(&storage);
        sharing.any(|(_, entry)| {
            let hosted = entry.last_heartbeat().map(|(_, hosted)| hosted);
            hosted.is_some_and(|all| {
                all.iter()
                    .any(|h| h.server_id == server.id && h.state != HostedState::Running)
            })
        })
    }

    fn missing(
        &self,
        host: &str,
        server: &Server,
        there: &BTreeMap<ServerId, HostedState>,
        settled: &dyn Fn(Option<Timestamp>) -> bool,
        found: &mut Vec<Disagreement>,
    ) {
        let state = there.get(&server.id);
        let gone = match server.status {
            ServerStatus::Active if !server.external => {
                state != Some(&HostedState::Running) && settled(server.launched_at)
            }
            ServerStatus::Stopped | ServerStatus::Hibernated => {
                state.is_none() && settled(server.ended_at) && !self.is_saved_on_other_host(server)
            }
            _ => false,
        };
        if gone {
            found.push(Disagreement {
                code: "EB-AUDIT-106",
                subject: format!("server {}", server.id),
                what: format!(
                    "it is said to be {} on host {host}, whose agent says {}",
                    server.status,
                    state.map_or_else(|| "that it has none such".to_owned(), |s| format!("{s:?}"))
                ),
                next: "nothing if it is in error soon; else look at the agent's log, and delete the server",
            });
        }
    }

    /// Records that differ between memory and database: `server ID`, `host NAME`, `evacuation ID`.
    #[must_use]
    pub fn differs(&self, snapshot: &Snapshot) -> BTreeSet<String> {
        let mut differs = BTreeSet::new();
        let mut seen: BTreeSet<ServerId> = BTreeSet::new();
        for server in &snapshot.servers {
            seen.insert(server.id);
            if self.servers.get(&server.id) != Some(server) {
                differs.insert(format!("server {}", server.id));
            }
        }
        let known = self.servers.values().map(|server| server.id);
        let unknown = known.filter(|id| !seen.contains(id));
        differs.extend(unknown.map(|id| format!("server {id}")));
        // The time of the last heartbeat is not written at every heartbeat.
        let lasting = |host: &Host| Host {
            last_seen: None,
            agent_session: None,
            ..host.clone()
        };
        for host in &snapshot.hosts {
            if host.removed_at.is_some() && self.removed.contains_key(&host.name) {
                continue;
            }
            let known = self.hosts.get(&host.name).map(|entry| lasting(&entry.host));
            if known != Some(lasting(host)) {
                differs.insert(format!("host {}", host.name));
            }
        }
        let under_way = snapshot.evacuations.iter().filter(|e| !e.state.is_final());
        let mut active: BTreeSet<_> = self.evacuations.active().collect();
        for evacuation in under_way {
            active.remove(&evacuation.id);
            // After a restart the region extends limits in memory only.
            let same = self.evacuations.get(&evacuation.id).is_some_and(|known| {
                let mut known = known.clone();
                known.give_up_at = evacuation.give_up_at;
                known == *evacuation
            });
            if !same {
                differs.insert(format!("evacuation {}", evacuation.id));
            }
        }
        differs.extend(active.into_iter().map(|id| format!("evacuation {id}")));
        differs
    }
}
