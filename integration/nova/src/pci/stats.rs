//! Free devices of a host, and taking some (`PciDeviceStats.support_requests`, `apply_requests`).

use super::mapping::ProviderMapping;
use super::select::{PoolConstraints, per_provider, select};
use crate::fault::NovaException;
use crate::model::{HostState, NumaTopology, PciPool, PciRequest};
use std::collections::BTreeMap;

/// A host's pools and the cells that they are near to.
#[derive(Debug, Clone, Copy)]
pub struct PciStats<'a> {
    /// Pools, those with fewer tags first.
    pub pools: &'a [PciPool],
    /// Cells of the host, if it reports any.
    pub topology: Option<&'a NumaTopology>,
}

/// A pool that is left, and what is left of it. Only these change while requests are tried, so a
/// try copies nothing else.
#[derive(Clone, Copy)]
pub(super) struct Free<'a> {
    /// Place in the host's list.
    pub(super) place: usize,
    /// The pool; its own count is that of before.
    pub(super) pool: &'a PciPool,
    /// Devices that are left.
    pub(super) count: i64,
}

/// Devices in all pools.
pub(super) fn total(pools: &[Free<'_>]) -> i64 {
    pools.iter().map(|free| free.count).sum()
}

impl<'a> PciStats<'a> {
    /// Of a host; `None` if the node was never updated.
    #[must_use]
    pub fn of(host: &'a HostState) -> Option<Self> {
        host.pci_pools.as_deref().map(|pools| Self {
            pools,
            topology: host.numa_topology.as_ref(),
        })
    }

    /// Whether all requests can be had at the same time. `cells` are the numbers of the host cells
    /// that the guest is on.
    ///
    /// # Errors
    /// Other than for lack of devices: broken requests or mappings, see `ProviderMapping`, and
    /// policy `socket` on a host without topology (`AttributeError`).
    pub fn supports(
        self,
        requests: &[PciRequest],
        mapping: ProviderMapping<'_>,
        cells: Option<&[i64]>,
    ) -> Result<bool, NovaException> {
        let host = self.topology;
        take_all(
            &mut all_free(self.pools),
            requests,
            mapping,
            PoolConstraints { host, cells },
        )
    }
}

/// Takes devices from the pools; a pool that is used up is dropped from the list.
///
/// # Errors
/// `PciDeviceRequestFailed` if a request cannot be served, or as [`PciStats::supports`]. What the
/// requests before it took is taken.
pub fn apply(
    pools: &mut Vec<PciPool>,
    topology: Option<&NumaTopology>,
    requests: &[PciRequest],
    mapping: ProviderMapping<'_>,
    cells: Option<&[i64]>,
) -> Result<(), NovaException> {
    let mut free = all_free(pools);
    let around = PoolConstraints {
        host: topology,
        cells,
    };
    let done = take_all(&mut free, requests, mapping, around);
    let left: BTreeMap<usize, i64> = free.iter().map(|free| (free.place, free.count)).collect();
    let mut place = 0;
    pools.retain_mut(|pool| {
        let count = left.get(&place);
        place += 1;
        if let Some(count) = count {
            pool.count = *count;
        }
        count.is_some()
    });
    if done? {
        Ok(())
    } else {
        Err(NovaException::new(
            "PciDeviceRequestFailed",
            "the pools cannot serve all requests",
        ))
    }
}

fn all_free(pools: &[PciPool]) -> Vec<Free<'_>> {
    let free = pools.iter().enumerate().map(|(place, pool)| Free {
        place,
        pool,
        count: pool.count,
    });
    free.collect()
}

fn take_all(
    free: &mut Vec<Free<'_>>,
    requests: &[PciRequest],
    mapping: ProviderMapping<'_>,
    around: PoolConstraints<'_>,
) -> Result<bool, NovaException> {
    for request in requests {
        let providers = mapping.providers(request)?;
        if !take(free, request, &providers, around)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn take(
    free: &mut Vec<Free<'_>>,
    request: &PciRequest,
    providers: &[String],
    around: PoolConstraints<'_>,
) -> Result<bool, NovaException> {
    let selected = select(free, request, around, providers)?;
    if selected.is_empty() {
        return Ok(false);
    }
    if providers.is_empty() {
        let mut wanted = request.count;
        for pool in &selected {
            // A pool is dropped when it is used up exactly, so it never stays with a count of 0.
            if pool.count > wanted {
                set_count(free, pool.place, pool.count - wanted);
                wanted = 0;
            } else {
                wanted -= pool.count;
                free.retain(|other| other.place != pool.place);
            }
            if wanted == 0 {
                break;
            }
        }
        return Ok(true);
    }
    if !one_pool_per_provider(free) {
        return Ok(false);
    }
    let counts = per_provider(providers);
    for pool in &selected {
        let provider = pool.pool.tag("rp_uuid");
        let wanted = provider.and_then(|uuid| counts.get(uuid.as_ref()).copied());
        let left = pool.count - wanted.unwrap_or(0);
        if left == 0 {
            free.retain(|other| other.place != pool.place);
        } else {
            set_count(free, pool.place, left);
        }
    }
    Ok(true)
}

fn set_count(free: &mut [Free<'_>], place: usize, count: i64) {
    if let Some(pool) = free.iter_mut().find(|free| free.place == place) {
        pool.count = count;
    }
}

/// Nova refuses a host where two pools belong to one provider; a tag that is there but null counts
/// as a provider.
fn one_pool_per_provider(free: &[Free<'_>]) -> bool {
    let mut seen = Vec::new();
    for pool in free
        .iter()
        .filter(|free| free.pool.tags.contains_key("rp_uuid"))
    {
        let provider = pool.pool.tag("rp_uuid");
        if seen.contains(&provider) {
            return false;
        }
        seen.push(provider);
    }
    true
}
