//! A tenant lets a server go before its grace period is over.

use super::act::named;
use super::{Evacuations, read};
use crate::error::NovaServiceError;
use crate::preemption::{Preemption, Victim, VictimState};
use ebbtide_model::ServerId;
use ebbtide_model::message::{Body, Release};

/// Whether a victim may be released: it has to leave and is not gone.
fn is_leaving(victim: &Victim) -> bool {
    let state = &victim.state;
    !state.progress().spare_requested
        && !matches!(
            state,
            VictimState::Evacuated { .. } | VictimState::Spared | VictimState::Failed { .. }
        )
}

impl Evacuations {
    /// Tells the agent of a victim not to wait for the end of its grace period. Any scheduler does,
    /// whichever drives the evacuation. Returns the record and the victim's place in it; `None`:
    /// the server is not leaving.
    ///
    /// # Errors
    /// Those of the ledger and of the bus to the agents.
    pub(crate) async fn release_early(
        &self,
        server: ServerId,
    ) -> Result<Option<(Preemption, usize)>, NovaServiceError> {
        let row = self.shared.ledger.open_row_of_victim(server.0).await?;
        let Some(record) = row.as_ref().and_then(read) else {
            return Ok(None);
        };
        let mut victims = record.victims.iter();
        let place = victims.position(|victim| victim.server == server && is_leaving(victim));
        let Some(place) = place else {
            return Ok(None);
        };
        let victim = &record.victims[place];
        let body = Body::Release(Release {
            evacuation_id: victim.evacuation,
            server_id: server,
        });
        self.send(&victim.host, named(victim, "release"), body)
            .await?;
        tracing::info!(%server, host = victim.host, "its owner releases it early");
        Ok(Some((record, place)))
    }
}
