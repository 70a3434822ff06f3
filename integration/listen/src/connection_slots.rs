//! How many connections there are, and which one has to go when there are too many.

use crate::limits::ConnectionLimits;
use crate::report::{CloseReason, Reporter};
use crate::session::{ConnectionHandle, ConnectionState};
use ebbtide_runtime::clock;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// The connections of one listener. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ConnectionSlots {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    most: ConnectionLimits,
    reporter: Reporter,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    all: HashMap<u64, Entry>,
    of: HashMap<IpAddr, Count>,
}

#[derive(Debug)]
struct Entry {
    from: IpAddr,
    state: Arc<ConnectionState>,
    authenticated: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    all: usize,
    unauthenticated: usize,
}

impl Taken {
    fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.all.remove(&id)?;
        if let Some(count) = self.of.get_mut(&entry.from) {
            count.all = count.all.saturating_sub(1);
            if !entry.authenticated {
                count.unauthenticated = count.unauthenticated.saturating_sub(1);
            }
            if count.all == 0 {
                self.of.remove(&entry.from);
            }
        }
        Some(entry)
    }

    /// The connection that is missed least: one without a call before one with a call, an
    /// unauthenticated one before an authenticated one, the one that waits longest. An
    /// authenticated connection with a call in progress is never chosen.
    fn least(&self, among: impl Fn(&Entry) -> bool) -> Option<u64> {
        self.all
            .iter()
            .filter(|(_, entry)| among(entry))
            .filter_map(|(id, entry)| {
                let now = entry.state.lock();
                let rank = match (entry.authenticated, now.calls > 0) {
                    (false, false) => 0,
                    // Before idle authenticated ones: calls that need no rights (health) would
                    // otherwise push those out.
                    (false, true) => 1,
                    (true, false) => 2,
                    (true, true) => return None,
                };
                Some((rank, now.idle_since, *id))
            })
            .min()
            .map(|(_, _, id)| id)
    }
}

impl ConnectionSlots {
    /// Seats within these limits.
    #[must_use]
    pub fn new(most: ConnectionLimits, reporter: Reporter) -> Self {
        Self {
            inner: Arc::new(Inner {
                most,
                reporter,
                taken: Mutex::default(),
            }),
        }
    }

    pub(crate) fn reporter(&self) -> &Reporter {
        &self.inner.reporter
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.inner
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a new connection; another may be closed for it. `None` if none can be.
    #[must_use]
    pub fn take(&self, from: IpAddr) -> Option<ConnectionHandle> {
        let state = Arc::new(ConnectionState::new());
        let (id, closed) = self.enter(from, &state);
        for entry in closed {
            if entry.state.close(CloseReason::Evicted) {
                self.reporter().report(CloseReason::Evicted, entry.from);
            }
        }
        let Some(id) = id else {
            self.reporter().report(CloseReason::Full, from);
            return None;
        };
        let slot = ConnectionSlot {
            slots: self.clone(),
            from,
            id,
        };
        Some(ConnectionHandle::new(state, slot))
    }

    fn enter(&self, from: IpAddr, state: &Arc<ConnectionState>) -> (Option<u64>, Vec<Entry>) {
        let most = self.inner.most;
        let now = clock::timer();
        let mut closed = Vec::new();
        let mut taken = self.lock();
        let of_one = taken.of.get(&from).copied().unwrap_or_default();
        if of_one.unauthenticated >= most.unauthenticated {
            let settled = |began: Instant| now >= began + ConnectionLimits::GRACE;
            let id = taken.least(|entry| {
                entry.from == from && !entry.authenticated && settled(entry.state.began)
            });
            closed.extend(id.and_then(|id| taken.remove(id)));
        }
        let of_one = taken.of.get(&from).copied().unwrap_or_default();
        if of_one.all >= most.of_one_address {
            let Some(id) = taken.least(|entry| entry.from == from) else {
                return (None, closed);
            };
            closed.extend(taken.remove(id));
        } else if taken.all.len() >= most.all {
            let Some(id) = taken.least(|_| true) else {
                return (None, closed);
            };
            closed.extend(taken.remove(id));
        }
        let id = taken.next;
        taken.next += 1;
        taken.all.insert(
            id,
            Entry {
                from,
                state: Arc::clone(state),
                authenticated: false,
            },
        );
        let count = taken.of.entry(from).or_default();
        count.all += 1;
        count.unauthenticated += 1;
        (Some(id), closed)
    }
}

/// The slot of one connection, given back with it.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    pub(crate) slots: ConnectionSlots,
    pub(crate) from: IpAddr,
    id: u64,
}

impl ConnectionSlot {
    pub(crate) fn authenticated(&self) {
        let mut taken = self.slots.lock();
        let Some(entry) = taken.all.get_mut(&self.id) else {
            return;
        };
        if !std::mem::replace(&mut entry.authenticated, true)
            && let Some(count) = taken.of.get_mut(&self.from)
        {
            count.unauthenticated = count.unauthenticated.saturating_sub(1);
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.lock().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const TWO: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    fn slots(all: usize, of_one_address: usize, unauthenticated: usize) -> ConnectionSlots {
        let most = ConnectionLimits {
            all,
            of_one_address,
            unauthenticated,
        };
        ConnectionSlots::new(most, Reporter::new("test", |_| {}))
    }

    fn is_open(session: &ConnectionHandle) -> bool {
        session.state.lock().closed.is_none()
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_takes_the_place_of_the_oldest_stranger_of_its_address() {
        let slots = slots(100, 50, 2);
        let other = slots.take(TWO).unwrap();
        let first = slots.take(ONE).unwrap();
        let second = slots.take(ONE).unwrap();
        tokio::time::advance(ConnectionLimits::GRACE).await;
        let third = slots.take(ONE).unwrap();
        assert!(!is_open(&first), "the oldest goes");
        assert!(is_open(&second) && is_open(&third) && is_open(&other));
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_connect_together_have_time_to_show_who_they_are() {
        let slots = slots(100, 50, 2);
        let crowd: Vec<_> = (0..50).map(|_| slots.take(ONE).unwrap()).collect();
        assert!(crowd.iter().all(is_open));
        let _last = slots.take(ONE).unwrap();
        let closed = crowd.iter().filter(|session| !is_open(session)).count();
        assert_eq!(closed, 1, "the limit of an address holds");
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_never_push_out_authenticated_callers() {
        let slots = slots(10, 10, 4);
        let callers: Vec<_> = (0..6).map(|_| slots.take(ONE).unwrap()).collect();
        callers.iter().for_each(ConnectionHandle::authenticated);
        let strangers: Vec<_> = (0..100)
            .filter_map(|_| {
                let session = slots.take(ONE)?;
                // As a health stream that never ends.
                let call = session.call();
                Some((session, call))
            })
            .collect();
        assert_eq!(strangers.len(), 100);
        assert!(callers.iter().all(is_open));
        let open = strangers.iter().filter(|(one, _)| is_open(one)).count();
        assert_eq!(open, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_caller_goes_and_a_call_in_progress_stays() {
        let slots = slots(2, 2, 2);
        let (busy, idle) = (slots.take(ONE).unwrap(), slots.take(ONE).unwrap());
        busy.authenticated();
        idle.authenticated();
        let call = busy.call();
        let third = slots.take(ONE).unwrap();
        assert!(!is_open(&idle) && is_open(&busy));
        third.authenticated();
        let _third = third.call();
        assert!(slots.take(ONE).is_none(), "both have calls in progress");
        drop(call);
        assert!(slots.take(ONE).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn seats_are_given_back_and_what_is_refused_is_counted() {
        let counted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&counted);
        let reporter = Reporter::new("test", move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let most = ConnectionLimits {
            all: 1,
            of_one_address: 1,
            unauthenticated: 1,
        };
        let slots = ConnectionSlots::new(most, reporter);
        let first = slots.take(ONE).unwrap();
        first.authenticated();
        let call = first.call();
        assert!(slots.take(TWO).is_none());
        assert_eq!(counted.load(Ordering::Relaxed), 1);
        drop((call, first));
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(slots.take(TWO).unwrap());
        assert!(slots.lock().all.is_empty() && slots.lock().of.is_empty());
        assert_eq!(counted.load(Ordering::Relaxed), 1);
    }
}
