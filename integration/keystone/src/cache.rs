//! A bounded cache with one question for each key at a time.
//!
//! moka holds the answers, bounds their number, lets concurrent lookups of a key wait for one
//! question, and drops what is old. Whether an answer may be used is decided by [`CachedAnswer`].

use crate::error::{KeystoneError, Meaning};
use crate::policy::{CachePolicy, CachedAnswer, Clock, ClockReading};
use moka::future::Cache;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use time::OffsetDateTime;

/// Answers of Keystone by key.
pub(crate) struct AnswerCache<K, V> {
    answers: Cache<K, CachedAnswer<V>>,
    clock: Arc<dyn Clock>,
    policy: CachePolicy,
    /// Until when Keystone is not asked because it was away, in milliseconds of the clock.
    away_until: AtomicU64,
}

impl<K, V> fmt::Debug for AnswerCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerCache")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl<K, V> AnswerCache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(crate) fn new(policy: CachePolicy, clock: Arc<dyn Clock>) -> Self {
        let answers = Cache::builder()
            .max_capacity(policy.capacity)
            // Memory only: an old answer is not used, whether it is still here or not.
            .time_to_live(policy.longest().max(Duration::from_secs(1)))
            .build();
        Self {
            answers,
            clock,
            policy,
            away_until: AtomicU64::new(0),
        }
    }

    pub(crate) fn now(&self) -> ClockReading {
        self.clock.now()
    }

    /// The remembered answer, or that of `question`, which is asked once for all that wait. `ends`
    /// says of an answer when it ends by itself.
    pub(crate) async fn get(
        &self,
        key: K,
        question: impl Future<Output = Result<V, KeystoneError>> + Send,
        ends: impl Fn(&V) -> Option<OffsetDateTime> + Send,
    ) -> Result<V, KeystoneError> {
        let now = self.now();
        let entry = self.answers.entry(key);
        let asking = async {
            let asked = self.now();
            let outcome = self.ask(asked, question).await;
            let end = outcome.as_ref().ok().and_then(ends);
            CachedAnswer::new(outcome, asked, end, &self.policy)
        };
        let stale = |kept: &CachedAnswer<V>| !kept.is_usable(now);
        let entry = Box::pin(entry.or_insert_with_if(asking, stale)).await;
        entry.into_value().outcome
    }

    async fn ask(
        &self,
        asked: ClockReading,
        question: impl Future<Output = Result<V, KeystoneError>>,
    ) -> Result<V, KeystoneError> {
        if millis(asked.elapsed) < self.away_until.load(Ordering::Relaxed) {
            let problem = "it was away a moment ago and is asked again in a second";
            return Err(KeystoneError::Unavailable(problem.to_owned()));
        }
        let answered = tokio::time::timeout(self.policy.limit, question).await;
        let outcome = answered.unwrap_or_else(|_| {
            let limit = self.policy.limit.as_secs_f64();
            let problem = format!("it has not answered within {limit} s");
            Err(KeystoneError::Unavailable(problem))
        });
        if let Err(error) = &outcome {
            if error.meaning() == Meaning::Unavailable {
                tracing::error!(%error, "Keystone cannot be asked");
            }
            if matches!(error, KeystoneError::Unavailable(_)) {
                let until = self.now().elapsed.saturating_add(self.policy.away);
                self.away_until.fetch_max(millis(until), Ordering::Relaxed);
            }
        }
        outcome
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
