//! Ended servers that are not deleted: Placement or a database was unavailable when their compute
//! wanted to record the end.
//!
//! The guest is gone by then and its capacity is free, so a waiting preemptor need not wait for
//! this. But Nova shows the server in ERROR, with its allocations still booked, until it is deleted
//! once more. The driver does that, because the deletion was its own.

use super::NovaDriver;
use ebbtide_model::{Seconds, ServerId, Timestamp};
use ebbtide_openstack::OpenStackError;
use ebbtide_openstack::compute::Server;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Time for a deletion before it is requested again.
const AGAIN: Seconds = Seconds(10);
/// Time limit for requesting all of them; heartbeats wait for it. The rest follows the next time.
const LIMIT: Duration = Duration::from_secs(3);

/// Time of the last deletion request for each server.
#[derive(Debug, Default)]
pub(super) struct DeletionRetries(Mutex<BTreeMap<ServerId, Timestamp>>);

impl DeletionRetries {
    /// Those of `servers` whose deletion is due. Forgets all others.
    fn due(&self, servers: Vec<ServerId>, now: Timestamp) -> Vec<ServerId> {
        let mut outcome = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.retain(|server_id, _| servers.contains(server_id));
        let due = servers.into_iter().filter(|server_id| {
            let last = outcome.get(server_id);
            // Also after a clock was set back.
            last.is_none_or(|at| now >= at.plus(AGAIN) || now < *at)
        });
        let due: Vec<ServerId> = due.collect();
        outcome.extend(due.iter().map(|server_id| (*server_id, now)));
        due
    }
}

/// Whether Nova has given up deleting it.
pub(super) fn is_stranded(server: &Server) -> bool {
    server.status == "ERROR" && server.task_state.is_none()
}

impl NovaDriver {
    /// Requests again the deletion of servers that the driver has ended and that Nova did not
    /// delete.
    pub(super) async fn retry_deletions(&self) {
        let stranded = self.cloud.which_on(&self.host, is_stranded);
        let ours = stranded
            .into_iter()
            .filter(|id| self.usage.was_deleted(*id));
        let due = self.deletion_retries.due(ours.collect(), self.clock.now());
        let (host, count) = (&self.host, due.len());
        let outcome = tokio::time::timeout(LIMIT, self.delete_again(due));
        if outcome.await.is_err() {
            tracing::warn!(
                host,
                count,
                "servers whose guests are gone are not all asked to be deleted yet: Nova's API is slow"
            );
        }
    }

    async fn delete_again(&self, servers: Vec<ServerId>) {
        for server_id in servers {
            match self.cloud.compute().delete(server_id.0).await {
                Ok(accepted) => tracing::info!(
                    %server_id, nova_request_id = accepted.request_id,
                    "Nova could not delete the server, whose guest is gone, and has been asked again"
                ),
                Err(OpenStackError::NotFound { .. }) => {}
                Err(error) => tracing::warn!(
                    %server_id, code = error.code(), "a server whose guest is gone cannot be deleted yet: {error}"
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn each_leftover_is_asked_for_now_and_then_and_forgotten_when_it_is_gone() {
        let (left, at) = (DeletionRetries::default(), |s: i64| {
            Timestamp::from_millis(s * 1_000)
        });
        let [a, b] = [1, 2].map(|n| ServerId(Uuid::from_u128(n)));
        assert_eq!(left.due(vec![a], at(100)), [a]);
        assert_eq!(left.due(vec![a, b], at(109)), [b]);
        assert_eq!(left.due(vec![a, b], at(110)), [a]);
        assert_eq!(left.due(vec![b], at(50)), [b], "the clock was set back");
        assert_eq!(left.0.lock().unwrap().len(), 1);
    }
}
