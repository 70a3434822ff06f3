//! Requests that are under way. What is read in the background gives way to them.

use ebbtide_runtime::clock::Stopwatch;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long after a request background reads still wait: requests often follow each other.
const QUIET: Duration = Duration::from_secs(1);

/// Counts requests. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct RequestLoad {
    under_way: Arc<AtomicUsize>,
    /// Since the last request ended.
    ended: Arc<Mutex<Option<Stopwatch>>>,
}

/// A request that is under way, until it is dropped.
pub(crate) struct InFlightGuard(RequestLoad);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let ended = &self.0.ended;
        *ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(Stopwatch::start());
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl RequestLoad {
    /// Counts a request as under way.
    pub(crate) fn begin(&self) -> InFlightGuard {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        InFlightGuard(self.clone())
    }

    /// How many requests are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    /// How long a background read has to wait before it asks again. Zero: it may begin.
    pub(crate) fn wait(&self) -> Duration {
        if self.under_way() > 0 {
            return QUIET;
        }
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.as_ref().map_or(Duration::ZERO, |ended| {
            QUIET.saturating_sub(ended.elapsed())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_reads_wait_for_requests_and_for_a_moment_after_them() {
        let load = RequestLoad::default();
        assert_eq!(load.wait(), Duration::ZERO);
        let (one, other) = (load.begin(), load.begin());
        drop(one);
        assert_eq!((load.under_way(), load.wait()), (1, QUIET));
        drop(other);
        assert_eq!(load.under_way(), 0);
        assert!(load.wait() <= QUIET);
    }
}
