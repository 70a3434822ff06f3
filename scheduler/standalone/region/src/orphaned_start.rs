//! Possible remains of an abandoned start.
//!
//! An agent that did not start a server in time, or failed to, may have started it all the same, or
//! may do so later. Until it has confirmed that nothing is there, no other server may have the
//! capacity. The region therefore keeps the attempt as a separate server with the flavor and the
//! host of the attempt. It is in `Deleting` from the beginning, and is gone when the agent confirms
//! the deletion. It is a database row like any other, so it outlives restarts and the server
//! itself.

use crate::Region;
use crate::transition::Transition;
use ebbtide_model::message::{Body, Delete};
use ebbtide_model::server::ServerFailure;
use ebbtide_model::{Server, ServerId, ServerStatus, Timestamp};
use std::collections::BTreeMap;
use uuid::Uuid;

/// The fault of the remains of an abandoned start.
pub(crate) const ORPHANED_START: &str = "EB-FAULT-004";

/// UUID namespace of the remains, so that their identifiers differ from all others.
const NAMESPACE: Uuid = Uuid::from_u128(0x6562_6274_6964_6500_8000_7265_6d61_696e);

/// The identifier of what a server may have left on a host. Applying the function twice gives the
/// server's own identifier, so the region needs no other record to ask the agent.
pub(crate) fn id_of(server: ServerId, host: &str) -> ServerId {
    let mask = Uuid::new_v5(&NAMESPACE, host.as_bytes());
    ServerId(Uuid::from_u128(server.0.as_u128() ^ mask.as_u128()))
}

/// True for the remains of an abandoned start, false for a server that a tenant requested.
pub(crate) fn is_orphaned_start(server: &Server) -> bool {
    server
        .fault
        .as_ref()
        .is_some_and(|fault| fault.code == ORPHANED_START)
}

/// True if a host has confirmed, after `sent_at`, that nothing of the server is left there.
pub(crate) fn has_confirmed_absence(server: &Server, host: &str, sent_at: Timestamp) -> bool {
    let left = server.left_hosts.get(host);
    left.is_some_and(|left| sent_at <= *left)
}

impl Region {
    /// Records the possible remains of a server on a host, and asks the agent to delete them.
    pub(crate) fn leave_orphaned_start(
        &mut self,
        transition: &mut Transition<'_>,
        server: &Server,
        host: &str,
        why: &str,
    ) {
        let orphan = Server {
            id: id_of(server.id, host),
            group_id: None,
            host: Some(host.to_owned()),
            status: ServerStatus::Deleting,
            external: false,
            evacuation_id: None,
            created_at: transition.now,
            launched_at: None,
            ended_at: None,
            fault: Some(ServerFailure {
                code: ORPHANED_START.to_owned(),
                message: format!(
                    "the start of server {} here was given up ({why}); the room is free once the host has confirmed that \
                     nothing is left",
                    server.id
                ),
                at: transition.now,
            }),
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            refused_hosts: Vec::new(),
            max_price: None,
            left_hosts: BTreeMap::new(),
            ..server.clone()
        };
        self.send_delete(transition, &orphan, host);
        self.save_server(transition, orphan);
    }

    /// Notes that a host has confirmed the deletion of remains. If the server itself is known, the
    /// confirmation is saved with it, because a report that the server runs on that host may still
    /// arrive, or arrive again.
    pub(crate) fn left(
        &mut self,
        transition: &mut Transition<'_>,
        orphan: &Server,
        host: &str,
        sent_at: Timestamp,
    ) {
        let server = self.servers.get(&id_of(orphan.id, host));
        if let Some(mut server) = server.filter(|_| is_orphaned_start(orphan)).cloned() {
            let left = server.left_hosts.entry(host.to_owned()).or_insert(sent_at);
            *left = sent_at.max(*left);
            self.save_server(transition, server);
        }
    }

    /// Repeats a deletion that was not confirmed in time. Only the host that holds the server's
    /// token can delete what is kept on shared storage. If the region lost the server on a host
    /// where it was resumed, that is one of its earlier hosts, which are not recorded. So the
    /// region tells all hosts that share the storage to clean up; its own host then finds nothing
    /// that it may not delete.
    pub(crate) fn delete_again(
        &mut self,
        transition: &mut Transition<'_>,
        server: &Server,
        host: &str,
    ) {
        let comeback = server
            .comeback
            .as_ref()
            .filter(|_| !is_orphaned_start(server));
        if let Some(storage) = comeback.and_then(|comeback| comeback.storage.as_deref()) {
            let down_after = self.config.host_down_seconds.as_millis();
            let sharing: Vec<String> = self
                .hosts
                .sharing(storage)
                .filter(|(name, entry)| {
                    *name != host && entry.is_reachable(transition.now, down_after)
                })
                .map(|(name, _)| name.clone())
                .collect();
            for other in sharing {
                let delete = Delete {
                    server_id: server.id,
                    storage: server.saved_storage(),
                };
                transition.send(&other, Body::Delete(delete), None, server.last_message_at);
            }
        }
        self.send_delete(transition, server, host);
    }

    /// Asks an agent to delete a server or the remains of one.
    pub(crate) fn send_delete(
        &mut self,
        transition: &mut Transition<'_>,
        server: &Server,
        host: &str,
    ) {
        let server_id = if is_orphaned_start(server) {
            id_of(server.id, host)
        } else {
            server.id
        };
        // Deleting the remains of an attempt must not delete what is kept of the server.
        let storage = match is_orphaned_start(server) {
            true => None,
            false => server.saved_storage(),
        };
        let sent = transition.send(
            host,
            Body::Delete(Delete { server_id, storage }),
            None,
            server.last_message_at,
        );
        let until = transition.now.plus(self.config.start_timeout_seconds);
        self.servers.calls_mut().sent(server.id, sent.id, until);
    }
}
