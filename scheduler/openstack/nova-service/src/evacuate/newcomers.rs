//! Detects at once that a newcomer is deleted during its preemption: Nova's API deletes its
//! allocations, and Placement shows capacity in which victims still run.

use super::Evacuations;
use ebbtide_nova_db::NovaDbError;
use ebbtide_runtime::task::pause;
use std::collections::HashSet;
use std::time::Duration;
use uuid::Uuid;

/// Interval of checking newcomers: one query for all of them, and only while there are any.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A newcomer that is already in its cell (a move, or one with an early answer) is checked at every
/// so many intervals, because each needs its own query. One whose build request has just gone is
/// checked at once.
const SELDOM: u32 = 10;

impl Evacuations {
    pub(super) fn watch_newcomers(&self) {
        let all = self.clone();
        let stop = self.shared.tasks.stop().clone();
        self.shared.tasks.spawn("newcomers", async move {
            let mut in_cells = HashSet::new();
            let mut looks = 0_u32;
            while pause(&stop, LOOK_EVERY).await {
                looks = looks.wrapping_add(1);
                if let Err(error) = all.look_at_newcomers(looks, &mut in_cells).await {
                    tracing::warn!(code = error.code(), "{error}");
                }
            }
        });
    }

    async fn look_at_newcomers(
        &self,
        looks: u32,
        in_cells: &mut HashSet<Uuid>,
    ) -> Result<(), NovaDbError> {
        let watched: Vec<(Uuid, Vec<Uuid>)> = self.driven(|driven| {
            let open = driven
                .iter()
                .filter(|(_, driven)| !driven.gone_sent && !driven.newcomers.is_empty());
            open.map(|(id, driven)| (*id, driven.newcomers.clone()))
                .collect()
        });
        let newcomers: Vec<Uuid> = watched.iter().flat_map(|(_, n)| n.clone()).collect();
        if newcomers.is_empty() {
            in_cells.clear();
            return Ok(());
        }
        let nova = self.shared.facts.database.nova();
        let without = nova.without_build_request(&newcomers).await?;
        in_cells.retain(|uuid| without.contains(uuid));
        let mut deleted = HashSet::new();
        for newcomer in without {
            if in_cells.contains(&newcomer) && !looks.is_multiple_of(SELDOM) {
                continue;
            }
            if nova.is_deleted(&newcomer.to_string()).await? {
                deleted.insert(newcomer);
            } else {
                in_cells.insert(newcomer);
            }
        }
        for (id, newcomers) in watched {
            // The preemption goes on as long as one of several newcomers is wanted.
            if newcomers.iter().all(|newcomer| deleted.contains(newcomer)) {
                self.driven(|driven| {
                    if let Some(driven) = driven.get_mut(&id) {
                        driven.gone_sent = driven.gone.send(()).is_ok();
                    }
                });
            }
        }
        Ok(())
    }
}
