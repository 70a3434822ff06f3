//! Who is on duty.
//!
//! All schedulers of a database decide. What must be done by one of them only is the duty of whoever holds the lease: it reads what agents say,
//! sends the outbox, and watches the time. If it dies, another one takes the lease over within seconds and reads everything anew.

use crate::clock;
use crate::error::ServiceError;
use crate::task::{Tasks, pause};
use ebbtide_model::Seconds;
use ebbtide_store::{Lease, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How long a scheduler that says nothing more keeps others from its duty.
pub(crate) const LEASE: Seconds = Seconds(6);
/// Several renewals fit into one lease.
const RENEW: Duration = Duration::from_secs(2);
/// How often those who are not on duty look whether the lease is free.
const LOOK: Duration = Duration::from_millis(500);

/// Whether this scheduler is on duty. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Duty {
    lease: Arc<watch::Sender<Option<Lease>>>,
}

impl Duty {
    pub(crate) fn new(lease: Option<Lease>) -> Self {
        Self {
            lease: Arc::new(watch::Sender::new(lease)),
        }
    }

    /// The lease, if this scheduler has it as far as it knows.
    pub(crate) fn present(&self) -> Option<Lease> {
        self.lease.borrow().clone()
    }

    /// Somebody else has the lease.
    pub(crate) fn lost(&self) {
        self.lease.send_replace(None);
    }

    /// Waits until this scheduler is on duty.
    pub(crate) async fn begins(&self) {
        // The sender lives as long as this.
        let _ = self.lease.subscribe().wait_for(Option::is_some).await;
    }

    /// Waits until this scheduler is not on duty.
    pub(crate) async fn ends(&self) {
        let _ = self.lease.subscribe().wait_for(Option::is_none).await;
    }
}

/// Keeps the lease, or gets it as soon as it is free. At the end it is given back when the last of what was accepted is written:
/// `written` is cancelled then. Before that the database would refuse it.
pub(crate) fn start(
    store: Store,
    duty: Duty,
    holder: String,
    written: CancellationToken,
    tasks: &Tasks,
) {
    let (stop, fenced) = (tasks.stop().clone(), tasks.clone());
    tasks.spawn("duty", async move {
        loop {
            let goes_on = match duty.present() {
                Some(_) => pause(&written, RENEW).await,
                None => pause(&stop, LOOK).await,
            };
            if !goes_on {
                break;
            }
            match duty.present() {
                Some(lease) => renew(&store, &duty, &lease, &fenced).await,
                None => apply(&store, &duty, &holder).await,
            }
        }
        let Some(lease) = duty.present() else { return };
        duty.lost();
        if let Err(error) = store.release_lease(&lease).await {
            tracing::warn!(
                code = error.code(),
                "the lease could not be given back: {error}"
            );
        }
    });
}

async fn renew(store: &Store, duty: &Duty, lease: &Lease, tasks: &Tasks) {
    match store.renew_lease(lease, clock::now(), LEASE).await {
        Ok(_) => {}
        Err(StoreError::Fenced { .. }) if store.is_shared() => duty.lost(),
        Err(StoreError::Fenced { .. }) => tasks.fail(ServiceError::Fenced),
        Err(error) => tracing::warn!(
            code = error.code(),
            "the lease could not be renewed: {error}"
        ),
    }
}

async fn apply(store: &Store, duty: &Duty, holder: &str) {
    match store.acquire_lease(holder, clock::now(), LEASE).await {
        Ok(lease) => {
            duty.lease.send_replace(Some(lease));
        }
        Err(StoreError::LeaseHeld { .. }) => {}
        Err(error) => tracing::warn!(code = error.code(), "the lease: {error}"),
    }
}
