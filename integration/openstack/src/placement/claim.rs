//! Claiming for one server, as Nova's `SchedulerReportClient.claim_resources` does.

use super::{
    CLAIM_VERSION, CONSUMER_GENERATION_VERSION, ConsumerAllocations, Generation, NewClaim,
    Placement,
};
use crate::adapter::AdapterRequest;
use crate::error::{ConflictCode, OpenStackError};
use ebbtide_runtime::ids;
use reqwest::Method;
use std::borrow::Cow;

/// How often Nova tries a claim that met another writer (its decorator `retries`).
const TRIES: u32 = 4;
/// Placement's words for a consumer that is not as we named it; there is no code of its own for it.
const CONSUMER_CONFLICT: &str = "consumer generation conflict";
/// Its words about a consumer to which nothing was ever written: a Placement that died while it
/// took a first claim has left it behind, without allocations and at generation 0, so that it looks
/// as if it were not there (`placement/handlers/util.py`, `ensure_consumer`).
const LEFT_BEHIND: &str = "consumer generation conflict - expected 0 but got";

/// Whether a conflict is about a consumer that a dead Placement process has left behind. A claim at
/// generation 0 then succeeds and cannot overwrite anything: every write raises the generation.
pub(super) fn is_left_behind(text: &str) -> bool {
    text.contains(LEFT_BEHIND)
}

/// How often a write is tried again before an empty consumer counts as left behind, with growing
/// waits: 7.5 s in all with Nova's wait.
const TRIES_PAST_WRITERS: u32 = 5;

/// Whether a write met an empty consumer.
pub(super) fn met_empty<T>(written: &Result<T, OpenStackError>) -> bool {
    matches!(
        written,
        Err(OpenStackError::ConsumerChanged { text, .. } | OpenStackError::Conflict { text, .. })
            if is_left_behind(text)
    )
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllocationResult {
    /// The server holds it.
    Yes,
    /// It does not; nothing was changed. Nova goes on with the next host.
    No {
        /// The HTTP status.
        status: u16,
        /// Which conflict, if it was one.
        code: ConflictCode,
        /// Placement's words.
        text: String,
    },
}

enum Put {
    Done(AllocationResult),
    ConsumerConflict(String),
}

impl Placement {
    /// Claims exactly as Nova does: reads what the consumer holds (at 1.28), adds the claim to it
    /// if there is something (an evacuation), and writes (at 1.36); tries a write that met another
    /// writer up to four times, after random waits of up to 2, 4 and 6 seconds, reading anew each
    /// time.
    ///
    /// # Errors
    /// [`OpenStackError::ConsumerChanged`] if the consumer was changed between reading and writing
    /// (Nova's `AllocationUpdateFailed`); [`OpenStackError::Unavailable`] and the like, with the
    /// effect unknown.
    pub async fn claim(&self, claim: &NewClaim) -> Result<AllocationResult, OpenStackError> {
        self.try_claim(claim, true).await
    }

    /// The same for a consumer that is most probably new: writes at once, which saves a third of
    /// the time. Only if Placement knows the consumer after all it goes the exact way.
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    pub async fn claim_new(&self, claim: &NewClaim) -> Result<AllocationResult, OpenStackError> {
        let mut written = self.try_claim(claim, false).await;
        let mut attempt = 1;
        while met_empty(&written) && self.wait_for_writer(attempt).await {
            attempt += 1;
            written = self.try_claim(claim, false).await;
        }
        match written {
            Err(OpenStackError::ConsumerChanged { text, .. })
                if claim.generation.is_none() && is_left_behind(&text) =>
            {
                let first = NewClaim {
                    generation: Some(Generation(0)),
                    ..claim.clone()
                };
                self.try_claim(&first, false).await
            }
            Err(OpenStackError::ConsumerChanged { .. }) => self.try_claim(claim, true).await,
            other => other,
        }
    }

    /// Waits before a write is tried again that met an empty consumer; false if that was done often
    /// enough. The consumer may be that of a write which is under way: Placement creates the
    /// consumer first, and if the write then fails it deletes the consumer, although another write
    /// may have claimed at generation 0 meanwhile (`placement/handlers/allocation.py`,
    /// `delete_consumers`). Such allocations belong to no consumer, and nothing deletes them.
    pub(super) async fn wait_for_writer(&self, attempt: u32) -> bool {
        // Without a wait nothing can be under way: in a simulated world writes do not overlap.
        if attempt > TRIES_PAST_WRITERS || self.retry_wait.is_zero() {
            return false;
        }
        tokio::time::sleep(self.retry_wait * attempt / 4).await;
        true
    }

    async fn try_claim(
        &self,
        claim: &NewClaim,
        read_first: bool,
    ) -> Result<AllocationResult, OpenStackError> {
        let mut last = None;
        for attempt in 0..TRIES {
            // Without a wait nothing needs a timer: in a simulated world there is none.
            if attempt > 0 && !self.retry_wait.is_zero() {
                let longest = self.retry_wait * attempt;
                tokio::time::sleep(longest.mul_f64(ids::fraction())).await;
            }
            let claim = if read_first {
                self.with_current(claim).await?
            } else {
                Cow::Borrowed(claim)
            };
            match self.put_claim(&claim).await? {
                Put::Done(AllocationResult::No {
                    status,
                    code: ConflictCode::ConcurrentUpdate,
                    text,
                }) => {
                    tracing::debug!(consumer = %claim.consumer, attempt, "Placement met another writer, claiming again");
                    last = Some(AllocationResult::No {
                        status,
                        code: ConflictCode::ConcurrentUpdate,
                        text,
                    });
                }
                Put::Done(claimed) => return Ok(claimed),
                Put::ConsumerConflict(text) => {
                    let consumer = claim.consumer.to_string();
                    return Err(OpenStackError::ConsumerChanged { consumer, text });
                }
            }
        }
        // Another writer was faster four times. Nova treats that as a failed claim.
        Ok(last.unwrap_or(AllocationResult::No {
            status: 409,
            code: ConflictCode::ConcurrentUpdate,
            text: String::new(),
        }))
    }

    /// The claim with what the consumer holds already, and its generation.
    async fn with_current<'a>(
        &self,
        claim: &'a NewClaim,
    ) -> Result<Cow<'a, NewClaim>, OpenStackError> {
        let ask = AdapterRequest::get(format!("/allocations/{}", claim.consumer))
            .at(CONSUMER_GENERATION_VERSION);
        let (answer, call) = self.adapter.exchange(&ask).await?;
        // As Nova: whatever else it answers is as if there were nothing. The write will show.
        if answer.status != 200 {
            return Ok(Cow::Borrowed(claim));
        }
        let current: ConsumerAllocations = answer.json(&call)?;
        if current.allocations.is_empty() {
            return Ok(Cow::Borrowed(claim));
        }
        let resources = claim.resources.doubled_up(&current.allocations);
        let generation = current.consumer_generation;
        Ok(Cow::Owned(NewClaim {
            resources,
            generation,
            ..claim.clone()
        }))
    }

    async fn put_claim(&self, claim: &NewClaim) -> Result<Put, OpenStackError> {
        let payload = claim.payload();
        let ask = AdapterRequest::new(Method::PUT, format!("/allocations/{}", claim.consumer))
            .at(CLAIM_VERSION);
        let ask = ask.with(&payload);
        let (answer, _) = self.adapter.exchange(&ask).await?;
        if answer.status == 204 {
            return Ok(Put::Done(AllocationResult::Yes));
        }
        let (code, text) = answer.explanation();
        let code = ConflictCode::from_code(code.as_deref());
        if code == ConflictCode::ConcurrentUpdate && text.contains(CONSUMER_CONFLICT) {
            return Ok(Put::ConsumerConflict(text));
        }
        Ok(Put::Done(AllocationResult::No {
            status: answer.status,
            code,
            text,
        }))
    }
}
