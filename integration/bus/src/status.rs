//! How the connection to the broker is, for health checks and metrics.
//!
//! The AMQP transport has two connections (see `amqp/mod.rs`). The status is that of the worse one.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use ebbtide_amqp::ConnectionPurpose;
use ebbtide_runtime::clock;
use tokio::sync::watch;

/// What a broker says of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueUse {
    /// Messages that are ready to be delivered.
    pub messages: u32,
    /// Readers.
    pub consumers: u32,
}

/// The state of a bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BusStatus {
    /// Messages flow.
    Connected,
    /// Connected, but the broker takes no messages for now (its memory or disk alarm).
    Blocked {
        /// When it began.
        since: SystemTime,
        /// The broker's own words.
        reason: String,
    },
    /// Not connected yet, or not any more; the bus keeps trying by itself.
    Reconnecting {
        /// When the connection was lost, or when the bus was opened.
        since: SystemTime,
        /// Failed attempts since then.
        attempts: u64,
        /// Why the last attempt failed, or why the connection was lost.
        last_error: Option<String>,
    },
    /// Closed by this process.
    Closed,
}

impl BusStatus {
    /// Whether a publish can be expected to succeed now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Connected)
    }

    fn badness(&self) -> u8 {
        match self {
            Self::Connected => 0,
            Self::Blocked { .. } => 1,
            Self::Reconnecting { .. } => 2,
            Self::Closed => 3,
        }
    }
}

/// Collects the states of the single connections and shows the worst one.
#[derive(Debug)]
pub(crate) struct StatusBoard {
    slots: Mutex<[Option<BusStatus>; 2]>,
    shown: watch::Sender<BusStatus>,
}

impl StatusBoard {
    pub(crate) fn new(initial: BusStatus) -> Self {
        Self {
            slots: Mutex::new([None, None]),
            shown: watch::Sender::new(initial),
        }
    }

    /// A status for something that has just begun to connect.
    pub(crate) fn connecting() -> BusStatus {
        BusStatus::Reconnecting {
            since: clock::wall(),
            attempts: 0,
            last_error: None,
        }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<BusStatus> {
        self.shown.subscribe()
    }

    pub(crate) fn current(&self) -> BusStatus {
        self.shown.borrow().clone()
    }

    pub(crate) fn set(&self, purpose: ConnectionPurpose, status: BusStatus) {
        let mut slots = self.lock();
        slots[purpose as usize] = Some(status);
        self.show(&slots);
    }

    /// Records a failed attempt or a lost connection, and keeps the time of the first failure.
    pub(crate) fn failed(&self, purpose: ConnectionPurpose, error: String, is_attempt: bool) {
        let mut slots = self.lock();
        let slot = &mut slots[purpose as usize];
        let (since, attempts) = match slot {
            Some(BusStatus::Reconnecting {
                since, attempts, ..
            }) => (*since, *attempts),
            _ => (clock::wall(), 0),
        };
        *slot = Some(BusStatus::Reconnecting {
            since,
            attempts: attempts + u64::from(is_attempt),
            last_error: Some(error),
        });
        self.show(&slots);
    }

    fn show(&self, slots: &[Option<BusStatus>; 2]) {
        let Some(worst) = slots.iter().flatten().max_by_key(|s| s.badness()).cloned() else {
            return;
        };
        self.shown.send_if_modified(|shown| {
            let changed = *shown != worst;
            *shown = worst;
            changed
        });
    }

    fn lock(&self) -> MutexGuard<'_, [Option<BusStatus>; 2]> {
        // The guarded data is valid after every single statement, so poison has no meaning here.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worse_of_two_connections_is_shown() {
        let board = StatusBoard::new(StatusBoard::connecting());
        board.set(ConnectionPurpose::Publish, BusStatus::Connected);
        assert_eq!(board.current(), BusStatus::Connected);
        board.failed(ConnectionPurpose::Consume, "gone".to_owned(), false);
        assert!(!board.current().is_ready());
        board.set(ConnectionPurpose::Consume, BusStatus::Connected);
        assert!(board.current().is_ready());
    }

    #[test]
    fn the_beginning_of_the_trouble_is_kept_while_attempts_are_counted() {
        let board = StatusBoard::new(StatusBoard::connecting());
        board.failed(ConnectionPurpose::Publish, "lost".to_owned(), false);
        let BusStatus::Reconnecting { since: began, .. } = board.current() else {
            panic!("expected Reconnecting, got {:?}", board.current());
        };
        board.failed(ConnectionPurpose::Publish, "refused".to_owned(), true);
        board.failed(ConnectionPurpose::Publish, "refused again".to_owned(), true);
        assert_eq!(
            board.current(),
            BusStatus::Reconnecting {
                since: began,
                attempts: 2,
                last_error: Some("refused again".to_owned()),
            }
        );
    }
}
