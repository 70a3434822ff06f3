//! The pools that can serve one request (`PciDeviceStats._filter_pools`).

use super::add::{add_device, is_pool_of};
use super::affinity::near;
use super::spec::{every, means_yes};
use super::stats::{Free, total};
use crate::fault::NovaException;
use crate::model::{NumaTopology, PciDevice, PciPool, PciRequest};
use std::collections::BTreeMap;

const PF: &str = "type-PF";
const VDPA: &str = "vdpa";
/// Types whose devices only a request gets that names the type.
const UNLESS_REQUESTED: [&str; 2] = [PF, VDPA];

/// What besides the request decides about pools.
#[derive(Clone, Copy)]
pub(super) struct PoolConstraints<'a> {
    /// The host's cells.
    pub(super) host: Option<&'a NumaTopology>,
    /// Numbers of the host cells that the guest is on, if it has a topology.
    pub(super) cells: Option<&'a [i64]>,
}

/// The pools that can serve a request, in the order in which they are used up; none if they are too
/// few.
///
/// # Errors
/// As [`near`].
pub(super) fn select<'a>(
    pools: &[Free<'a>],
    request: &PciRequest,
    around: PoolConstraints<'_>,
    providers: &[String],
) -> Result<Vec<Free<'a>>, NovaException> {
    let enough = |pools: &[Free<'a>]| total(pools) >= request.count;
    let mut left: Vec<Free<'a>> = pools.to_vec();
    left.retain(|free| free.pool.matches_spec(request));
    if !enough(&left) {
        return Ok(Vec::new());
    }
    left = near(left, request, around.cells, around.host)?;
    if !enough(&left) {
        return Ok(Vec::new());
    }
    unless_requested(&mut left, request, PF);
    if !enough(&left) {
        return Ok(Vec::new());
    }
    unless_requested(&mut left, request, VDPA);
    if every(request, "remote_managed", |value| !means_yes(value)) {
        left.retain(|free| !means_yes(free.pool.tag("remote_managed").as_deref()));
    }
    of_providers(&mut left, providers);
    for wanted in ["true", "false"] {
        // Without any alternative the first of the two holds, and nothing is left anyway.
        if every(request, "live_migratable", |value| value == Some(wanted)) {
            left.retain(|free| free.pool.tag("live_migratable").as_deref() == Some(wanted));
            break;
        }
    }
    if !enough(&left) {
        return Ok(Vec::new());
    }
    Ok(left)
}

/// How many devices of a host could serve a request, wherever they are: no fewer than Nova finds.
#[must_use]
pub fn usable(pools: &[PciPool], request: &PciRequest) -> i64 {
    let free = pools.iter().enumerate().map(|(place, pool)| Free {
        place,
        pool,
        count: pool.count,
    });
    let left: Vec<Free<'_>> = free.filter(|free| serves(free.pool, request)).collect();
    total(&left)
}

/// By how much [`usable`] rises when devices come back to their pools.
#[must_use]
pub fn freed(pools: &[PciPool], devices: &[PciDevice], request: &PciRequest) -> i64 {
    let mut freed = 0;
    for device in devices {
        let Some(pool) = pools.iter().find(|pool| is_pool_of(pool, device)) else {
            // A new pool, whose tags are those of others.
            let mut with = pools.to_vec();
            devices
                .iter()
                .for_each(|device| add_device(&mut with, device));
            return usable(&with, request) - usable(pools, request);
        };
        freed += i64::from(serves(pool, request));
    }
    freed
}

/// Whether a pool's devices could serve a request, wherever they are.
fn serves(pool: &PciPool, request: &PciRequest) -> bool {
    let named = |dev_type: &&str| {
        let is_unnamed = every(request, "dev_type", |value| value != Some(*dev_type));
        !(is_unnamed && pool.tag("dev_type").as_deref() == Some(*dev_type))
    };
    pool.matches_spec(request) && UNLESS_REQUESTED.iter().all(named)
}

/// Drops devices of a type that no alternative names. Compared with case, unlike the match of the
/// spec.
fn unless_requested(left: &mut Vec<Free<'_>>, request: &PciRequest, dev_type: &str) {
    if every(request, "dev_type", |value| value != Some(dev_type)) {
        left.retain(|free| free.pool.tag("dev_type").as_deref() != Some(dev_type));
    }
}

/// Drops pools that Placement did not choose, and those that cannot give all that it chose.
fn of_providers(left: &mut Vec<Free<'_>>, providers: &[String]) {
    if providers.is_empty() {
        return;
    }
    let wanted = per_provider(providers);
    left.retain(|free| {
        let provider = free.pool.tag("rp_uuid");
        let count = provider.and_then(|uuid| wanted.get(uuid.as_ref()).copied());
        count.is_some_and(|count| free.count >= count)
    });
}

/// How many devices each provider gives.
pub(super) fn per_provider(providers: &[String]) -> BTreeMap<&str, i64> {
    let mut counts = BTreeMap::new();
    for provider in providers {
        *counts.entry(provider.as_str()).or_insert(0) += 1;
    }
    counts
}
