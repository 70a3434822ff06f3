//! What the caller gets: for each instance the chosen host, and hosts to fall back on
//! (`_get_alternate_hosts`).

use super::{Chosen, Field};
use crate::model::{AllocationCandidate, HostState};
use crate::python::text;

/// A host for an instance (`Selection`).
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// Place in the list of states.
    pub host: usize,
    /// What to claim there; `None` without Placement.
    pub candidate: Option<AllocationCandidate>,
    /// CPU and memory allocation ratio, where NUMATopologyFilter left them as limits.
    pub limits: Option<(f64, f64)>,
    pub availability_zone: String,
}

/// Alternates are of the chosen host's cell and none of the chosen ones; they are not claimed, so
/// several instances get the same. A host whose claim was refused may be among them.
pub(super) fn select<S: Field>(
    states: &S,
    chosen: &[Chosen],
    hosts: &[usize],
    alternates: i64,
    claimed: bool,
    default_zone: &str,
) -> Vec<Vec<Selection>> {
    let selection = |host: usize, candidate: Option<AllocationCandidate>| Selection {
        host,
        candidate,
        limits: states.get(host).numa_limits,
        availability_zone: availability_zone(states.get(host), default_zone),
    };
    let wanted = usize::try_from(alternates).unwrap_or(0);
    chosen
        .iter()
        .map(|own| {
            let mut all = vec![selection(own.host, own.candidate.clone())];
            for &host in hosts {
                if all.len() > wanted {
                    break;
                }
                let same_cell = states.get(host).cell_uuid == states.get(own.host).cell_uuid;
                if !same_cell || chosen.iter().any(|other| other.host == host) {
                    continue;
                }
                if !claimed {
                    all.push(selection(host, None));
                } else if let Some(candidate) = states.candidate(host) {
                    all.push(selection(host, Some(candidate)));
                }
            }
            all
        })
        .collect()
}

/// The zone that a host's aggregates name, else the default. A host should be in one zone only;
/// where several are named Nova takes one by the order of a set, here it is the first of the first
/// aggregate.
#[must_use]
pub fn availability_zone(host: &HostState, default: &str) -> String {
    let zones = availability_zones(host);
    zones.first().map_or(default, |zone| *zone).to_owned()
}

/// All zones that a host's aggregates name, each once: Nova may take any of them.
#[must_use]
pub fn availability_zones(host: &HostState) -> Vec<&str> {
    let mut zones: Vec<&str> = Vec::new();
    let named = host
        .aggregates
        .iter()
        .filter_map(|aggregate| aggregate.metadata.get("availability_zone"));
    for zone in named.flat_map(|zones| zones.split(',')).map(text::strip) {
        if !zones.contains(&zone) {
            zones.push(zone);
        }
    }
    zones
}
