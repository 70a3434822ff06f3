//! Lives of servers: the time from a launch to its end. Each is recorded once, when the server
//! stops running.

use crate::Region;
use ebbtide_model::{EvacuationState, LifeEnd, PastLife, Server, ServerStatus, Timestamp};

impl Region {
    /// The life that ends when a server takes its new state.
    ///
    /// If the server turns out to run after all, its life continues; the record written at the real
    /// end replaces this one.
    pub(crate) fn ended_life(&self, new: &Server, now: Timestamp) -> Option<PastLife> {
        let old = self.servers.get(&new.id)?;
        // A victim that was selected before it ran, and is spared, returns to `Building`.
        let goes_on = runs(new.status) || new.status == ServerStatus::Building;
        if !runs(old.status) || goes_on {
            return None;
        }
        let launched_at = old.launched_at?;
        let host = old.host.clone()?;
        // The flavor was readable when the server was created.
        let properties = old.flavor.properties().ok()?;
        Some(PastLife {
            server_id: old.id,
            starts: old.starts,
            name: old.name.clone(),
            project_id: old.project_id.clone(),
            flavor: old.flavor.name.clone(),
            preemptible: properties.preemptible,
            price_per_hour: properties.price_per_hour,
            max_lifetime: properties.max_lifetime,
            zone: self.zone_of(&host).to_owned(),
            host,
            launched_at,
            ended_at: now.max(launched_at),
            end: self.end_of(old, new),
        })
    }

    /// Why a life ended. The first cause counts: a deletion by the owner after the notice counts as
    /// an end by the provider.
    fn end_of(&self, old: &Server, new: &Server) -> LifeEnd {
        let evacuation = old.evacuation_id.and_then(|id| self.evacuations.get(&id));
        let evacuation = evacuation.filter(|e| e.victim_starts == old.starts);
        match new.status {
            ServerStatus::Error => LifeEnd::Lost,
            ServerStatus::Deleting | ServerStatus::Deleted => {
                let had_notice = evacuation.filter(|e| {
                    let told = matches!(
                        e.state,
                        EvacuationState::Draining | EvacuationState::Evacuated
                    );
                    told && !e.spare_requested
                });
                had_notice.map_or(LifeEnd::Deleted, |e| e.cause.into())
            }
            // It was evacuated, even if the region no longer remembers the evacuation.
            _ => evacuation.map_or(LifeEnd::Preempted, |e| e.cause.into()),
        }
    }
}

/// True while the owner can use the server: neither being started nor being deleted.
fn runs(status: ServerStatus) -> bool {
    matches!(
        status,
        ServerStatus::Active | ServerStatus::Evacuating | ServerStatus::Reserved
    )
}
