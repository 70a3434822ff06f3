//! Filters and pages of lists that are in memory, as the store does them for a region. Pure.

use super::ListedServer;
use crate::error::ServiceError;
use ebbtide_model::Evacuation;
use ebbtide_store::{EvacuationFilter, MAX_PAGE, ServerFilter};

fn page_size(limit: u32) -> usize {
    let limit = if limit == 0 { MAX_PAGE } else { limit };
    usize::try_from(limit.min(MAX_PAGE)).unwrap_or(usize::MAX)
}

fn is<T: PartialEq<U>, U>(wanted: Option<&T>, value: &U) -> bool {
    wanted.is_none_or(|wanted| wanted == value)
}

/// The servers of a page, by id.
pub(super) fn servers(mut all: Vec<ListedServer>, filter: &ServerFilter) -> Vec<ListedServer> {
    all.retain(|listed| {
        let server = &listed.server;
        is(filter.project_id.as_ref(), &server.project_id)
            && is(filter.status.as_ref(), &server.status)
            && is(filter.name.as_ref(), &server.name)
            && filter.host.as_ref().is_none_or(|host| server.host.as_ref() == Some(host))
            // A status of servers that are gone includes those.
            && (filter.include_gone || filter.status.is_some() || !server.status.is_gone())
            && filter.marker.is_none_or(|marker| server.id > marker)
    });
    all.sort_by_key(|listed| listed.server.id);
    all.truncate(page_size(filter.limit));
    all
}

/// The evacuations of a page, newest first.
///
/// # Errors
/// [`ServiceError::NoSuchMarker`].
pub(super) fn evacuations(
    mut all: Vec<Evacuation>,
    filter: &EvacuationFilter,
) -> Result<Vec<Evacuation>, ServiceError> {
    all.sort_by_key(|e| (std::cmp::Reverse(e.claimed_at), e.id));
    if let Some(marker) = filter.marker {
        let at = all.iter().position(|evacuation| evacuation.id == marker);
        let at = at.ok_or_else(|| {
            ServiceError::NoSuchMarker(format!("there is no evacuation {marker} (any more)"))
        })?;
        all.drain(..=at);
    }
    all.retain(|evacuation| {
        let concerns = |id| evacuation.victim_id == id || evacuation.preemptor_id == Some(id);
        is(filter.host.as_ref(), &evacuation.host)
            && is(filter.project_id.as_ref(), &evacuation.victim_project_id)
            && is(filter.state.as_ref(), &evacuation.state)
            && filter.server_id.is_none_or(concerns)
            && !(filter.active_only && evacuation.state.is_final())
    });
    all.truncate(page_size(filter.limit));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_model::{EvacuationId, EvacuationState, ServerId};
    use proptest::prelude::*;
    use uuid::Uuid;

    const PROJECTS: [&str; 2] = ["art", "science"];

    fn listed(id: u128, project: usize) -> ListedServer {
        let value = serde_json::json!({
            "id": Uuid::from_u128(id), "name": "s", "project_id": PROJECTS[project],
            "flavor": {"id": Uuid::nil(), "name": "f", "vcpus": 1, "ram_mb": 1, "disk_gb": 1},
            "status": "active", "created_at": "2026-11-26T12:00:00Z",
        });
        ListedServer {
            server: serde_json::from_value(value).unwrap(),
            evacuation: None,
        }
    }

    fn evacuation(id: u128, project: usize, ended: bool, second: u8) -> Evacuation {
        let state = if ended {
            EvacuationState::Evacuated
        } else {
            EvacuationState::Draining
        };
        let at = format!("2026-11-26T12:00:0{}Z", second % 3);
        let value = serde_json::json!({
            "id": Uuid::from_u128(id), "victim_id": Uuid::from_u128(id),
            "victim_project_id": PROJECTS[project], "host": "h", "behaviour": "terminate",
            "grace": 30, "cost": 0.0, "state": state, "attempts": 1, "give_up_at": at,
            "claimed_at": at,
        });
        serde_json::from_value(value).unwrap()
    }

    proptest! {
        #[test]
        fn the_pages_of_servers_are_the_list(
            all in prop::collection::btree_map(1u128..40, 0usize..2, 0..30), limit in 1u32..7
        ) {
            let servers: Vec<ListedServer> = all.iter().map(|(id, p)| listed(*id, *p)).collect();
            let mut filter = ServerFilter {
                project_id: Some("art".to_owned()),
                limit,
                ..ServerFilter::default()
            };
            let mut seen: Vec<ServerId> = Vec::new();
            loop {
                let page = super::servers(servers.clone(), &filter);
                prop_assert!(page.len() <= limit as usize);
                let Some(last) = page.last() else { break };
                filter.marker = Some(last.server.id);
                seen.extend(page.iter().map(|listed| listed.server.id));
            }
            let wanted: Vec<ServerId> = all
                .iter()
                .filter(|(_, project)| **project == 0)
                .map(|(id, _)| ServerId(Uuid::from_u128(*id)))
                .collect();
            prop_assert_eq!(seen, wanted);
        }

        #[test]
        fn the_pages_of_evacuations_are_the_list_newest_first(
            all in prop::collection::btree_map(1u128..40, (0usize..2, any::<bool>(), 0u8..3), 0..30),
            limit in 1u32..7, active_only: bool
        ) {
            let list: Vec<Evacuation> = all
                .iter()
                .map(|(id, (project, ended, second))| evacuation(*id, *project, *ended, *second))
                .collect();
            let mut filter = EvacuationFilter {
                project_id: Some("art".to_owned()),
                active_only,
                limit,
                ..EvacuationFilter::default()
            };
            let mut seen = Vec::new();
            loop {
                let page = super::evacuations(list.clone(), &filter).unwrap();
                let Some(last) = page.last() else { break };
                filter.marker = Some(last.id);
                seen.extend(page);
            }
            prop_assert!(seen.is_sorted_by(|a, b| a.claimed_at >= b.claimed_at));
            let mut ids: Vec<EvacuationId> = seen.iter().map(|e| e.id).collect();
            ids.sort();
            let fits = |e: &&Evacuation| {
                e.victim_project_id == "art" && !(active_only && e.state.is_final())
            };
            let wanted: Vec<EvacuationId> = list.iter().filter(fits).map(|e| e.id).collect();
            prop_assert_eq!(ids, wanted);
        }
    }

    #[test]
    fn a_marker_that_is_gone_is_said_to_be() {
        let filter = EvacuationFilter {
            marker: Some(EvacuationId(Uuid::nil())),
            ..EvacuationFilter::default()
        };
        let error = super::evacuations(Vec::new(), &filter).unwrap_err();
        assert_eq!(error.code(), "EB-STORE-011");
    }
}
