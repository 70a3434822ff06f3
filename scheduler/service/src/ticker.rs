//! What happens regularly: the region is told the time, the lease is renewed, old rows are deleted.

use crate::clock;
use crate::error::ServiceError;
use crate::keeper::Keeper;
use crate::task::{Tasks, pause};
use ebbtide_model::Seconds;
use ebbtide_region::Input;
use ebbtide_store::{Lease, Store, StoreError};
use std::time::Duration;

/// Timeouts are whole seconds, so half a second late is early enough.
const TICK: Duration = Duration::from_millis(500);
/// How long a scheduler that says nothing more keeps others out.
pub(crate) const LEASE: Seconds = Seconds(6);
/// Several renewals fit into one lease.
const RENEW: Duration = Duration::from_secs(2);
/// How often old rows are looked for, and how many are deleted at once.
const PURGE: Duration = Duration::from_secs(300);
const PURGE_ROWS: u64 = 1000;

/// Tells the region the time.
pub(crate) fn start_ticks(keeper: Keeper, tasks: &Tasks) {
    let stop = tasks.stop().clone();
    tasks.spawn("ticks", async move {
        while pause(&stop, TICK).await {
            match keeper.handle(Input::Tick).await {
                Ok(_) => {}
                Err(ServiceError::Stopping) => return,
                Err(error) => tracing::warn!(code = error.code(), "tick: {error}"),
            }
        }
    });
}

/// Renews the lease. If somebody else has it, this scheduler ends.
pub(crate) fn start_lease(store: Store, lease: Lease, tasks: &Tasks) {
    let (stop, fenced) = (tasks.stop().clone(), tasks.clone());
    tasks.spawn("lease", async move {
        while pause(&stop, RENEW).await {
            if let Err(error) = store.renew_lease(&lease, clock::now(), LEASE).await {
                if matches!(error, StoreError::Fenced { .. }) {
                    fenced.fail(ServiceError::Fenced);
                } else {
                    tracing::warn!(
                        code = error.code(),
                        "the lease could not be renewed: {error}"
                    );
                }
            }
        }
        if let Err(error) = store.release_lease(&lease).await {
            tracing::warn!(
                code = error.code(),
                "the lease could not be given back: {error}"
            );
        }
    });
}

/// Deletes rows that are older than anybody wants to know.
pub(crate) fn start_purge(store: Store, keep_days: u32, tasks: &Tasks) {
    let stop = tasks.stop().clone();
    let keep = Seconds(keep_days.saturating_mul(24 * 3600));
    tasks.spawn("purge", async move {
        while pause(&stop, PURGE).await {
            match store.purge(clock::now().minus(keep), PURGE_ROWS).await {
                Ok(_) => {}
                Err(error) => tracing::warn!(
                    code = error.code(),
                    "old rows could not be deleted: {error}"
                ),
            }
        }
    });
}
