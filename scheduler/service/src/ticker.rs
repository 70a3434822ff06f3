//! Periodic tasks: ticks for the region, trimming of the commit log.

use crate::Tasks;
use crate::error::ServiceError;
use crate::region_actor::RegionActor;
use ebbtide_region::Tick;
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use ebbtide_store::{KEEP_LOG, Store};
use std::time::Duration;

/// Time limits are whole seconds, so a delay of half a second is acceptable.
const TICK: Duration = Duration::from_millis(500);
/// Interval between trims of the commit log.
const TRIM: Duration = Duration::from_secs(10);

/// Sends ticks to the region.
pub(crate) fn start_ticks(region_actor: RegionActor, tasks: &Tasks) {
    let stop = tasks.stop().clone();
    tasks.spawn("ticks", async move {
        // Log an outage once, not twice a second.
        let mut said = None;
        while pause(&stop, TICK).await {
            match region_actor.handle(Tick).await {
                // The scheduler on duty does what is due; this one only notes the time.
                Ok(()) | Err(ServiceError::NotOnDuty) => said = None,
                Err(ServiceError::Stopping) => return,
                Err(error) if said == Some(error.code()) => {}
                Err(error) => {
                    said = Some(error.code());
                    tracing::warn!(code = error.code(), "tick: {error}");
                }
            }
        }
    });
}

/// Deletes entries from the commit log that every scheduler has read.
pub(crate) fn start_trim(store: Store, tasks: &Tasks) {
    let stop = tasks.stop().clone();
    tasks.spawn("trim", async move {
        while pause(&stop, TRIM).await {
            if let Err(error) = store.trim_log(clock::now().minus(KEEP_LOG)).await {
                tracing::warn!(
                    code = error.code(),
                    "the commit log could not be trimmed: {error}"
                );
            }
        }
    });
}
