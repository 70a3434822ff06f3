//! What a scheduler has beside Placement.

use crate::Amounts;
use ebbtide_openstack::NewClaim;
use std::future::Future;
use uuid::Uuid;

/// What Nova's database has about an instance that is not deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceRow {
    /// The service's host where it is.
    pub host: Option<String>,
    /// What Nova is doing with it.
    pub task_state: Option<String>,
    /// What it is.
    pub vm_state: Option<String>,
}

/// What a scheduler has beside Placement: Nova's rows, the order of its own writes, and what it
/// believes of the cloud.
pub trait Around: Sync {
    /// The right to write to some providers, until it is dropped.
    type Guard: Send;

    /// What Nova has about an instance; `None` if it is deleted, or off all hosts at rest.
    ///
    /// # Errors
    /// In words: it could not be found out.
    fn instance(
        &self,
        server: Uuid,
    ) -> impl Future<Output = Result<Option<InstanceRow>, String>> + Send;

    /// Waits until no other task of this scheduler writes allocations of these claims' providers.
    fn lock_for_write(&self, claims: &[NewClaim]) -> impl Future<Output = Self::Guard> + Send;

    /// A consumer holds this now.
    fn claimed(&self, consumer: Uuid, amounts: &Amounts);

    /// A consumer holds nothing any more.
    fn released(&self, consumer: Uuid);
}
