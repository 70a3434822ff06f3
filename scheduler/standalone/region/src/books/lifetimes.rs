//! When running servers must get their notice because of their maximum lifetime. Derived from the
//! servers alone; the index is that of `ebbtide-evacuation`.

use ebbtide_evacuation::Lifetimes;
use ebbtide_model::flavor::MAX_LIFETIME_SECONDS;
use ebbtide_model::index::same;
use ebbtide_model::{Seconds, Server, ServerStatus, Timestamp};

/// Checks that the entries follow from the servers.
pub(super) fn audit<'s>(
    lifetimes: &Lifetimes,
    servers: impl Iterator<Item = &'s Server>,
    default_grace: Seconds,
) -> Result<(), String> {
    let mut derived = Lifetimes::default();
    for server in servers {
        derived.put(server.id, notice_at(server, default_grace));
    }
    same("lifetimes", lifetimes, &derived)
}

/// When the notice of a server is due. `None` for a server that does not run, has no maximum
/// lifetime, or is started and ended by its caller (`external`).
pub(super) fn notice_at(server: &Server, default_grace: Seconds) -> Option<Timestamp> {
    let launched = server.launched_at?;
    if server.status != ServerStatus::Active || server.external {
        return None;
    }
    // Most flavors have no maximum lifetime, and this function runs at every change of every
    // server.
    server.flavor.extra_specs.get(MAX_LIFETIME_SECONDS)?;
    let lifetime = server.flavor.properties().ok()?.max_lifetime?;
    let grace = server.grace(default_grace);
    Some(ebbtide_evacuation::notice_at(launched, lifetime, grace))
}
