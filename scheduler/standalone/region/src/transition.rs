//! The state of one step: time, identifiers, and the effects collected so far.

use crate::speculate::Speculation;
use crate::{Effects, Ids};
use ebbtide_model::message::{Body, Message};
use ebbtide_model::record::{Change, OutboxMessage};
use ebbtide_model::{CloudEvent, EvacuationId, MessageId, Timestamp};
use std::collections::BTreeSet;
use uuid::Uuid;

/// The scheduler's name as the source of messages.
const SOURCE: &str = "/ebbtide/scheduler";

/// A message that was put into the outbox.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueuedMessage {
    pub(crate) id: MessageId,
    /// The time in the message, which its receiver reads.
    pub(crate) time: Timestamp,
}

/// The state of one step. Public because [`crate::RegionInput`] names it; no other crate can.
pub struct Transition<'a> {
    pub(crate) now: Timestamp,
    pub(crate) ids: &'a mut dyn Ids,
    pub(crate) effects: Effects,
    /// Hosts that have changed and must be settled before the step ends.
    pub(crate) touched: BTreeSet<String>,
    /// All hosts that have changed in this step, including settled ones: their generations are
    /// incremented at the end.
    pub(crate) changed: BTreeSet<String>,
    /// The speculative decision for this input, if there is one.
    pub(crate) speculation: Option<Speculation>,
}

impl<'a> Transition<'a> {
    pub(crate) fn new(now: Timestamp, ids: &'a mut dyn Ids) -> Self {
        Self {
            now,
            ids,
            effects: Effects::default(),
            touched: BTreeSet::new(),
            changed: BTreeSet::new(),
            speculation: None,
        }
    }

    /// Puts a message for an agent into the outbox. `after`: the time of the previous message about
    /// the server; this message gets a later one.
    pub(crate) fn send(
        &mut self,
        host: &str,
        body: Body,
        notice_of: Option<EvacuationId>,
        after: Option<Timestamp>,
    ) -> QueuedMessage {
        let next = after.map(|at| Timestamp::from_millis(at.as_millis().saturating_add(1)));
        let message = Message {
            id: MessageId(self.ids.next()),
            source: SOURCE.to_owned(),
            time: next.map_or(self.now, |next| next.max(self.now)),
            body,
        };
        match message.to_bytes() {
            Ok(bytes) => self.effects.changes.push(Change::Enqueue(OutboxMessage {
                id: message.id,
                host: host.to_owned(),
                body: bytes,
                evacuation_id: notice_of,
                created_at: self.now,
            })),
            // Only non-finite numbers cannot be serialized, and messages to agents contain none.
            Err(error) => self.ignored(format!("message {} to {host}: {error}", message.id)),
        }
        QueuedMessage {
            id: message.id,
            time: message.time,
        }
    }

    /// Removes a message from the outbox that must not be sent any more.
    pub(crate) fn unsend(&mut self, message: MessageId) {
        self.effects.changes.push(Change::Dequeue(message));
    }

    /// Reports that the region ignored an input or could not carry it out.
    pub(crate) fn ignored(&mut self, why: String) {
        self.effects.events.push(CloudEvent::Ignored(why));
    }

    /// Reports a problem that an operator must look at.
    pub(crate) fn alarm(&mut self, code: &'static str, words: String) {
        self.effects.events.push(CloudEvent::Alarm { code, words });
    }

    /// A new identifier.
    pub(crate) fn uuid(&mut self) -> Uuid {
        self.ids.next()
    }

    /// Marks a host as changed, so that its claims are settled and its generation is incremented.
    pub(crate) fn touch(&mut self, host: &str) {
        if !self.touched.contains(host) {
            self.touched.insert(host.to_owned());
        }
        self.change(host);
    }

    /// Marks a host as changed for earlier decisions about it; its claims need not be settled.
    pub(crate) fn change(&mut self, host: &str) {
        if !self.changed.contains(host) {
            self.changed.insert(host.to_owned());
        }
    }
}
