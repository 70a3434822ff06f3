//! The host states of a case, as `HostManager.get_host_states_by_uuids` builds them.

use super::{CELL0, Case};
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::hosts;
use ebbtide_nova::model::{Aggregate, HostState, Options, RequestSpec};
use std::collections::HashMap;
use std::sync::Arc;

/// A host state and the place of its host in the case.
#[derive(Debug, Clone)]
pub struct IndexedHostState {
    /// Place in the case.
    pub place: usize,
    pub state: HostState,
}

/// Builds the states that exist for a request, in the order of the case. Hosts without a service
/// record do not, nor do hosts in a cell that is disabled or not asked for.
///
/// Nova walks a set of names here, so that its order changes with every process; the order of the
/// input is our choice.
///
/// # Errors
/// What Nova raises for rows that it cannot take in; one such row fails every request.
pub fn states(
    case: &Case,
    options: &Options,
    spec: Option<&RequestSpec>,
) -> Result<Vec<IndexedHostState>, NovaException> {
    let cells = cells(case, spec);
    let mut services = HashMap::new();
    let mut rows = Vec::new();
    for place in 0..case.host_count() {
        let cell = case.cell_of(place);
        let Some(cell_place) = cells.iter().position(|c| *c == cell) else {
            continue;
        };
        let host = case.names()[place].0.as_str();
        if !services.contains_key(host)
            && let Some(service) = case.service(place)?
        {
            services.insert(host, service);
        }
        rows.push((cell_place, place, case.compute(place, options)?));
    }
    // All rows are read before the first state is made, and states are made cell by cell: that
    // decides which error is first.
    rows.sort_by_key(|(cell_place, _, _)| *cell_place);
    let instances = case.instances();
    let mut placed: Vec<IndexedHostState> = Vec::with_capacity(rows.len());
    let mut known: HashMap<(&str, &str), usize> = HashMap::new();
    for (cell_place, place, row) in &rows {
        let (host, node) = &case.names()[*place];
        let Some(service) = services.get(host.as_str()) else {
            continue;
        };
        let at = *known.entry((host, node)).or_insert_with(|| {
            let state = hosts::new_state(host, node, &cells[*cell_place]);
            placed.push(IndexedHostState {
                place: *place,
                state,
            });
            placed.len() - 1
        });
        let state = &mut placed[at].state;
        hosts::update(state, row)?;
        state.service = service.clone();
        state.aggregates = aggregates(&case.aggregates, host);
        state.instances = Arc::new(instances.get(host.as_str()).cloned().unwrap_or_default());
    }
    placed.sort_by_key(|placed| placed.place);
    Ok(placed)
}

/// Gives each state the candidates that Placement offers for it. A node that was never updated has
/// no UUID, so none is its.
pub fn attach_candidates(case: &Case, placed: &mut [IndexedHostState]) {
    for placed in placed {
        placed.state.allocation_candidates = if placed.state.uuid.is_some() {
            case.candidates(placed.place)
        } else {
            Vec::new()
        };
    }
}

fn cells(case: &Case, spec: Option<&RequestSpec>) -> Vec<String> {
    let destination = spec.and_then(|spec| spec.requested_destination.as_ref());
    if let Some(destination) = destination
        && let Some(cell) = &destination.cell
        && destination.allow_cross_cell_move != Some(true)
    {
        // Even if it is disabled.
        return vec![cell.clone()];
    }
    case.cells
        .iter()
        .filter(|cell| !cell.disabled && cell.uuid != CELL0)
        .map(|cell| cell.uuid.clone())
        .collect()
}

/// Nova keeps aggregates by id, so of two with one id the later one counts for the hosts of both.
fn aggregates(all: &[Arc<Aggregate>], host: &str) -> Vec<Arc<Aggregate>> {
    let mut of_host: Vec<Arc<Aggregate>> = Vec::new();
    for aggregate in all {
        let member = aggregate.hosts.iter().any(|name| name == host);
        if member && of_host.iter().all(|known| known.id != aggregate.id) {
            let last = all.iter().rfind(|other| other.id == aggregate.id);
            of_host.push(last.unwrap_or(aggregate).clone());
        }
    }
    of_host
}
