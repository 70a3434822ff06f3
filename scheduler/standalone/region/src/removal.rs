//! Hosts that operators remove for good.
//!
//! The host leaves the book and the host table. Its record stays in the database as a mark, because
//! an agent that comes back would otherwise register the host again.

use crate::transition::Transition;
use crate::{Region, RegionError};
use ebbtide_model::message::Body;
use ebbtide_model::record::Change;
use ebbtide_model::{CloudEvent, Host, HostHealth, Server, ServerStatus, Timestamp, names};
use uuid::Uuid;

/// A removed host.
#[derive(Debug, Clone, Default)]
pub(crate) struct RemovedHost {
    /// The agent session whose refusal was reported. Each session is reported once.
    reported: Option<Uuid>,
    /// The agent's last heartbeat since the removal.
    pub(crate) heard_at: Option<Timestamp>,
}

/// Why a removed host is disabled, for schedulers that do not know removed hosts.
const REASON: &str = "removed";

impl Region {
    /// Removes a host whose agent is silent, and that has neither servers nor evacuations. Servers
    /// that were deleted while the agent was silent end here: no agent will report their end.
    pub(crate) fn remove_host(
        &mut self,
        transition: &mut Transition<'_>,
        name: &str,
    ) -> Result<(), RegionError> {
        if self.removed.contains_key(name) {
            return Ok(());
        }
        self.check_removable(transition, name)?;
        let deleting: Vec<Server> = self.servers.on(name).cloned().collect();
        for mut server in deleting {
            let unsent = self.servers.calls_mut().unsent(server.id);
            if let Some(message) = unsent {
                transition.unsend(message);
            }
            self.finish(transition, &mut server, ServerStatus::Deleted);
        }
        let Some(mut host) = self.hosts.get(name).map(|entry| entry.host.clone()) else {
            return Err(RegionError::unknown_host(name));
        };
        host.removed_at = Some(transition.now);
        host.disabled_reason = Some(REASON.to_owned());
        host.reclaim = None;
        self.note_removed(&host);
        let event = CloudEvent::Host(Box::new(host.clone()), HostHealth::Disabled);
        transition.effects.events.push(event);
        let change = Change::PutHost(Box::new(host));
        transition.effects.changes.push(change);
        Ok(())
    }

    fn check_removable(&self, transition: &Transition<'_>, name: &str) -> Result<(), RegionError> {
        let refuse = |why: String| {
            Err(RegionError::HostInUse {
                host: names::shorten(name),
                why,
            })
        };
        let Some(entry) = self.hosts.get(name) else {
            return Err(RegionError::unknown_host(name));
        };
        let evacuations = self.evacuations.values();
        let running = evacuations.filter(|e| e.host == name && !e.state.is_final());
        let running = running.count();
        if running > 0 {
            return refuse(format!(
                "evacuations under way: {running}; wait until `ebbtide evacuation list` shows that they have ended"
            ));
        }
        let stays = |server: &&Server| server.status != ServerStatus::Deleting;
        let servers = self.servers.on(name).filter(stays).count();
        if servers > 0 {
            return refuse(format!(
                "servers on it: {servers}; `ebbtide host show` lists them, delete them first"
            ));
        }
        let down_after = self.config.host_down_seconds;
        if entry.is_reachable(transition.now, down_after.as_millis()) {
            return refuse(format!(
                "its agent still reports; stop the agent, and try again {down_after} later"
            ));
        }
        Ok(())
    }

    /// Lets the agent of a removed host register it anew. A host that is not removed stays as it
    /// is, so that repeating the call is safe.
    pub(crate) fn readmit_host(
        &mut self,
        transition: &mut Transition<'_>,
        name: &str,
    ) -> Result<(), RegionError> {
        if self.removed.remove(name).is_some() {
            let change = Change::DeleteHost(name.to_owned());
            transition.effects.changes.push(change);
            return Ok(());
        }
        match self.hosts.get(name) {
            Some(_) => Ok(()),
            None => Err(RegionError::unknown_host(name)),
        }
    }

    /// Takes a removed host out of memory.
    pub(crate) fn note_removed(&mut self, host: &Host) {
        self.hosts.remove(&host.name);
        self.table.remove_host(&host.name);
        self.improvements += 1;
        self.removed.entry(host.name.clone()).or_default();
    }

    /// True for a report of a removed host, which has no effect: an answer to it would make the
    /// agent's queue again. Each session of the agent is reported once.
    pub(crate) fn refuse_removed(&mut self, transition: &mut Transition<'_>, body: &Body) -> bool {
        let host = body.reporting_host();
        let Some(removed) = host.and_then(|host| self.removed.get_mut(host)) else {
            return false;
        };
        if matches!(body, Body::Heartbeat(_)) {
            removed.heard_at = Some(transition.now);
        }
        if let Body::Heartbeat(beat) = body
            && removed.reported.replace(beat.session) != Some(beat.session)
        {
            transition.alarm(
                "EB-REGION-010",
                format!(
                    "the agent of host {0} reports (session {1}, servers: {2}), but the host was removed: its reports have no effect. \
                     Stop the agent and delete its login at the broker, or let the host register again: ebbtide host readmit {0}",
                    beat.host,
                    beat.session,
                    beat.servers.len()
                ),
            );
        }
        true
    }
}
