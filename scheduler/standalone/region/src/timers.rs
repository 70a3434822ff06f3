//! Time limits: unanswered notices, servers that do not start, claims that wait too long,
//! remembered entries that are obsolete.

use crate::Region;
use crate::books::HostEntry;
use crate::evacuate::advance;
use crate::transition::Transition;
use ebbtide_evacuation::{EndReason, EvacuationEvent, Overdue, overdue};
use ebbtide_model::message::{HostedServer, HostedState};
use ebbtide_model::record::REMEMBER_GONE;
use ebbtide_model::{
    Evacuation, EvacuationId, EvacuationState, HostHealth, MessageId, Seconds, ServerId,
    ServerStatus, Timestamp,
};

/// Retention of spared and failed evacuations after budgets stop counting them. A late agent report
/// that the agent has acted may still arrive.
const KEEP_ENDED: Seconds = REMEMBER_GONE;
/// Retention of completed evacuations after budgets stop counting them. Later reports about them
/// change nothing; within this time the region accepts a repeated report without a log entry. At
/// hundreds of evacuations per second, ten minutes of them would need hundreds of megabytes.
const KEEP_EVACUATED: Seconds = Seconds(60);
/// Purge interval. A purge scans every remembered entry.
const FORGET_EVERY: Seconds = Seconds(10);

impl Region {
    pub(crate) fn published(
        &mut self,
        transition: &mut Transition<'_>,
        id: MessageId,
        evacuation: Option<EvacuationId>,
    ) {
        transition.unsend(id);
        self.servers
            .calls_mut()
            .published(id, transition.now.plus(self.config.start_timeout_seconds));
        let Some(evacuation_id) = evacuation else {
            return;
        };
        let newest = self.evacuations.unsent(&evacuation_id) == Some(id);
        self.evacuations.forget_notice(id);
        let Some(mut evacuation) = self.evacuations.get(&evacuation_id).cloned() else {
            return;
        };
        let first = advance(&mut evacuation, EvacuationEvent::NoticePublished);
        if first || (newest && evacuation.state == EvacuationState::Notified) {
            evacuation.notified_at = evacuation.notified_at.or(Some(transition.now));
            if !evacuation.spare_requested {
                // The agent's time to answer begins when the broker has the notice.
                evacuation.give_up_at = self.config.evacuation().notice_limit(transition.now);
            }
            self.save_evacuation(transition, evacuation);
        }
    }

    pub(crate) fn tick(&mut self, transition: &mut Transition<'_>) {
        self.look_after_hosts(transition);
        if self.restored.is_some() {
            return;
        }
        self.look_after_evacuations(transition);
        self.look_after_lifetimes(transition);
        self.look_after_market(transition);
        self.look_after_reclaims(transition);
        self.look_after_agents(transition);
        self.look_after_claims(transition);
        self.look_after_comebacks(transition);
        self.forget(transition.now);
    }

    fn look_after_evacuations(&mut self, transition: &mut Transition<'_>) {
        for id in self.evacuations.due(transition.now) {
            // An earlier evacuation in this loop may have changed this one.
            let still_due = |e: &&Evacuation| !e.state.is_final() && e.give_up_at <= transition.now;
            let Some(evacuation) = self.evacuations.get(&id).filter(still_due).cloned() else {
                continue;
            };
            self.overdue(transition, evacuation);
        }
    }

    fn overdue(&mut self, transition: &mut Transition<'_>, evacuation: Evacuation) {
        let victim = self.servers.get(&evacuation.victim_id).map(|s| s.status);
        let host = &evacuation.host;
        let next = match victim {
            Some(ServerStatus::Evacuating) => {
                overdue(self.wait_of(&evacuation), host, &self.config.evacuation())
            }
            // The owner's deletion frees the capacity; there is no notice to repeat.
            _ => Overdue::GiveUp(EndReason::DeletionUnconfirmed { host: host.clone() }),
        };
        match next {
            Overdue::Notify(_) => self.send_notice_again(transition, evacuation),
            Overdue::GiveUp(why) => {
                self.end_failed(transition, evacuation, EvacuationEvent::GivenUp, &why);
            }
            Overdue::Nothing => {}
        }
    }

    /// Places servers elsewhere whose start took too long. Repeats deletions, in case the broker
    /// has lost its queues.
    fn look_after_agents(&mut self, transition: &mut Transition<'_>) {
        let allowed = self.config.start_timeout_seconds;
        for id in self.servers.calls().overdue(transition.now) {
            let known = self.servers.get(&id).cloned();
            let Some((server, host)) = known.and_then(|s| s.host.clone().map(|h| (s, h))) else {
                continue;
            };
            let down = || {
                self.hosts
                    .get(&host)
                    .is_some_and(|h| h.health == HostHealth::Down)
            };
            match server.status {
                // The kept disk must not be deleted, and the server may run already: keep waiting.
                ServerStatus::Building if server.resumes() && down() => {
                    self.servers
                        .calls_mut()
                        .waits(id, transition.now.plus(allowed));
                }
                ServerStatus::Building if server.resumes() => self.resume_again(transition, server),
                // The host reports it as running, so only the report of the start is lost. The
                // repeated request makes the agent report again.
                ServerStatus::Building if self.is_reported_running(&host, id) => {
                    self.resume_again(transition, server);
                }
                ServerStatus::Building => {
                    let why = format!("the agent did not start the server within {allowed}");
                    self.start_failed(transition, id, &host, &why);
                }
                // The agent's queue already holds the message.
                ServerStatus::Deleting if down() => {
                    self.servers
                        .calls_mut()
                        .waits(id, transition.now.plus(allowed));
                }
                ServerStatus::Deleting => self.delete_again(transition, &server, &host),
                // An earlier server in this loop has changed this one: the region selected it as a
                // victim.
                _ => {}
            }
        }
    }

    /// True if the agent of a host that is up said in its last heartbeat that the server runs
    /// there.
    fn is_reported_running(&self, host: &str, id: ServerId) -> bool {
        let entry = self.hosts.get(host);
        let up = entry.filter(|entry| entry.health == HostHealth::Up);
        let heard = up.and_then(HostEntry::last_heartbeat);
        heard.is_some_and(|(_, hosted)| {
            let runs = |h: &HostedServer| h.server_id == id && h.state == HostedState::Running;
            hosted.iter().any(runs)
        })
    }

    /// Evacuations have time limits of their own. A claim that waits for anything else (a deletion)
    /// waits for `act_timeout_seconds`; then the region places it on another host.
    fn look_after_claims(&mut self, transition: &mut Transition<'_>) {
        let patience = transition.now.plus(self.config.act_timeout_seconds);
        let mut late: Vec<(ServerId, String)> = Vec::new();
        for host in self.servers.claims().hosts() {
            let evacuates = !self.needed_victims(&host).is_empty();
            if evacuates {
                self.servers.extend_claims(&host, patience);
            } else {
                let overdue = self.servers.claims().overdue(&host, transition.now);
                late.extend(overdue.into_iter().map(|id| (id, host.clone())));
            }
            transition.touch(&host);
        }
        for (id, host) in late {
            let why = format!(
                "servers that are being deleted did not go within {}",
                self.config.act_timeout_seconds
            );
            self.place_elsewhere(transition, id, &host, &why);
        }
    }

    pub(crate) fn forget(&mut self, now: Timestamp) {
        if now < self.forget_at {
            return;
        }
        self.forget_at = now.plus(FORGET_EVERY);
        self.servers.forget_rests(now);
        let oldest = now.minus(KEEP_ENDED);
        self.servers.deleted_mut().forget(oldest);
        let keeps = |e: &Evacuation| {
            let keep = match e.state {
                EvacuationState::Evacuated => KEEP_EVACUATED,
                _ => KEEP_ENDED,
            };
            let lately = e.ended_at.is_none_or(|ended| ended > now.minus(keep));
            lately || self.is_counted(e, now)
        };
        let over: Vec<EvacuationId> = self
            .evacuations
            .values()
            .filter(|e| !keeps(e))
            .map(|e| e.id)
            .collect();
        for id in over {
            self.evacuations.forget(id);
        }
    }
}
