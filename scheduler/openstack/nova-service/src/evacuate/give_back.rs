//! The access of a record's driver to Placement; `ebbtide-swap` implements it.

use super::drive::{Driver, RowLost};
use crate::facts::{Facts, ProviderGuard};
use crate::preemption::PreemptionInput;
use ebbtide_nova_db::CELL0_UUID;
use ebbtide_openstack::NewClaim;
use ebbtide_runtime::task::pause;
use ebbtide_swap::{Amounts, InstanceRow, PlacementSwap, SwapEnvironment};
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

/// Pause before Placement is asked again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

impl Driver {
    /// Placement for this preemption.
    pub(super) fn room(&self) -> PlacementSwap<'_, Facts> {
        let facts = &self.all.shared.facts;
        let placement = facts.providers.placement(&self.held.record.request_id);
        PlacementSwap::new(placement, facts)
    }

    /// Takes from a victim that was stopped what it held beyond its disk.
    pub(super) async fn release(&mut self, place: usize) -> Result<(), RowLost> {
        let Some(victim) = self.held.record.victims.get(place) else {
            return Ok(());
        };
        match self.room().release(victim).await {
            Ok(()) => {
                self.feed(&PreemptionInput::Released { victim: place })
                    .await
            }
            Err(reason) => {
                tracing::warn!(
                    code = "EB-DOOR-023",
                    preemption = %self.held.id,
                    "a stopped server still holds its room: {reason}; it is tried again"
                );
                pause(self.all.shared.tasks.stop(), RETRY_PAUSE).await;
                Ok(())
            }
        }
    }

    pub(super) async fn give_back(&mut self) -> Result<(), RowLost> {
        let returned = self.room().return_all(&self.held.record).await;
        match returned {
            Ok(()) => {
                self.mark_hosts();
                self.feed(&PreemptionInput::GivenBack).await
            }
            Err(reason) => {
                tracing::warn!(
                    code = "EB-DOOR-023",
                    preemption = %self.held.id,
                    "allocations could not be given back yet: {reason}; it is tried again"
                );
                self.feed(&PreemptionInput::GiveBackFailed { reason: &reason })
                    .await
            }
        }
    }
}

impl SwapEnvironment for Facts {
    type Guard = (ProviderGuard, BTreeMap<Uuid, u64>);

    async fn instance(&self, server: Uuid) -> Result<Option<InstanceRow>, String> {
        let nova = self.database.nova();
        let uuid = server.to_string();
        let cell = nova.instance_cell(&uuid).await;
        let cell = cell.map_err(|error| error.to_string())?;
        // A server that was buried in cell0 never gets a host.
        let Some(cell) = cell.filter(|cell| cell != CELL0_UUID) else {
            return Ok(None);
        };
        let cell = nova.cell(&cell).map_err(|error| error.to_string())?;
        let row = cell.instance(&uuid).await;
        let row = row.map_err(|error| error.to_string())?;
        let row =
            row.filter(|row| !row.deleted && (row.host.is_some() || row.task_state.is_some()));
        Ok(row.map(|row| InstanceRow {
            host: row.host,
            task_state: row.task_state,
            vm_state: row.vm_state,
        }))
    }

    async fn lock_for_write(&self, claims: &[NewClaim]) -> Self::Guard {
        let locked = self.providers.lock_for_write(claims).await;
        (locked, self.providers.readings(claims))
    }

    fn wrote(&self, (_, readings): &Self::Guard) {
        self.providers.wrote(readings);
    }

    fn claimed(&self, consumer: Uuid, amounts: &Amounts) {
        self.providers.claimed(consumer, amounts, None);
    }

    fn released(&self, consumer: Uuid) {
        self.providers.released(consumer);
    }
}
