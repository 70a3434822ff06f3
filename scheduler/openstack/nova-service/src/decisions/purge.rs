//! Forgets decisions that are older than the operator wants to keep them. Every scheduler does it:
//! of several that delete the same rows, each deletes what is still there.

use super::DecisionOptions;
use crate::Tasks;
use ebbtide_model::Timestamp;
use ebbtide_runtime::clock;
use ebbtide_store::DecisionStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// How often it is done. Keeping is said in days.
const EVERY: Duration = Duration::from_secs(600);
/// Most decisions that are deleted at a time: more than a busy cloud makes meanwhile.
const AT_ONCE: u64 = 100_000;

/// Starts to forget.
pub(super) fn start(
    options: &DecisionOptions,
    store: &Arc<OnceCell<DecisionStore>>,
    tasks: &Tasks,
) {
    let Some(keep) = options.keep else {
        return;
    };
    let store = Arc::clone(store);
    tasks.repeat("decisions-purge", EVERY, move || {
        let store = Arc::clone(&store);
        async move {
            if let Some(store) = store.get() {
                purge(store, keep).await;
            }
        }
    });
}

/// Forgets what is older than `keep`.
pub(super) async fn purge(store: &DecisionStore, keep: Duration) {
    let keep = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
    let before = clock::now().as_millis().saturating_sub(keep);
    match store.purge(Timestamp::from_millis(before), AT_ONCE).await {
        Ok(0) => {}
        Ok(purged) => tracing::debug!(purged, "old decisions are purged"),
        Err(error) => tracing::warn!(code = error.code(), "old decisions stay: {error}"),
    }
}
