//! What is counted and logged of connections that were closed or refused.

use ebbtide_runtime::clock;
use std::fmt::{self, Debug};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// At most one line of log in this time for each listener: a stranger may not fill the disk.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Why a connection was closed or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// Refused: every place is taken by an authenticated caller with a call in progress.
    Full,
    /// Closed to make a place for another connection.
    Evicted,
    /// No request, or not a whole one, in time.
    Silent,
    /// No call for longer than allowed.
    Idle,
    /// The client did not take what it was sent.
    Stalled,
    /// Open for longer than any connection may be.
    TooLong,
}

impl CloseReason {
    const ALL: [Self; 6] = [
        Self::Full,
        Self::Evicted,
        Self::Silent,
        Self::Idle,
        Self::Stalled,
        Self::TooLong,
    ];

    /// The name under which it is counted.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "connections",
            Self::Evicted => "evicted",
            Self::Silent => "silent",
            Self::Idle => "idle",
            Self::Stalled => "stalled",
            Self::TooLong => "too-long",
        }
    }
}

/// Counts and logs for one listener. Cheap to clone.
#[derive(Clone)]
pub struct Reporter {
    inner: Arc<Inner>,
}

struct Inner {
    name: &'static str,
    count: Box<dyn Fn(CloseReason) + Send + Sync>,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    since_last_line: [u64; CloseReason::ALL.len()],
    last_line: Option<Instant>,
}

impl Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reporter({})", self.inner.name)
    }
}

impl Reporter {
    /// `name` is the listener's in the log; `count` is called once for each connection.
    #[must_use]
    pub fn new(name: &'static str, count: impl Fn(CloseReason) + Send + Sync + 'static) -> Self {
        Self {
            inner: Arc::new(Inner {
                name,
                count: Box::new(count),
                log: Mutex::default(),
            }),
        }
    }

    pub(crate) fn report(&self, why: CloseReason, from: IpAddr) {
        (self.inner.count)(why);
        // An idle connection of an authenticated caller is closed in the ordinary course of things.
        if why == CloseReason::Idle {
            tracing::debug!(listener = self.inner.name, %from, "idle connection closed");
            return;
        }
        let Some(counts) = self.line(why) else {
            return;
        };
        let counts: Vec<String> = CloseReason::ALL
            .iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
            .map(|(why, count)| format!("{} {count}", why.as_str()))
            .collect();
        tracing::warn!(
            listener = self.inner.name, last_from = %from,
            "connections closed or refused since the last such line: {}", counts.join(", ")
        );
    }

    /// The counts for a line of log, if one is due.
    fn line(&self, why: CloseReason) -> Option<[u64; CloseReason::ALL.len()]> {
        let mut log = self
            .inner
            .log
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (count, one) in log.since_last_line.iter_mut().zip(CloseReason::ALL) {
            *count += u64::from(one == why);
        }
        let now = clock::timer();
        if log.last_line.is_some_and(|last| now < last + LOG_EVERY) {
            return None;
        }
        log.last_line = Some(now);
        Some(std::mem::take(&mut log.since_last_line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thousand_refusals_are_one_line_and_the_next_line_has_their_number() {
        let reporter = Reporter::new("test", |_| {});
        assert!(reporter.line(CloseReason::Full).is_some());
        for _ in 0..1_000 {
            assert!(reporter.line(CloseReason::Silent).is_none());
        }
        tokio::time::advance(LOG_EVERY).await;
        let counts = reporter.line(CloseReason::Full).unwrap();
        assert_eq!(counts, [1, 0, 1_000, 0, 0, 0]);
    }
}
