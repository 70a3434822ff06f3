//! Agent reports about servers and evacuations. A report may be late, repeated or wrong; the region
//! compares each with the state that it is about.

use crate::Region;
use crate::books::HostEntry;
use crate::evacuate::advance;
use crate::transition::Transition;
use crate::{orphaned_start, relocation, servers};
use ebbtide_evacuation::{EndReason, EvacuationEvent, LateNotice, agent_text, late_notice};
use ebbtide_model::message::{
    Body, Deleted, Draining, Evacuated, EvacuationEnd, EvacuationFailed, Message, Spared,
    StartFailed, Started,
};
use ebbtide_model::{
    Evacuation, EvacuationId, EvacuationState, Server, ServerId, ServerStatus, Timestamp,
};

/// True if an agent reports about an earlier start than the present one. Agents that do not count
/// starts send 0; the region accepts that for servers that were never started twice on one host.
fn is_of_another_start(server: &Server, attempt: u32) -> bool {
    attempt != server.starts && (attempt != 0 || server.resumes())
}

impl Region {
    pub(crate) fn report(&mut self, transition: &mut Transition<'_>, message: Message) {
        if self.refuse_removed(transition, &message.body) || self.is_too_early(&message, transition)
        {
            return;
        }
        match message.body {
            Body::Heartbeat(m) => self.heartbeat(transition, m, message.time),
            Body::Draining(m) => self.draining(transition, &m),
            Body::Evacuated(m) => self.evacuated(transition, &m),
            Body::EvacuationFailed(m) => self.evacuation_failed(transition, &m),
            Body::Spared(m) => self.spared(transition, &m),
            Body::Started(m) => self.started(transition, &m, message.time),
            Body::StartFailed(m) => self.server_start_failed(transition, &m),
            Body::Deleted(m) => self.deleted(transition, &m, message.time),
            Body::Notice(_)
            | Body::Spare(_)
            | Body::Release(_)
            | Body::Start(_)
            | Body::Delete(_) => {
                transition.ignored(format!(
                    "message {} of type {} is for an agent, not for the scheduler",
                    message.id,
                    message.body.event_type()
                ));
            }
        }
    }

    /// The evacuation that a report is about, if the right host sent it.
    fn reported(
        &self,
        transition: &mut Transition<'_>,
        id: EvacuationId,
        host: &str,
        server: ServerId,
        what: &str,
    ) -> Option<Evacuation> {
        let evacuation = self.evacuations.get(&id)?;
        if evacuation.host != host || evacuation.victim_id != server {
            transition.ignored(format!(
                "{what} of evacuation {id} by {host} for server {server}: it is about server {} on {}",
                evacuation.victim_id, evacuation.host
            ));
            return None;
        }
        Some(evacuation.clone())
    }

    fn draining(&mut self, transition: &mut Transition<'_>, m: &Draining) {
        let Some(mut evacuation) = self.reported(
            transition,
            m.evacuation_id,
            &m.host,
            m.server_id,
            "draining",
        ) else {
            if !self.evacuations.contains_key(&m.evacuation_id) {
                // The evacuation never existed or ended long ago: no claim needs the capacity, so
                // the victim may stay.
                transition.ignored(format!(
                    "draining of evacuation {}, which is not known: spared",
                    m.evacuation_id
                ));
                self.send_spare(transition, &m.host, m.evacuation_id, m.server_id);
            }
            return;
        };
        if evacuation.state.is_final() {
            if evacuation.state != EvacuationState::Evacuated {
                self.send_spare(transition, &m.host, m.evacuation_id, m.server_id);
            }
            return;
        }
        let before = evacuation.clone();
        // A repeated report does not extend the limit.
        let first = advance(&mut evacuation, EvacuationEvent::Draining);
        evacuation.notified_at = evacuation.notified_at.or(Some(transition.now));
        evacuation.draining_at = Some(m.notified_at);
        evacuation.deadline_at = Some(m.deadline_at);
        if evacuation.spare_requested {
            // The spare may have been lost with the agent's queue: send it again.
            self.send_spare(transition, &m.host, m.evacuation_id, m.server_id);
        } else if first {
            // By the scheduler's clock, because the agent's may differ.
            let deadline = transition.now.plus(evacuation.grace);
            evacuation.give_up_at = self.config.evacuation().act_limit(deadline);
        }
        if evacuation != before {
            self.save_evacuation(transition, evacuation);
        }
    }

    fn evacuated(&mut self, transition: &mut Transition<'_>, m: &Evacuated) {
        let status = match m.how {
            // The region itself migrates no server; one that OpenStack has migrated is not on its
            // hosts any more.
            EvacuationEnd::Terminated
            | EvacuationEnd::Fenced
            | EvacuationEnd::AlreadyGone
            | EvacuationEnd::Migrated => ServerStatus::Preempted,
            EvacuationEnd::Stopped => ServerStatus::Stopped,
            EvacuationEnd::Hibernated => ServerStatus::Hibernated,
        };
        let Some(mut evacuation) = self.reported(
            transition,
            m.evacuation_id,
            &m.host,
            m.server_id,
            "evacuated",
        ) else {
            if !self.evacuations.contains_key(&m.evacuation_id) {
                transition.ignored(format!(
                    "evacuated: evacuation {} is not known; the heartbeat decides",
                    m.evacuation_id
                ));
            }
            return;
        };
        if evacuation.state == EvacuationState::Evacuated {
            return;
        }
        let contested = |host: &HostEntry| host.is_contested(transition.now);
        if m.how == EvacuationEnd::AlreadyGone && self.hosts.get(&m.host).is_some_and(contested) {
            transition.ignored(format!(
                "evacuated: host {} does not have server {}, but two agents speak for it, and it may run where the other one is",
                m.host, m.server_id
            ));
            return;
        }
        if m.how == EvacuationEnd::Fenced {
            evacuation.reason = Some(EndReason::Fenced.to_string());
        }
        let saved_on_storage = self
            .servers
            .get(&m.server_id)
            .and_then(relocation::saved_on_storage);
        let (status, storage) = match saved_on_storage {
            Some((kept, storage)) if status == ServerStatus::Preempted => (kept, Some(storage)),
            _ => (status, m.storage.clone()),
        };
        // The agent may have acted after it reported "failed" or "spared"; its last report is what
        // is true.
        self.end_evacuated(transition, evacuation, status, storage.as_deref());
    }

    /// Handles a failed evacuation. Whether or not the victim runs, its capacity is not free, so no
    /// claim gets it. If the victim does not run, the heartbeats report that.
    fn evacuation_failed(&mut self, transition: &mut Transition<'_>, m: &EvacuationFailed) {
        let Some(evacuation) =
            self.reported(transition, m.evacuation_id, &m.host, m.server_id, "failed")
        else {
            return;
        };
        if evacuation.state.is_final() {
            return;
        }
        if let Some(attempt) = m.late_attempt
            && self.handle_late_notice(transition, &evacuation, attempt)
        {
            return;
        }
        let still_running = m.still_running;
        let why = EndReason::AgentFailure {
            text: m.reason.clone(),
            still_running,
        };
        let event = EvacuationEvent::Failed { still_running };
        self.end_failed(transition, evacuation, event, &why);
    }

    /// Handles the answer that a notice came too late. False if it is a failure.
    fn handle_late_notice(
        &mut self,
        transition: &mut Transition<'_>,
        evacuation: &Evacuation,
        attempt: u32,
    ) -> bool {
        // The owner's deletion frees the capacity; there is no notice to repeat.
        let victim = self.servers.get(&evacuation.victim_id).map(|s| s.status);
        if victim != Some(ServerStatus::Evacuating) {
            return false;
        }
        let wait = self.wait_of(evacuation);
        match late_notice(wait, attempt, &self.config.evacuation()) {
            LateNotice::Superseded => {}
            LateNotice::Notify(_) => self.send_notice_again(transition, evacuation.clone()),
            LateNotice::Failure => return false,
        }
        true
    }

    fn spared(&mut self, transition: &mut Transition<'_>, m: &Spared) {
        let Some(evacuation) =
            self.reported(transition, m.evacuation_id, &m.host, m.server_id, "spared")
        else {
            return;
        };
        if evacuation.state.is_final() {
            return;
        }
        if evacuation.spare_requested {
            self.end_spared(transition, evacuation);
        } else {
            // The scheduler never requested this. The agent will not act, so the preemptor must be
            // placed elsewhere.
            let host = evacuation.host.clone();
            let why = EndReason::SparedUnasked { host };
            self.end_failed(transition, evacuation, EvacuationEvent::Spared, &why);
        }
    }

    fn started(&mut self, transition: &mut Transition<'_>, m: &Started, sent_at: Timestamp) {
        let Some(mut server) = self.servers.get(&m.server_id).cloned() else {
            transition.ignored(format!(
                "started: server {} on {} is not known",
                m.server_id, m.host
            ));
            return;
        };
        let here = server.host.as_deref() == Some(&m.host);
        let (id, status) = (server.id, server.status);
        if here && is_of_another_start(&server, m.attempt) {
            return;
        }
        if here && matches!(status, ServerStatus::Building | ServerStatus::Evacuating) {
            let news = self.servers.note_started(id, sent_at);
            if status == ServerStatus::Building {
                server.status = ServerStatus::Active;
            } else if !news {
                return;
            }
            server.reported_at = Some(sent_at);
            // An adopted server keeps its launch time.
            server.launched_at = server
                .launched_at
                .or_else(|| Some(m.at.min(transition.now)));
            server.fault = server.fault.filter(|f| f.code != servers::PREEMPTED);
            self.save_server(transition, server);
        } else if !here && server.refused_hosts.contains(&m.host) {
            let left = orphaned_start::id_of(id, &m.host);
            let known = self.servers.contains_key(&left);
            if !known && !orphaned_start::has_confirmed_absence(&server, &m.host, sent_at) {
                // The region gave up on that host, and the host said that nothing was left. Now the
                // server came up there and must be deleted.
                self.leave_orphaned_start(transition, &server, &m.host, "it came up late");
            }
        }
    }

    fn server_start_failed(&mut self, transition: &mut Transition<'_>, m: &StartFailed) {
        let server = self.servers.get(&m.server_id).filter(|s| {
            s.status == ServerStatus::Building
                && s.host.as_deref() == Some(&m.host)
                && !is_of_another_start(s, m.attempt)
        });
        match server.cloned() {
            Some(server) if server.resumes() => self.resume_failed(transition, server, m),
            Some(_) => self.start_failed(transition, m.server_id, &m.host, &agent_text(&m.reason)),
            None => {}
        }
    }

    fn deleted(&mut self, transition: &mut Transition<'_>, m: &Deleted, sent_at: Timestamp) {
        let is_meant = |id: &ServerId| {
            self.servers.get(id).is_some_and(|s| {
                s.host.as_deref() == Some(&m.host) && s.status == ServerStatus::Deleting
            })
        };
        let candidates = [m.server_id, orphaned_start::id_of(m.server_id, &m.host)];
        let Some(id) = candidates.into_iter().find(is_meant) else {
            return;
        };
        let Some(mut server) = self.servers.get(&id).cloned() else {
            return;
        };
        let evacuation = server
            .evacuation_id
            .and_then(|id| self.evacuations.get(&id))
            .cloned();
        self.finish(transition, &mut server, ServerStatus::Deleted);
        self.left(transition, &server, &m.host, sent_at);
        if let Some(mut evacuation) = evacuation.filter(|e| !e.state.is_final()) {
            evacuation.reason = Some(EndReason::DeletedByOwner.to_string());
            self.end_evacuated(transition, evacuation, ServerStatus::Deleted, None);
        }
    }
}
