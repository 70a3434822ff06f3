//! Servers of flavors with a maximum lifetime, whose end is known from their launch.

use crate::Region;
use crate::evacuate::EvacuationReason;
use crate::transition::Transition;
use ebbtide_model::EvacuationCause;

impl Region {
    /// Sends notices to servers whose lifetime ends. A server on a silent host gets its notice when
    /// the host is heard again, and one whose evacuation failed gets it after its rest.
    pub(crate) fn look_after_lifetimes(&mut self, transition: &mut Transition<'_>) {
        for id in self.servers.lifetimes().due(transition.now) {
            let Some(server) = self.servers.get(&id).cloned() else {
                continue;
            };
            let host = server.host.as_ref().and_then(|host| self.hosts.get(host));
            // Hosts that are disabled are included: disabling only keeps new servers away.
            let down_after = self.config.host_down_seconds.as_millis();
            let is_reachable =
                host.is_some_and(|host| host.is_reachable(transition.now, down_after));
            let rests = self.servers.rests(id, transition.now);
            if is_reachable && !rests {
                let why = EvacuationReason::alone(EvacuationCause::MaxLifetime);
                self.begin_evacuation(transition, server, why);
            }
        }
    }
}
