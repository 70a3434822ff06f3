//! Limits the number of event streams of each account.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of streams by account. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct WatcherCounts {
    counts: Arc<Mutex<HashMap<String, u32>>>,
}

/// One event stream; it is counted until this value is dropped.
#[derive(Debug)]
pub(crate) struct WatchSlot {
    watching: WatcherCounts,
    account: String,
}

impl WatcherCounts {
    /// Counts one more stream. `None` if there are `most` already.
    pub(crate) fn take(&self, account: String, most: u32) -> Option<WatchSlot> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.get(&account).copied().unwrap_or(0);
        if count >= most {
            return None;
        }
        counts.insert(account.clone(), count + 1);
        Some(WatchSlot {
            watching: self.clone(),
            account,
        })
    }
}

impl Drop for WatchSlot {
    fn drop(&mut self) {
        let mut counts = self
            .watching
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let left = counts.get(&self.account).copied().unwrap_or(0);
        if left <= 1 {
            counts.remove(&self.account);
        } else {
            counts.insert(self.account.clone(), left - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_free_again_when_its_stream_has_ended() {
        let watching = WatcherCounts::default();
        let slot = watching.take("a".to_owned(), 1).unwrap();
        assert!(watching.take("a".to_owned(), 1).is_none());
        assert!(watching.take("b".to_owned(), 1).is_some());
        drop(slot);
        assert!(watching.take("a".to_owned(), 1).is_some());
        assert!(watching.counts.lock().unwrap().is_empty());
    }
}
