//! A server of Nova as a server of the pool: its status, and the notice in its metadata.

use ebbtide_burst::{PoolServer, Status};
use ebbtide_model::server_metadata::{NODE, NOTICE, NOTICE_DEADLINE, NOTICE_REASON};
use ebbtide_openstack::compute::Server;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The server as one of the pool; `None` if it runs none of these nodes.
pub(crate) fn pool_server(server: &Server, nodes: &[String]) -> Option<PoolServer> {
    let node = server.metadata.get(NODE)?;
    nodes.contains(node).then(|| seen(server, node))
}

/// The server, whatever runs there, under this name.
pub(crate) fn seen(server: &Server, node: &str) -> PoolServer {
    let status = status(server);
    let launched_ms = server.launched_at.as_deref().and_then(millis);
    let deadline = server.metadata.get(NOTICE_DEADLINE);
    let reason = match (&server.fault, server.metadata.get(NOTICE_REASON)) {
        (Some(fault), _) => &fault.message,
        (None, Some(reason)) => reason,
        (None, None) => &server.status,
    };
    PoolServer {
        id: server.id.to_string(),
        created_ms: server.created.as_deref().and_then(millis).unwrap_or(0),
        node: node.to_owned(),
        status,
        launched_ms,
        deadline_ms: deadline.and_then(|text| millis(text)),
        ended_ms: server.terminated_at.as_deref().and_then(millis),
        // Nova does not say by whose will a server was deleted; a notice before does.
        taken: status == Status::Failed && launched_ms.is_some(),
        reason: reason.clone(),
    }
}

/// Nova's statuses: `nova/api/openstack/common.py`, `_STATE_MAP`.
fn status(server: &Server) -> Status {
    if matches!(
        server.task_state.as_deref(),
        Some("deleting" | "soft-deleting")
    ) {
        return Status::Going;
    }
    let notice = server.metadata.get(NOTICE).map(String::as_str);
    match server.status.as_str() {
        "BUILD" | "REBUILD" => Status::Coming,
        "ERROR" => Status::Failed,
        "DELETED" | "SOFT_DELETED" => Status::Gone,
        "SHUTOFF" | "SUSPENDED" | "PAUSED" | "SHELVED" | "SHELVED_OFFLOADED" | "RESCUE" => {
            Status::Kept
        }
        // A server that is moved alive goes on: ACTIVE, REBOOT, MIGRATING, VERIFY_RESIZE and
        // others.
        _ => match notice {
            None | Some("live-migrate") => Status::Active,
            Some(_) => Status::Leaving,
        },
    }
}

/// Milliseconds since 1970 of a time with or without a zone, which is UTC then.
pub(crate) fn millis(text: &str) -> Option<i64> {
    let parse = |text: &str| OffsetDateTime::parse(text, &Rfc3339).ok();
    let at = parse(text).or_else(|| parse(&format!("{text}Z")))?;
    i64::try_from(at.unix_timestamp_nanos() / 1_000_000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use uuid::Uuid;

    fn server(status: &str, metadata: &[(&str, &str)]) -> Server {
        let pairs = metadata.iter().chain(&[(NODE, "c1")]);
        Server {
            id: Uuid::from_u128(1),
            name: "c1".to_owned(),
            status: status.to_owned(),
            task_state: None,
            vm_state: None,
            host: None,
            hypervisor_hostname: None,
            launched_at: Some("1970-01-01T00:00:02.500000".to_owned()),
            terminated_at: None,
            created: Some("1970-01-01T00:00:01Z".to_owned()),
            updated: None,
            tenant_id: None,
            user_id: None,
            flavor: ebbtide_openstack::compute::ServerFlavor::default(),
            metadata: pairs
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>(),
            fault: None,
            addresses: BTreeMap::new(),
        }
    }

    fn of_pool(server: &Server) -> PoolServer {
        pool_server(server, &["c1".to_owned()]).expect("one of the pool")
    }

    #[test]
    fn a_server_that_runs_no_node_is_not_of_the_pool() {
        assert!(pool_server(&server("ACTIVE", &[]), &["c2".to_owned()]).is_none());
        let mut foreign = server("ACTIVE", &[]);
        foreign.metadata.clear();
        assert!(pool_server(&foreign, &["c1".to_owned()]).is_none());
    }

    #[test]
    fn a_notice_in_the_metadata_says_that_a_server_leaves() {
        let deadline = (NOTICE_DEADLINE, "1970-01-01T00:00:09Z");
        let leaving = of_pool(&server("ACTIVE", &[(NOTICE, "terminate"), deadline]));
        assert_eq!(leaving.status, Status::Leaving);
        assert_eq!(leaving.deadline_ms, Some(9_000));
        assert_eq!(
            (leaving.created_ms, leaving.launched_ms),
            (1_000, Some(2_500))
        );
        let moves = of_pool(&server("ACTIVE", &[(NOTICE, "live-migrate"), deadline]));
        assert_eq!(moves.status, Status::Active);
    }

    #[test]
    fn each_status_of_nova_has_its_meaning() {
        let meanings = [
            ("BUILD", Status::Coming),
            ("ACTIVE", Status::Active),
            ("HARD_REBOOT", Status::Active),
            ("SHUTOFF", Status::Kept),
            ("SHELVED_OFFLOADED", Status::Kept),
            ("ERROR", Status::Failed),
            ("DELETED", Status::Gone),
        ];
        for (status, meaning) in meanings {
            assert_eq!(of_pool(&server(status, &[])).status, meaning, "{status}");
        }
        let mut deleting = server("ACTIVE", &[]);
        deleting.task_state = Some("deleting".to_owned());
        assert_eq!(of_pool(&deleting).status, Status::Going);
    }
}
