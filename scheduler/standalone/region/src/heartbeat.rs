//! Heartbeats: which hosts exist, whether their agents are alive, and what their hypervisors run.

use crate::books::HostEntry;
use crate::transition::Transition;
use crate::{Region, servers};
use ebbtide_model::message::{Heartbeat, HostedState};
use ebbtide_model::record::Change;
use ebbtide_model::server::ServerFailure;
use ebbtide_model::{
    CloudEvent, EvacuationState, Host, Server, ServerId, ServerStatus, Timestamp, names,
};
use std::collections::BTreeSet;

impl Region {
    pub(crate) fn heartbeat(
        &mut self,
        transition: &mut Transition<'_>,
        mut beat: Heartbeat,
        sent_at: Timestamp,
    ) {
        let (now, down_after) = (transition.now, self.config.host_down_seconds.as_millis());
        let before = self.hosts.get(&beat.host);
        if before.is_some_and(|entry| entry.is_newer_than(&beat, sent_at, now, down_after)) {
            return;
        }
        let host = Host {
            name: beat.host.clone(),
            inventory: std::mem::take(&mut beat.inventory),
            traits: std::mem::take(&mut beat.traits),
            disabled_reason: before.and_then(|b| b.host.disabled_reason.clone()),
            reclaim: before.and_then(|b| b.host.reclaim.clone()),
            agent_session: Some(beat.session),
            removed_at: None,
            last_seen: Some(now),
            storage: beat.storage.take(),
            created_at: before.map_or(now, |b| b.host.created_at),
        };
        if let Err(error) = host.check() {
            let name = names::shorten(&host.name);
            transition.ignored(format!("heartbeat of {name}: {error}"));
            return;
        }
        if self.restored.is_none() {
            // Only needed to reconcile a restored database; for all hosts it would be megabytes.
            beat.servers
                .iter_mut()
                .for_each(|server| server.facts = None);
        }
        let name = &beat.host;
        let was_set_back = before.is_some_and(|entry| entry.is_set_back(&beat, sent_at));
        let heard = HostEntry::heard(before, host, &beat, sent_at, now, down_after);
        let (health, entry) = (heard.entry.health, heard.entry);
        if heard.proves_two_agents {
            transition.alarm(
                "EB-REGION-007",
                format!(
                    "two agents speak for host {name} (sessions {} and another): nothing is placed there and nothing that it has is given away \
                     until one of them has been silent for a while. A cloned image? Give each machine a name of its own",
                    beat.session
                ),
            );
        }
        if was_set_back {
            self.trust_again(name, sent_at);
        }
        if heard.to_store {
            let stored = Box::new(entry.host.clone());
            transition.effects.changes.push(Change::PutHost(stored));
        }
        if heard.new_capacity {
            self.table.put_host(&entry.host);
            transition.touch(name);
        }
        if heard.new_capacity || heard.new_health {
            self.improvements += 1;
        }
        if heard.new_health {
            self.table.set_health(name, health);
            transition.change(name);
            let event = CloudEvent::Host(Box::new(entry.host.clone()), health);
            transition.effects.events.push(event);
        }
        let contested = entry.contested;
        self.hosts.put(entry);
        let running: BTreeSet<ServerId> = beat
            .servers
            .iter()
            .filter(|h| h.state == HostedState::Running)
            .map(|h| h.server_id)
            .collect();
        if !contested && self.restored.is_none() {
            self.compare_servers(transition, name, &running, sent_at);
        }
    }

    /// The agent's clock was set back, so its earlier times cannot be compared with its new ones.
    /// Limits the start times on this host to the time of this heartbeat.
    fn trust_again(&mut self, host: &str, sent_at: Timestamp) {
        self.servers.limit_started(host, sent_at);
    }

    /// Compares what the hypervisor runs with what the region expects. A server that should run is
    /// lost if it is missing in two heartbeats that the agent wrote after it had reported the
    /// start. One is not enough: the agent may have written it while the server was coming up. Both
    /// times are the agent's, so an error of its clock does not matter.
    fn compare_servers(
        &mut self,
        transition: &mut Transition<'_>,
        host: &str,
        running: &BTreeSet<ServerId>,
        sent_at: Timestamp,
    ) {
        let ours: Vec<ServerId> = self.servers.on(host).map(|server| server.id).collect();
        let before = self.hosts.take_missing(host);
        let mut missing = BTreeSet::new();
        let down_after = self.config.host_down_seconds.as_millis();
        let may_be_elsewhere = self.hosts.get(host);
        let may_be_elsewhere =
            may_be_elsewhere.is_some_and(|entry| entry.former_may_live(transition.now, down_after));
        for id in ours {
            let Some(mut server) = self.servers.get(&id).cloned() else {
                continue;
            };
            match (server.status, running.contains(&id)) {
                (ServerStatus::Active, false) if !server.external => {
                    let too_early = self.servers.started_at(id).is_some_and(|at| sent_at < at);
                    if too_early {
                        continue;
                    }
                    if !before.contains(&id) || may_be_elsewhere {
                        missing.insert(id);
                        self.request_end_report(transition, host, &server);
                        continue;
                    }
                    server.fault = Some(ServerFailure {
                        code: servers::LOST.to_owned(),
                        message: format!(
                            "it does not run on host {host} any more, and no request asked for that"
                        ),
                        at: transition.now,
                    });
                    server.status = ServerStatus::Error;
                    server.ended_at = Some(transition.now);
                    self.save_server(transition, server);
                }
                (ServerStatus::Error, true) => {
                    server.fault = None;
                    server.status = ServerStatus::Active;
                    server.ended_at = None;
                    self.save_server(transition, server);
                }
                (ServerStatus::Error, false) if self.was_lost_lately(&server, transition.now) => {
                    self.request_end_report(transition, host, &server);
                }
                _ => {}
            }
        }
        self.hosts.set_missing(host, missing);
    }

    /// A missing server may have left by an evacuation that the region gave up because the agent's
    /// report, and the spare request, were lost. The region asks the agent again whether the server
    /// lives, and the agent repeats its answer.
    fn request_end_report(&self, transition: &mut Transition<'_>, host: &str, server: &Server) {
        let failed = self.evacuations.of_victim(server.id).filter(|e| {
            e.victim_starts == server.starts && e.host == host && e.state == EvacuationState::Failed
        });
        for evacuation in failed {
            self.send_spare(transition, host, evacuation.id, server.id);
        }
    }

    fn was_lost_lately(&self, server: &Server, now: Timestamp) -> bool {
        let lost = server
            .fault
            .as_ref()
            .is_some_and(|f| f.code == servers::LOST);
        let until = |at: Timestamp| at.plus(self.config.failed_victim_rest_seconds);
        lost && server.ended_at.is_some_and(|at| now < until(at))
    }

    /// Detects hosts whose agents have become silent.
    pub(crate) fn look_after_hosts(&mut self, transition: &mut Transition<'_>) {
        let down_after = self.config.host_down_seconds.as_millis();
        self.hosts.update_contested(transition.now);
        for name in self.hosts.update_health(transition.now, down_after) {
            let Some((host, health)) = self.hosts.store_seen(&name) else {
                continue;
            };
            self.table.set_health(&name, health);
            transition.change(&name);
            self.improvements += 1;
            let host = Box::new(host.clone());
            let stored = Change::PutHost(host.clone());
            transition.effects.changes.push(stored);
            let event = CloudEvent::Host(host, health);
            transition.effects.events.push(event);
        }
    }
}
