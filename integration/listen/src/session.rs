//! What a service says about a connection.

use crate::connection_slots::{ConnectionSlot, ConnectionSlots};
use crate::report::CloseReason;
use ebbtide_runtime::clock;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::time::Instant;

/// The handle of one connection. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ConnectionHandle {
    pub(crate) state: Arc<ConnectionState>,
    /// Counted as long as a handle lives: the connection itself has one.
    slot: Arc<ConnectionSlot>,
}

/// What is known of a connection.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    pub(crate) began: Instant,
    now: Mutex<SessionCalls>,
}

#[derive(Debug)]
pub(crate) struct SessionCalls {
    /// Calls in progress.
    pub(crate) calls: usize,
    /// There was a call.
    pub(crate) called: bool,
    /// There was an authenticated call.
    pub(crate) authenticated: bool,
    /// Since when there is no call in progress.
    pub(crate) idle_since: Instant,
    pub(crate) closed: Option<CloseReason>,
    /// Who waits for the next bytes of the connection, and so for its end.
    pub(crate) reader: Option<Waker>,
}

impl ConnectionState {
    pub(crate) fn new() -> Self {
        let began = clock::timer();
        Self {
            began,
            now: Mutex::new(SessionCalls {
                calls: 0,
                called: false,
                authenticated: false,
                idle_since: began,
                closed: None,
                reader: None,
            }),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, SessionCalls> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connection. True if it was open.
    pub(crate) fn close(&self, why: CloseReason) -> bool {
        let mut now = self.lock();
        if now.closed.is_some() {
            return false;
        }
        now.closed = Some(why);
        let reader = now.reader.take();
        drop(now);
        if let Some(reader) = reader {
            reader.wake();
        }
        true
    }
}

impl ConnectionHandle {
    pub(crate) fn new(state: Arc<ConnectionState>, slot: ConnectionSlot) -> Self {
        Self {
            state,
            slot: Arc::new(slot),
        }
    }

    /// The address of the other end.
    #[must_use]
    pub fn from(&self) -> IpAddr {
        self.slot.from
    }

    /// A call begins; it ends with what is returned.
    #[must_use]
    pub fn call(&self) -> CallGuard {
        let mut now = self.state.lock();
        now.calls += 1;
        now.called = true;
        drop(now);
        CallGuard {
            state: Arc::clone(&self.state),
        }
    }

    /// The connection has made a call with a right to it.
    pub fn authenticated(&self) {
        let mut now = self.state.lock();
        let before = std::mem::replace(&mut now.authenticated, true);
        drop(now);
        if !before {
            self.slot.authenticated();
        }
    }

    /// Ends when the connection has to be closed.
    pub async fn closed(&self) {
        std::future::poll_fn(|context: &mut Context<'_>| {
            let mut now = self.state.lock();
            if now.closed.is_some() {
                return Poll::Ready(());
            }
            now.reader = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    pub(crate) fn close(&self, why: CloseReason) {
        if self.state.close(why) {
            self.slots().reporter().report(why, self.from());
        }
    }

    fn slots(&self) -> &ConnectionSlots {
        &self.slot.slots
    }
}

/// A call in progress.
#[derive(Debug)]
pub struct CallGuard {
    state: Arc<ConnectionState>,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let mut now = self.state.lock();
        now.calls = now.calls.saturating_sub(1);
        if now.calls > 0 {
            return;
        }
        now.idle_since = clock::timer();
        // The reader has no deadline while there are calls: it sets one now.
        let reader = now.reader.take();
        drop(now);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}
