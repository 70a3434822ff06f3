//! What is going to happen, and the queue of it.

use crate::controller::ServerId;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A probe on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentProbe {
    pub(crate) server: u32,
    pub(crate) copy: bool,
}

/// A long task on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlacedTask {
    pub(crate) server: u32,
    pub(crate) task_us: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QueuedEvent {
    /// The next job of the trace arrives.
    Job(u32),
    /// Probes of a job reach their servers, in this round.
    Probes {
        job: u32,
        round: u8,
        sent: Vec<SentProbe>,
    },
    /// Tasks of a long job reach their servers.
    Tasks { job: u32, placed: Vec<PlacedTask> },
    /// A server is done with what it began as its turn `turn`.
    Free { server: u32, turn: u32 },
    /// A transient server is up.
    Up(ServerId),
    /// The provider says that it is going to take a transient server.
    Notice(ServerId),
    /// The provider takes a transient server.
    Interrupted(ServerId),
    /// The provider takes all transient servers that are up.
    Outage,
    /// The controller wanted to be told.
    Tick,
}

#[derive(Debug)]
struct Entry {
    at_us: u64,
    number: u64,
    coming: QueuedEvent,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The earliest is the greatest, as the heap wants it; at one time, what was put in first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at_us, other.number).cmp(&(self.at_us, self.number))
    }
}

/// Everything that is going to happen.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Entry>,
    number: u64,
}

impl Agenda {
    pub(crate) fn put(&mut self, at_us: u64, coming: QueuedEvent) {
        self.number += 1;
        self.heap.push(Entry {
            at_us,
            number: self.number,
            coming,
        });
    }

    /// True if nothing more is going to happen.
    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    pub(crate) fn take(&mut self) -> Option<(u64, QueuedEvent)> {
        self.heap.pop().map(|entry| (entry.at_us, entry.coming))
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &QueuedEvent> {
        self.heap.iter().map(|entry| &entry.coming)
    }
}
