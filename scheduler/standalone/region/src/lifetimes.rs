//! Servers of flavors with a maximum lifetime, whose end is known from their launch.

use crate::Region;
use crate::evacuate::EvacuationReason;
use crate::transition::Transition;
use ebbtide_model::flavor::MAX_LIFETIME_SECONDS;
use ebbtide_model::{EvacuationCause, Seconds, Server, ServerId, ServerStatus, Timestamp};
use std::collections::{BTreeSet, HashMap};

/// When running servers must get their notice because of their maximum lifetime.
#[derive(Debug, Default)]
pub(crate) struct Lifetimes {
    at: HashMap<ServerId, Timestamp>,
    order: BTreeSet<(Timestamp, ServerId)>,
}

impl Lifetimes {
    /// Updates the entry of a server.
    pub(crate) fn put(&mut self, server: &Server, default_grace: Seconds) {
        if let Some(before) = self.at.remove(&server.id) {
            self.order.remove(&(before, server.id));
        }
        if let Some(at) = notice_at(server, default_grace) {
            self.at.insert(server.id, at);
            self.order.insert((at, server.id));
        }
    }

    /// Servers whose notice is due.
    fn due(&self, now: Timestamp) -> Vec<ServerId> {
        let due = self.order.iter().take_while(|(at, _)| *at <= now);
        due.map(|(_, id)| *id).collect()
    }
}

/// When the notice is due: one grace period before the end of the lifetime. `None` for a server
/// that does not run, has no maximum lifetime, or is started and ended by its caller (`external`).
fn notice_at(server: &Server, default_grace: Seconds) -> Option<Timestamp> {
    let launched = server.launched_at?;
    if server.status != ServerStatus::Active || server.external {
        return None;
    }
    // Most flavors have no maximum lifetime, and this function runs at every change of every
    // server.
    server.flavor.extra_specs.get(MAX_LIFETIME_SECONDS)?;
    let Seconds(lifetime) = server.flavor.properties().ok()?.max_lifetime?;
    let Seconds(grace) = server.grace(default_grace);
    Some(launched.plus(Seconds(lifetime.saturating_sub(grace))))
}

impl Region {
    /// Sends notices to servers whose lifetime ends. A server on a silent host gets its notice when
    /// the host is heard again, and one whose evacuation failed gets it after its rest.
    pub(crate) fn look_after_lifetimes(&mut self, transition: &mut Transition<'_>) {
        for id in self.lifetimes.due(transition.now) {
            let Some(server) = self.servers.get(&id).cloned() else {
                continue;
            };
            let host = server.host.as_ref().and_then(|host| self.hosts.get(host));
            // Hosts that are disabled are included: disabling only keeps new servers away.
            let down_after = self.config.host_down_seconds.as_millis();
            let is_reachable =
                host.is_some_and(|host| host.is_reachable(transition.now, down_after));
            let rests = self
                .resting
                .get(&id)
                .is_some_and(|until| *until > transition.now);
            if is_reachable && !rests {
                let why = EvacuationReason {
                    cause: EvacuationCause::MaxLifetime,
                    preemptor_id: None,
                    decision_id: None,
                    cost: 0.0,
                };
                self.begin_evacuation(transition, server, why);
            }
        }
    }
}
