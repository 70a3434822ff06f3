//! The scheduler's environment besides Placement.

use crate::Amounts;
use ebbtide_openstack::NewClaim;
use std::future::Future;
use uuid::Uuid;

/// Nova's row of an instance that is not deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceRow {
    /// Its host (nova-compute service).
    pub host: Option<String>,
    /// Nova's current task.
    pub task_state: Option<String>,
    pub vm_state: Option<String>,
}

/// The scheduler's environment besides Placement: Nova's rows, the order of the scheduler's own
/// writes, and its cloud in memory.
pub trait SwapEnvironment: Sync {
    /// The lock on some providers' allocations, until it is dropped.
    type Guard: Send;

    /// Nova's row of an instance; `None` if it is deleted, or off all hosts without a task.
    ///
    /// # Errors
    /// In words: it could not be read.
    fn instance(
        &self,
        server: Uuid,
    ) -> impl Future<Output = Result<Option<InstanceRow>, String>> + Send;

    /// Waits until no other task of this scheduler writes allocations of these claims' providers.
    fn lock_for_write(&self, claims: &[NewClaim]) -> impl Future<Output = Self::Guard> + Send;

    /// Counts a write of these claims that Placement has taken, under its lock: it has raised the
    /// generations of their providers by one.
    fn wrote(&self, turn: &Self::Guard);

    /// Records what a consumer holds now.
    fn claimed(&self, consumer: Uuid, amounts: &Amounts);

    /// Records that a consumer holds nothing any more.
    fn released(&self, consumer: Uuid);
}
