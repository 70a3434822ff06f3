//! Which claims this scheduler writes to Placement at the moment, and how many it has begun.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// This scheduler's claims, by provider.
#[derive(Default)]
pub(super) struct ClaimWrites {
    by_provider: Mutex<HashMap<Uuid, Writes>>,
}

/// This scheduler's claims for one provider.
#[derive(Debug, Clone, Copy, Default)]
struct Writes {
    under_way: u64,
    begun: u64,
}

/// A claim that is being written.
pub(crate) struct ClaimWrite<'a> {
    writes: &'a ClaimWrites,
    provider: Uuid,
}

impl ClaimWrites {
    /// A claim is being written while the guard lives.
    pub(super) fn begin(&self, provider: Uuid) -> ClaimWrite<'_> {
        let mut all = self.lock();
        let writes = all.entry(provider).or_default();
        writes.under_way += 1;
        writes.begun += 1;
        drop(all);
        ClaimWrite {
            writes: self,
            provider,
        }
    }

    /// How many claims were begun for a provider; `None` while one is being written.
    pub(super) fn at_rest(&self, provider: Uuid) -> Option<u64> {
        let writes = self.lock().get(&provider).copied().unwrap_or_default();
        (writes.under_way == 0).then_some(writes.begun)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Writes>> {
        self.by_provider
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClaimWrite<'_> {
    fn drop(&mut self) {
        let mut all = self.writes.lock();
        if let Some(writes) = all.get_mut(&self.provider) {
            writes.under_way = writes.under_way.saturating_sub(1);
        }
    }
}
