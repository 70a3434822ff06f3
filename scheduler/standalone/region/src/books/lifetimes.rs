//! When running servers must get their notice because of their maximum lifetime. Derived from the
//! servers alone.

use super::index::same;
use ebbtide_model::flavor::MAX_LIFETIME_SECONDS;
use ebbtide_model::{Seconds, Server, ServerId, ServerStatus, Timestamp};
use std::collections::{BTreeSet, HashMap};

/// The time of the notice of each server that has one.
#[derive(Debug, Default)]
pub(crate) struct Lifetimes {
    at: HashMap<ServerId, Timestamp>,
    order: BTreeSet<(Timestamp, ServerId)>,
}

impl Lifetimes {
    /// Updates the entry of a server.
    pub(super) fn put(&mut self, server: &Server, default_grace: Seconds) {
        if let Some(before) = self.at.remove(&server.id) {
            self.order.remove(&(before, server.id));
        }
        if let Some(at) = notice_at(server, default_grace) {
            self.at.insert(server.id, at);
            self.order.insert((at, server.id));
        }
    }

    /// Servers whose notice is due.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<ServerId> {
        let due = self.order.iter().take_while(|(at, _)| *at <= now);
        due.map(|(_, id)| *id).collect()
    }

    /// Checks that the entries follow from the servers.
    pub(super) fn audit<'s>(
        &self,
        servers: impl Iterator<Item = &'s Server>,
        default_grace: Seconds,
    ) -> Result<(), String> {
        let at = servers.filter_map(|s| Some((s.id, notice_at(s, default_grace)?)));
        let at: HashMap<ServerId, Timestamp> = at.collect();
        same("lifetimes", &self.at, &at)?;
        let order = at.iter().map(|(id, at)| (*at, *id)).collect();
        same("the order of lifetimes", &self.order, &order)
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
