//! The lease that decides which scheduler is on duty.
//!
//! All schedulers of a database make decisions. The holder of the lease has further tasks that only
//! one scheduler may do: it reads agent reports, sends the outbox, and handles time limits. If it
//! dies, another scheduler takes over the lease within seconds and reads the region anew.

use crate::Tasks;
use crate::error::ServiceError;
use ebbtide_bus::BusStatus;
use ebbtide_model::{Seconds, Timestamp};
use ebbtide_runtime::clock::{self, Stopwatch};
use ebbtide_runtime::task::pause;
use ebbtide_store::{Lease, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Renewals within one lease: one may fail.
const RENEWALS: u32 = 3;
/// How often a scheduler that is not on duty tries to get the lease.
const LOOK: Duration = Duration::from_millis(500);

/// Whether this scheduler is on duty. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HeldLease {
    lease: Arc<watch::Sender<Option<Lease>>>,
}

impl HeldLease {
    pub(crate) fn new(lease: Option<Lease>) -> Self {
        Self {
            lease: Arc::new(watch::Sender::new(lease)),
        }
    }

    /// The lease, if this scheduler holds it as far as it knows.
    pub(crate) fn present(&self) -> Option<Lease> {
        self.lease.borrow().clone()
    }

    /// Notes that another scheduler has the lease, or may have it.
    pub(crate) fn lost(&self) {
        self.lease.send_replace(None);
    }

    /// Waits until this scheduler is on duty.
    pub(crate) async fn begins(&self) {
        // The sender lives as long as `self`, so this cannot fail.
        let _ = self.lease.subscribe().wait_for(Option::is_some).await;
    }

    /// Waits until this scheduler is not on duty.
    pub(crate) async fn ends(&self) {
        let _ = self.lease.subscribe().wait_for(Option::is_none).await;
    }
}

/// A scheduler that applies for the lease, and the duration of a lease.
#[derive(Clone)]
pub(crate) struct LeaseApplicant {
    pub(crate) store: Store,
    pub(crate) holder: String,
    pub(crate) ttl: Seconds,
}

impl LeaseApplicant {
    /// Duration of a lease, for use with the monotonic clock.
    pub(crate) fn lasts(&self) -> Duration {
        Duration::from_secs(self.ttl.0.into())
    }

    /// Takes the lease if it is free, or if this scheduler has observed for the duration of a lease
    /// that its holder does not renew it.
    ///
    /// # Errors
    /// `LeaseHeld` while another scheduler holds it; database errors.
    pub(crate) async fn apply(&self, others: &mut OtherHolder) -> Result<Lease, StoreError> {
        let (store, now) = (&self.store, clock::now());
        let applied = match others.abandoned(self.lasts()) {
            Some((by, until)) => {
                let abandoned = (by.as_str(), until);
                store
                    .take_over_lease(&self.holder, abandoned, now, self.ttl)
                    .await
            }
            None => store.acquire_lease(&self.holder, now, self.ttl).await,
        };
        if let Err(StoreError::LeaseHeld { holder, until, .. }) = &applied {
            others.observe(holder, *until);
        }
        applied
    }
}

/// The lease of another scheduler, as observed. A holder that renews it moves its end. A holder
/// that does not is gone, whatever the clocks of both machines say.
#[derive(Default)]
pub(crate) struct OtherHolder {
    last_seen: Option<(String, Timestamp, Stopwatch)>,
}

impl OtherHolder {
    fn observe(&mut self, holder: &str, until: Timestamp) {
        let same = |(by, end, _): &(String, Timestamp, Stopwatch)| by == holder && *end == until;
        if !self.last_seen.as_ref().is_some_and(same) {
            self.last_seen = Some((holder.to_owned(), until, Stopwatch::start()));
        }
    }

    fn abandoned(&self, lasts: Duration) -> Option<(String, Timestamp)> {
        let seen = self.last_seen.as_ref();
        seen.filter(|(_, _, since)| since.elapsed() >= lasts)
            .map(|(by, until, _)| (by.clone(), *until))
    }
}

/// Whether the scheduler on duty can do its tasks: without a broker it can neither send messages
/// nor receive reports.
struct Means {
    bus: watch::Receiver<BusStatus>,
    /// Since when there is no broker.
    without: Option<Stopwatch>,
    /// When this scheduler released the lease for lack of a broker.
    gave_up: Option<Stopwatch>,
}

impl Means {
    /// True if there has been no broker for this long.
    fn are_missing(&mut self, long: Duration) -> bool {
        match &*self.bus.borrow() {
            BusStatus::Connected | BusStatus::Blocked { .. } => self.without = None,
            BusStatus::Reconnecting { .. } | BusStatus::Closed => {
                self.without.get_or_insert_with(Stopwatch::start);
            }
        }
        self.without.is_some_and(|since| since.elapsed() >= long)
    }

    /// True while other schedulers have the chance to take the lease. If none has taken it within
    /// two lease durations, none of them has a broker either.
    fn yields(&mut self, lasts: Duration) -> bool {
        let yields =
            self.without.is_some() && self.gave_up.is_some_and(|s| s.elapsed() < 2 * lasts);
        if !yields {
            self.gave_up = None;
        }
        yields
    }
}

/// Keeps the lease, or gets it as soon as it is free. On a shared database a scheduler without a
/// broker releases it, because another one may have a broker. At shutdown the scheduler releases it
/// after the last accepted input is written, which cancels `written`; without the lease the
/// database would refuse the write.
pub(crate) fn start(
    applicant: LeaseApplicant,
    duty: HeldLease,
    bus: watch::Receiver<BusStatus>,
    written: CancellationToken,
    tasks: &Tasks,
) {
    let (stop, fenced) = (tasks.stop().clone(), tasks.clone());
    let renew_every = applicant.lasts() / RENEWALS;
    let mut means = Means {
        bus,
        without: None,
        gave_up: None,
    };
    tasks.spawn("duty", async move {
        let mut others = OtherHolder::default();
        let mut renewed = Stopwatch::start();
        loop {
            let goes_on = match duty.present() {
                Some(_) => pause(&written, renew_every).await,
                None => pause(&stop, LOOK).await,
            };
            if !goes_on {
                break;
            }
            let missing = means.are_missing(applicant.lasts()) && applicant.store.is_shared();
            match duty.present() {
                Some(lease) if missing => {
                    tracing::warn!("no broker: another scheduler may have one, and takes over");
                    give_back(&applicant, &duty, &lease).await;
                    means.gave_up = Some(Stopwatch::start());
                }
                Some(lease) => renew(&applicant, &duty, &lease, &mut renewed, &fenced).await,
                None if means.yields(applicant.lasts()) => {}
                None => match applicant.apply(&mut others).await {
                    Ok(lease) => {
                        renewed = Stopwatch::start();
                        others = OtherHolder::default();
                        duty.lease.send_replace(Some(lease));
                    }
                    Err(StoreError::LeaseHeld { .. }) => {}
                    Err(error) => tracing::warn!(code = error.code(), "the lease: {error}"),
                },
            }
        }
        if let Some(lease) = duty.present() {
            give_back(&applicant, &duty, &lease).await;
        }
    });
}

async fn give_back(applicant: &LeaseApplicant, duty: &HeldLease, lease: &Lease) {
    duty.lost();
    if let Err(error) = applicant.store.release_lease(lease).await {
        tracing::warn!(
            code = error.code(),
            "the lease could not be given back: {error}"
        );
    }
}

/// `renewed`: time since the last renewal.
async fn renew(
    applicant: &LeaseApplicant,
    duty: &HeldLease,
    lease: &Lease,
    renewed: &mut Stopwatch,
    tasks: &Tasks,
) {
    let shared = applicant.store.is_shared();
    let asked = Stopwatch::start();
    let renewing = applicant
        .store
        .renew_lease(lease, clock::now(), applicant.ttl);
    // The timeout ensures that this scheduler notices the end of its lease even if the database
    // does not answer. Afterwards it continues to ask: perhaps no other scheduler has taken the
    // lease, and on SQLite none can.
    let left = applicant.lasts().saturating_sub(renewed.elapsed());
    let left = left.max(LOOK);
    match tokio::time::timeout(left, renewing).await {
        Ok(Ok(_)) => *renewed = asked,
        Ok(Err(StoreError::Fenced { .. })) if shared => duty.lost(),
        Ok(Err(StoreError::Fenced { .. })) => crate::fail(tasks, ServiceError::Fenced),
        Ok(Err(error)) => tracing::warn!(
            code = error.code(),
            "the lease could not be renewed: {error}"
        ),
        Err(_) => tracing::warn!("the lease could not be renewed: the database does not answer"),
    }
    // A scheduler that can reach the database takes over now. The reports that this one holds must
    // go to it.
    if shared && renewed.elapsed() >= applicant.lasts() && duty.present().is_some() {
        tracing::warn!("another scheduler may be on duty: the lease is over");
        duty.lost();
    }
}
