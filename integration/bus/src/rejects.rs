//! How a reader treats messages that it cannot use: which sender they come from, how many are kept,
//! and how fast.
//!
//! A message that cannot be used becomes a dead letter. A sender that continues to send such
//! messages is throttled: after the first [`BURST`], its reader keeps one message per [`REFILL`],
//! and counts and acknowledges the rest. A flood therefore costs its reader little, does not push
//! other senders' letters out of the dead letter queue, and appears in the log at a bounded rate.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ebbtide_runtime::clock;
use tokio::time::Instant;

use crate::{BusError, Delivery};

/// Dead letters that one sender may cause at once.
const BURST: u32 = 20;
/// Time until it may cause one more.
const REFILL: Duration = Duration::from_secs(10);
/// Least time between two lines of the log about one sender that is slowed down.
const BETWEEN_LINES: Duration = Duration::from_secs(60);
/// Pause before a message goes back to its queue because the broker did not take the dead letter.
const PAUSE: Duration = Duration::from_secs(1);
/// How many senders are counted separately. A broker has one login for each host; a larger number
/// of names is forged.
const MOST_SENDERS: usize = 4_096;
/// The name of all senders beyond that.
const OTHERS: &str = "(others)";
/// The name of senders whose user the broker does not confirm.
const UNKNOWN: &str = "(unknown)";

/// What became of a message that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RejectResult {
    /// It is a dead letter.
    Kept,
    /// It was acknowledged and counted: its sender sends too many of them.
    Discarded,
    /// The broker did not take the dead letter; the message comes again.
    Returned(BusError),
}

/// The senders of messages that could not be used.
#[derive(Debug, Default)]
pub struct Rejects {
    senders: Mutex<BTreeMap<String, Sender>>,
}

#[derive(Debug)]
struct Sender {
    /// Dead letters that it may cause now.
    left: u32,
    /// Since when `left` has not been refilled.
    since: Instant,
    /// Discarded since the last line of the log.
    discarded: u64,
    told: Option<Instant>,
}

/// What is done with a message.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Keep,
    /// Discard, and say so if there is a number: so many since the last time.
    Discard(Option<u64>),
}

impl Rejects {
    /// The publisher of a message for logs and metrics: the user that the broker confirms, or
    /// `(unknown)`.
    #[must_use]
    pub fn sender(delivery: &Delivery) -> &str {
        delivery.user.as_deref().unwrap_or(UNKNOWN)
    }

    /// Moves a message that cannot be used to the dead letters, or discards it because its sender
    /// sends too many.
    ///
    /// Takes as long as the broker does: not to be waited for by a reader that others wait for.
    pub async fn reject(&self, mut delivery: Delivery, reason: &str) -> RejectResult {
        // Whatever happens now, the memory of a large one is free.
        delivery.cut_short();
        let sender = Self::sender(&delivery).to_owned();
        if let Verdict::Discard(told) = self.judge(&sender, clock::timer()) {
            if let Some(count) = told {
                tracing::error!(
                    code = "EB-BUS-012",
                    sender,
                    count,
                    reason,
                    "{sender} sends more messages that cannot be used than are kept; {count} were discarded since the last \
                     line of this kind. Look at that agent's host, or take its login away"
                );
            }
            delivery.ack().await;
            return RejectResult::Discarded;
        }
        match delivery.try_dead_letter(reason).await {
            Ok(()) => RejectResult::Kept,
            Err(error) => {
                tracing::warn!(code = error.code(), "the dead letter comes again: {error}");
                self.give_back(&sender);
                tokio::time::sleep(PAUSE).await;
                delivery.retry().await;
                RejectResult::Returned(error)
            }
        }
    }

    fn judge(&self, sender: &str, now: Instant) -> Verdict {
        let mut senders = self.lock();
        let known = senders.contains_key(sender);
        let name = if known || senders.len() < MOST_SENDERS {
            sender
        } else {
            OTHERS
        };
        let sender = senders.entry(name.to_owned()).or_insert(Sender {
            left: BURST,
            since: now,
            discarded: 0,
            told: None,
        });
        let refills = now.duration_since(sender.since).as_secs() / REFILL.as_secs();
        let refills = u32::try_from(refills).unwrap_or(u32::MAX);
        if refills > 0 {
            sender.left = sender.left.saturating_add(refills).min(BURST);
            sender.since += REFILL * refills;
        }
        if sender.left > 0 {
            sender.left -= 1;
            return Verdict::Keep;
        }
        sender.discarded += 1;
        let silent = |at: Instant| now.duration_since(at) < BETWEEN_LINES;
        if sender.told.is_some_and(silent) {
            return Verdict::Discard(None);
        }
        sender.told = Some(now);
        Verdict::Discard(Some(std::mem::take(&mut sender.discarded)))
    }

    /// The letter was not written: it does not count.
    fn give_back(&self, sender: &str) {
        if let Some(sender) = self.lock().get_mut(sender) {
            sender.left = (sender.left + 1).min(BURST);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Sender>> {
        // Every critical section leaves the map valid, so poison has no meaning here.
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bus, InProcessBroker, OutgoingMessage, QueuePrefix};
    use uuid::Uuid;

    #[test]
    fn a_sender_of_many_is_slowed_down_named_once_a_minute_and_heard_again() {
        let (rejects, start) = (Rejects::default(), clock::timer());
        let judge = |sender: &str, seconds: u64| {
            rejects.judge(sender, start + Duration::from_secs(seconds))
        };
        for _ in 0..BURST {
            assert_eq!(judge("agent-h1", 0), Verdict::Keep);
        }
        assert_eq!(judge("agent-h1", 1), Verdict::Discard(Some(1)));
        for _ in 0..500 {
            assert_eq!(judge("agent-h1", 2), Verdict::Discard(None));
        }
        assert_eq!(judge("agent-h2", 2), Verdict::Keep, "another one");
        assert_eq!(judge("agent-h1", 11), Verdict::Keep, "one in ten seconds");
        assert_eq!(judge("agent-h1", 12), Verdict::Discard(None));
        for _ in 0..5 {
            assert_eq!(judge("agent-h1", 62), Verdict::Keep);
        }
        assert_eq!(judge("agent-h1", 62), Verdict::Discard(Some(502)));
        for _ in 0..BURST {
            assert_eq!(judge("agent-h1", 100_000), Verdict::Keep);
        }
        assert_eq!(judge("agent-h1", 100_000), Verdict::Discard(Some(1)));
    }

    #[test]
    fn made_up_senders_do_not_fill_the_memory() {
        let (rejects, now) = (Rejects::default(), clock::timer());
        for number in 0..10 * MOST_SENDERS {
            rejects.judge(&format!("agent-{number}"), now);
        }
        assert_eq!(rejects.lock().len(), MOST_SENDERS + 1);
    }

    #[tokio::test]
    async fn a_flood_leaves_few_letters_and_nothing_in_the_queue() {
        let bus = InProcessBroker::new().connect();
        let queue = QueuePrefix::default().scheduler();
        let mut subscription = bus.consume(&queue, 1_000).await.unwrap();
        let rejects = Rejects::default();
        let mut kept = 0;
        for number in 0..500 {
            let message = OutgoingMessage::cloud_event(Uuid::from_u128(number), b"no".to_vec());
            bus.publish(&queue, &message).await.unwrap();
            let delivery = subscription.next().await.unwrap();
            assert!(!delivery.redelivered);
            kept += u32::from(rejects.reject(delivery, "nonsense").await == RejectResult::Kept);
        }
        assert_eq!(kept, BURST);
        let mut letters = bus.consume(&queue.dead_letter(), 1_000).await.unwrap();
        for _ in 0..BURST {
            letters.next().await.unwrap().ack().await;
        }
        let last = OutgoingMessage::cloud_event(Uuid::from_u128(999), b"the next one".to_vec());
        bus.publish(&queue.dead_letter(), &last).await.unwrap();
        let next = letters.next().await.unwrap();
        assert_eq!(next.message_id, last.message_id, "a letter too many");
    }
}
