//! What agents say. Every report may be late, repeated or wrong; each is held against the state that it speaks about.

use crate::state::{HostEntry, Step};
use crate::{Event, Region, servers};
use ebbtide_model::message::{
    Body, Deleted, Draining, Evacuated, EvacuatedHow, EvacuationFailed, Heartbeat, HostedState,
    Message, Spared, StartFailed, Started,
};
use ebbtide_model::record::Change;
use ebbtide_model::server::Fault;
use ebbtide_model::{
    Evacuation, EvacuationId, EvacuationState, Host, ServerId, ServerStatus, Timestamp, names,
};
use std::collections::BTreeMap;

impl Region {
    pub(crate) fn report(&mut self, step: &mut Step<'_>, message: Message) {
        match message.body {
            Body::Heartbeat(m) => self.heartbeat(step, m, message.time),
            Body::Draining(m) => self.draining(step, &m),
            Body::Evacuated(m) => self.evacuated(step, &m),
            Body::EvacuationFailed(m) => self.evacuation_failed(step, &m),
            Body::Spared(m) => self.spared(step, &m),
            Body::Started(m) => self.started(step, &m, message.time),
            Body::StartFailed(m) => self.server_start_failed(step, &m),
            Body::Deleted(m) => self.deleted(step, &m),
            Body::Notice(_) | Body::Spare(_) | Body::Release(_) | Body::Start(_) | Body::Delete(_) => {
                step.ignored(format!(
                    "message {} of type {} is for an agent, not for the scheduler",
                    message.id,
                    message.body.event_type()
                ));
            }
        }
    }

    fn heartbeat(&mut self, step: &mut Step<'_>, beat: Heartbeat, said_at: Timestamp) {
        let known = self.hosts.get(&beat.host);
        if let Some(entry) = known
            && entry.host.agent_session == Some(beat.session)
            && beat.sequence <= entry.sequence
        {
            return;
        }
        let before = known.map(|entry| (entry.host.clone(), entry.health, entry.stored_seen));
        let host = Host {
            name: beat.host.clone(),
            inventory: beat.inventory,
            traits: beat.traits,
            disabled_reason: before.as_ref().and_then(|(h, ..)| h.disabled_reason.clone()),
            agent_session: Some(beat.session),
            last_seen: Some(step.now),
            created_at: before.as_ref().map_or(step.now, |(h, ..)| h.created_at),
        };
        if let Err(error) = host.check() {
            step.ignored(format!("heartbeat of {}: {error}", names::shorten(&host.name)));
            return;
        }
        let down_after = self.config.host_down_seconds.as_millis();
        let health = host.health(step.now, down_after);
        let mut stored_seen = before.as_ref().and_then(|(_, _, stored)| *stored);
        let changed = before.as_ref().is_none_or(|(old, old_health, _)| {
            *old_health != health
                || old.inventory != host.inventory
                || old.traits != host.traits
                || old.agent_session != host.agent_session
        });
        // A restarted scheduler takes the stored time for the agent's last word, so it must not grow old.
        let stale = stored_seen.is_none_or(|seen| step.now.millis_since(seen) > down_after / 4);
        if changed || stale {
            stored_seen = Some(step.now);
            step.effects.changes.push(Change::PutHost(Box::new(host.clone())));
        }
        if before.as_ref().is_none_or(|(old, ..)| old.inventory != host.inventory || old.traits != host.traits) {
            self.table.put_host(&host);
        }
        if before.as_ref().is_none_or(|(_, old_health, _)| *old_health != health) {
            self.table.set_health(&host.name, health);
            step.effects.events.push(Event::Host(Box::new(host.clone()), health));
        }
        let name = host.name.clone();
        let entry = HostEntry { host, health, sequence: beat.sequence, stored_seen };
        self.hosts.insert(name.clone(), entry);
        let there: BTreeMap<ServerId, HostedState> =
            beat.servers.iter().map(|h| (h.server_id, h.state)).collect();
        self.compare_servers(step, &name, &there, said_at);
    }

    /// Holds what the hypervisor has against what we believe: a server that was reported started and is not in a heartbeat that was
    /// written later is lost. Both times are the agent's, so its clock may be wrong.
    fn compare_servers(&mut self, step: &mut Step<'_>, host: &str, there: &BTreeMap<ServerId, HostedState>, said_at: Timestamp) {
        let ours: Vec<ServerId> = self.by_host.get(host).into_iter().flatten().copied().collect();
        let mut lost_any = false;
        for id in ours {
            let Some(mut server) = self.servers.get(&id).cloned() else { continue };
            let runs = there.get(&id) == Some(&HostedState::Running);
            if self.started_at.get(&id).is_some_and(|started| said_at < *started) {
                continue;
            }
            match server.status {
                ServerStatus::Active if !runs && !server.external => {
                    server.fault = Some(Fault {
                        code: servers::LOST.to_owned(),
                        message: format!("host {host} does not have it any more"),
                        at: step.now,
                    });
                    server.status = ServerStatus::Error;
                    self.save_server(step, server);
                    lost_any = true;
                }
                ServerStatus::Error if runs => {
                    server.fault = None;
                    server.status = ServerStatus::Active;
                    self.save_server(step, server);
                }
                _ => {}
            }
        }
        if lost_any {
            self.advance_waiting(step, Some(host));
        }
    }

    /// The evacuation that a report is about, if it is from the right host.
    fn reported(
        &self,
        step: &mut Step<'_>,
        id: EvacuationId,
        host: &str,
        server: ServerId,
        what: &str,
    ) -> Option<Evacuation> {
        let evacuation = self.evacuations.get(&id)?;
        if evacuation.host != host || evacuation.victim_id != server {
            step.ignored(format!(
                "{what} of evacuation {id} by {host} for server {server}: it is about server {} on {}",
                evacuation.victim_id, evacuation.host
            ));
            return None;
        }
        Some(evacuation.clone())
    }

    fn draining(&mut self, step: &mut Step<'_>, m: &Draining) {
        let Some(mut evacuation) = self.reported(step, m.evacuation_id, &m.host, m.server_id, "draining") else {
            if !self.evacuations.contains_key(&m.evacuation_id) {
                // An evacuation that never was, or ended long ago: nobody needs that room, so nobody shall leave.
                step.ignored(format!("draining of evacuation {}, which is not known: spared", m.evacuation_id));
                self.send_spare(step, &m.host, m.evacuation_id, m.server_id);
            }
            return;
        };
        match evacuation.state {
            EvacuationState::Claimed | EvacuationState::Notified | EvacuationState::Draining => {
                let first = evacuation.state != EvacuationState::Draining;
                evacuation.state = EvacuationState::Draining;
                evacuation.notified_at = evacuation.notified_at.or(Some(step.now));
                evacuation.draining_at = Some(m.notified_at);
                evacuation.deadline_at = Some(m.deadline_at);
                if !evacuation.spare_requested {
                    // By our clock: the agent's may differ. A repeated report does not lengthen it.
                    if first {
                        evacuation.give_up_at =
                            step.now.plus(evacuation.grace).plus(self.config.act_timeout_seconds);
                    }
                } else {
                    // The spare may have been lost with the agent's queue: ask again.
                    self.send_spare(step, &m.host, m.evacuation_id, m.server_id);
                }
                self.save_evacuation(step, evacuation);
            }
            EvacuationState::Spared | EvacuationState::Failed => {
                self.send_spare(step, &m.host, m.evacuation_id, m.server_id);
            }
            EvacuationState::Evacuated => {}
        }
    }

    fn evacuated(&mut self, step: &mut Step<'_>, m: &Evacuated) {
        let status = match m.how {
            EvacuatedHow::Terminated | EvacuatedHow::AlreadyGone => ServerStatus::Preempted,
            EvacuatedHow::Stopped => ServerStatus::Stopped,
            EvacuatedHow::Hibernated => ServerStatus::Hibernated,
        };
        let Some(evacuation) = self.reported(step, m.evacuation_id, &m.host, m.server_id, "evacuated") else {
            if !self.evacuations.contains_key(&m.evacuation_id) {
                step.ignored(format!("evacuated: evacuation {} is not known; the heartbeat decides", m.evacuation_id));
            }
            return;
        };
        if evacuation.state == EvacuationState::Evacuated {
            return;
        }
        // After "failed" or "spared" the agent has acted all the same: what is true is written down.
        self.end_evacuated(step, evacuation, status);
    }

    fn evacuation_failed(&mut self, step: &mut Step<'_>, m: &EvacuationFailed) {
        let Some(evacuation) = self.reported(step, m.evacuation_id, &m.host, m.server_id, "failed") else { return };
        if evacuation.state.is_final() {
            return;
        }
        if m.still_running {
            self.end_failed(step, evacuation, &names::shorten(&m.reason));
        } else {
            self.end_evacuated(step, evacuation, ServerStatus::Preempted);
        }
    }

    fn spared(&mut self, step: &mut Step<'_>, m: &Spared) {
        let Some(evacuation) = self.reported(step, m.evacuation_id, &m.host, m.server_id, "spared") else { return };
        if evacuation.state.is_final() {
            return;
        }
        if evacuation.spare_requested {
            self.end_spared(step, evacuation);
        } else {
            // We never asked for it: the agent will not act, so whoever needs the room has to be told.
            self.end_failed(step, evacuation, "the agent spared the victim without being asked");
        }
    }

    fn started(&mut self, step: &mut Step<'_>, m: &Started, said_at: Timestamp) {
        let Some(mut server) = self.servers.get(&m.server_id).cloned() else {
            step.ignored(format!("started: server {} on {} is not known", m.server_id, m.host));
            return;
        };
        let here = server.host.as_deref() == Some(&m.host);
        if here && server.status == ServerStatus::Building {
            server.status = ServerStatus::Active;
            self.started_at.insert(server.id, said_at);
            // An adopted server keeps its age.
            server.launched_at = server.launched_at.or(Some(m.at.min(step.now)));
            self.save_server(step, server);
        } else if !here && server.refused_hosts.contains(&m.host) {
            // We gave up on that host and went elsewhere; the one that came up late must go.
            let delete = ebbtide_model::message::Delete { server_id: m.server_id };
            step.send(&m.host, Body::Delete(delete), None);
        }
    }

    fn server_start_failed(&mut self, step: &mut Step<'_>, m: &StartFailed) {
        let building = self
            .servers
            .get(&m.server_id)
            .is_some_and(|s| s.status == ServerStatus::Building && s.host.as_deref() == Some(&m.host));
        if building {
            self.start_failed(step, m.server_id, &m.host, &names::shorten(&m.reason));
        }
    }

    fn deleted(&mut self, step: &mut Step<'_>, m: &Deleted) {
        let Some(mut server) = self.servers.get(&m.server_id).cloned() else { return };
        if server.host.as_deref() != Some(&m.host) || server.status != ServerStatus::Deleting {
            return;
        }
        let evacuation = server.evacuation_id.and_then(|id| self.evacuations.get(&id)).cloned();
        self.resting.remove(&server.id);
        self.finish(step, &mut server, ServerStatus::Deleted);
        match evacuation.filter(|e| !e.state.is_final()) {
            Some(mut evacuation) => {
                evacuation.reason = Some("deleted by its owner meanwhile".to_owned());
                self.end_evacuated(step, evacuation, ServerStatus::Deleted);
            }
            None => self.advance_waiting(step, Some(&m.host)),
        }
    }
}
