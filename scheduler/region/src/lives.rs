//! Lives that end: written down once, when a server that ran does so no more.

use crate::Region;
use ebbtide_model::{EvacuationState, LifeEnd, PastLife, Server, ServerStatus, Timestamp};

impl Region {
    /// The life that ends with a server as it is going to be.
    ///
    /// One that is found to run after all goes on with its life: what is written when that ends stands in the place of this.
    pub(crate) fn life_over(&self, new: &Server, now: Timestamp) -> Option<PastLife> {
        let old = self.servers.get(&new.id)?;
        // One that was chosen before it ran, and is spared, goes on being started.
        let goes_on = runs(new.status) || new.status == ServerStatus::Building;
        if !runs(old.status) || goes_on {
            return None;
        }
        let launched_at = old.launched_at?;
        let host = old.host.clone()?;
        // It was read when the server was created.
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

    /// Whoever wanted it first has ended it: an owner who deletes a server that has had its notice gives back early what is taken anyway.
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
            // It was evacuated, also if this region has forgotten for what.
            _ => evacuation.map_or(LifeEnd::Preempted, |e| e.cause.into()),
        }
    }
}

/// True while a server is its owner's to use: neither being started nor being deleted.
fn runs(status: ServerStatus) -> bool {
    matches!(
        status,
        ServerStatus::Active | ServerStatus::Evacuating | ServerStatus::Reserved
    )
}
