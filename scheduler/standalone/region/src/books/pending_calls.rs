//! Start and delete requests to agents, and how long the agents may take.
//!
//! An agent's time counts from the moment at which the broker has the message: the agent is not
//! late while the broker is unavailable.

use ebbtide_model::index::same;
use ebbtide_model::{MessageId, ServerId, Timestamp};
use std::collections::{BTreeMap, HashMap};

/// One start or delete request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// The message, until the broker has confirmed it.
    unsent: Option<MessageId>,
    until: Timestamp,
}

/// Start and delete requests under way, by server.
#[derive(Debug, Default)]
pub(crate) struct PendingAgentCalls {
    entries: BTreeMap<ServerId, Entry>,
    by_message: HashMap<MessageId, ServerId>,
}

impl PendingAgentCalls {
    /// Notes that a message about a server was put into the outbox.
    pub(crate) fn sent(&mut self, server: ServerId, message: MessageId, until: Timestamp) {
        self.forget(server);
        let unsent = Some(message);
        self.entries.insert(server, Entry { unsent, until });
        self.by_message.insert(message, server);
    }

    /// Notes that the agent has the message, or will get it from the broker.
    pub(crate) fn waits(&mut self, server: ServerId, until: Timestamp) {
        self.forget(server);
        let unsent = None;
        self.entries.insert(server, Entry { unsent, until });
    }

    /// Notes that the broker has confirmed a message, if it is one of these: the agent's time
    /// begins.
    pub(crate) fn published(&mut self, message: MessageId, until: Timestamp) {
        if let Some(server) = self.by_message.remove(&message)
            && let Some(entry) = self.entries.get_mut(&server)
        {
            let unsent = None;
            *entry = Entry { unsent, until };
        }
    }

    /// True if a request about the server is under way.
    pub(crate) fn contains(&self, server: ServerId) -> bool {
        self.entries.contains_key(&server)
    }

    /// The message about a server that the broker has not confirmed.
    pub(crate) fn unsent(&self, server: ServerId) -> Option<MessageId> {
        self.entries.get(&server).and_then(|entry| entry.unsent)
    }

    /// Removes the request about a server.
    pub(super) fn forget(&mut self, server: ServerId) {
        if let Some(message) = self.entries.remove(&server).and_then(|e| e.unsent) {
            self.by_message.remove(&message);
        }
    }

    /// Servers for which an agent has taken too long.
    pub(crate) fn overdue(&self, now: Timestamp) -> Vec<ServerId> {
        let late = |e: &Entry| e.unsent.is_none() && e.until <= now;
        self.entries
            .iter()
            .filter(|(_, e)| late(e))
            .map(|(id, _)| *id)
            .collect()
    }

    /// The number of requests.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Checks that the messages follow from the requests, and that each request is about a server
    /// that is to be started or deleted.
    pub(super) fn audit(&self, is_called: impl Fn(ServerId) -> bool) -> Result<(), String> {
        let messages = self.entries.iter();
        let messages = messages.filter_map(|(id, entry)| Some((entry.unsent?, *id)));
        same("messages to agents", &self.by_message, &messages.collect())?;
        match self.entries.keys().find(|id| !is_called(**id)) {
            None => Ok(()),
            Some(id) => Err(format!("{id} is neither to be started nor to be deleted")),
        }
    }
}
