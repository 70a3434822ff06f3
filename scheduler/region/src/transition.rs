//! One input on its way through the region: the time, identifiers, and the effects as they grow.

use crate::speculate::Speculation;
use crate::{Effects, Event, Ids};
use ebbtide_model::message::{Body, Message};
use ebbtide_model::record::{Change, OutboxMessage};
use ebbtide_model::{EvacuationId, MessageId, Timestamp};
use std::collections::BTreeSet;
use uuid::Uuid;

/// Who the scheduler is on the bus.
const SOURCE: &str = "/ebbtide/scheduler";

/// A message that was put into the outbox.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) id: MessageId,
    /// When it was said, as its receiver reads it.
    pub(crate) time: Timestamp,
}

/// One input on its way through the region.
pub(crate) struct Transition<'a> {
    pub(crate) now: Timestamp,
    pub(crate) ids: &'a mut dyn Ids,
    pub(crate) effects: Effects,
    /// Hosts on which something has changed: their claims and victims are held against each other before the step ends.
    pub(crate) touched: BTreeSet<String>,
    /// The same, those included that have been held against each other already: their generations go up at the end.
    pub(crate) changed: BTreeSet<String>,
    /// What was decided about this input before it was this step's turn, if that was done.
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

    /// Puts a message for an agent into the outbox. `after`: what was said about the server before; this is said later.
    pub(crate) fn send(
        &mut self,
        host: &str,
        body: Body,
        notice_of: Option<EvacuationId>,
        after: Option<Timestamp>,
    ) -> Sent {
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
            // Only numbers that are not finite cannot be written, and what we send to agents has none.
            Err(error) => self.ignored(format!("message {} to {host}: {error}", message.id)),
        }
        Sent {
            id: message.id,
            time: message.time,
        }
    }

    /// Takes a message out of the outbox that nobody shall get any more.
    pub(crate) fn unsend(&mut self, message: MessageId) {
        self.effects.changes.push(Change::Dequeue(message));
    }

    /// Says that something was not followed.
    pub(crate) fn ignored(&mut self, why: String) {
        self.effects.events.push(Event::Ignored(why));
    }

    /// Something that a person has to look at.
    pub(crate) fn alarm(&mut self, code: &'static str, words: String) {
        self.effects.events.push(Event::Alarm { code, words });
    }

    /// A new identifier.
    pub(crate) fn uuid(&mut self) -> Uuid {
        self.ids.next()
    }

    /// Remembers that something on a host has changed.
    pub(crate) fn touch(&mut self, host: &str) {
        if !self.touched.contains(host) {
            self.touched.insert(host.to_owned());
        }
        self.change(host);
    }

    /// Remembers that a host is not what it was for those who have decided about it before, although its claims need not be looked at.
    pub(crate) fn change(&mut self, host: &str) {
        if !self.changed.contains(host) {
            self.changed.insert(host.to_owned());
        }
    }
}
