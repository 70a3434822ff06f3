//! Requests whose groups go into a host's tree of providers: a search in memory judges the host as
//! it would be without its victims.

use super::needs::FilterNeeds;
use crate::cloud::Cloud;
use crate::facts::Allocations;
use crate::trees::{HostTree, STEPS, TreeIndex, TreeSearch, Walk};
use ebbtide_engine::{HostNeeds, NeedColumns};
use ebbtide_model::ServerId;
use ebbtide_nova::model::{AllocationCandidate, HostState, RequestSpec};
use ebbtide_nova::placement::Query;
use serde_json::Value;
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use uuid::Uuid;

/// Nova's tag of the provider of a pool's devices (PCI in Placement).
const PROVIDER_TAG: &str = "rp_uuid";

/// A placement: what it claims, in Placement's words and typed.
#[derive(Debug, Clone)]
pub(super) struct TreePlacement {
    pub(super) candidate: AllocationCandidate,
    pub(super) allocations: Allocations,
}

/// The needs of a request that is placed into trees, and the trees of the hosts that it may use.
pub(super) struct TreeNeeds<'a> {
    cloud: &'a Cloud,
    pub(super) query: &'a Query,
    trees: HashMap<usize, HostTree>,
    /// Cells and devices, judged for each placement.
    pub(super) filters: Option<FilterNeeds<'a>>,
    /// A search was cut.
    cut: AtomicBool,
}

impl fmt::Debug for TreeNeeds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeNeeds")
            .field("query", &self.query.text)
            .field("hosts", &self.trees.len())
            .field("filters", &self.filters)
            .finish_non_exhaustive()
    }
}

/// Cells and devices of a host, and the request, while its instances are placed there.
type FilterState = (HostState, RequestSpec);

impl<'a> TreeNeeds<'a> {
    /// The needs on these hosts, by place. Hosts of which something is unknown are left out.
    pub(super) fn of(
        cloud: &'a Cloud,
        query: &'a Query,
        filters: Option<FilterNeeds<'a>>,
        index: &TreeIndex,
        hosts: impl Iterator<Item = usize>,
    ) -> Self {
        let trees = hosts.filter_map(|place| {
            let node = cloud.at.get(place).copied().flatten()?;
            let tree = cloud.host_tree(node, index);
            Some((place, tree.ok()?))
        });
        Self {
            cloud,
            query,
            trees: trees.collect(),
            filters,
            cut: AtomicBool::new(false),
        }
    }

    pub(super) fn knows(&self, place: usize) -> bool {
        self.trees.contains_key(&place)
    }

    /// Whether a search was cut: a set of victims may have been refused that is sufficient.
    pub(super) fn was_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    fn tree(&self, host: &str) -> Option<(usize, &HostTree)> {
        let place = self.cloud.named.get(host).copied()?;
        Some((place, self.trees.get(&place)?))
    }

    /// What a server frees of a host's tree when it ends. One that is only stopped keeps what it
    /// holds below its host and of sharing providers.
    fn freed(&self, server: Uuid) -> Allocations {
        let Some(instance) = self.cloud.instances.get(&server) else {
            return Allocations::new();
        };
        let (Some((allocations, _)), Some(terms)) = (self.cloud.consumer(server), &instance.terms)
        else {
            return Allocations::new();
        };
        let mut freed = allocations.clone();
        for (provider, kept) in self.cloud.kept_allocations(terms, allocations) {
            let of = freed.entry(provider).or_default();
            for (class, amount) in kept {
                if let Some(freed) = of.get_mut(&class) {
                    *freed = freed.saturating_sub(amount);
                }
            }
        }
        freed
    }

    /// What is free of a tree once servers have left.
    fn free(&self, search: &TreeSearch<'_>, tree: &HostTree, gone: &[ServerId]) -> Vec<i64> {
        let mut free = search.free();
        for (provider, amounts) in gone.iter().flat_map(|server| self.freed(server.0)) {
            let Some(at) = tree.find(provider) else {
                continue;
            };
            for (class, amount) in amounts {
                if let Some(cell) = search.cell(at, &class) {
                    free[cell] = free[cell].saturating_add(signed(amount));
                }
            }
        }
        free
    }

    /// Where so many instances of the request go on a host without these servers.
    pub(super) fn placements(
        &self,
        host: &str,
        count: u32,
        gone: &[ServerId],
    ) -> Option<Vec<TreePlacement>> {
        let (place, tree) = self.tree(host)?;
        let search = TreeSearch::of(tree, self.query);
        let mut free = self.free(&search, tree, gone);
        let state = match &self.filters {
            Some(filters) => {
                let mut state = filters.without(place, gone).ok()?;
                self.name_pools(&mut state, tree);
                Some((state, filters.spec.clone()))
            }
            None => None,
        };
        let steps = Cell::new(STEPS);
        let mut found = Vec::new();
        self.place(
            &search,
            &mut free,
            count,
            &steps,
            state.as_ref(),
            &mut found,
        )
        .then_some(found)
    }

    /// Nova drops empty pools, and what it knows of them. A pool that came back with a victim's
    /// device belongs to the provider that Nova has named after the device.
    fn name_pools(&self, state: &mut HostState, tree: &HostTree) {
        let node = state.nodename.clone();
        for pool in state.pci_pools.iter_mut().flatten() {
            let address = pool.tags.get("address").and_then(Value::as_str);
            let Some(address) = address.filter(|_| !pool.tags.contains_key(PROVIDER_TAG)) else {
                continue;
            };
            let name = format!("{node}_{address}");
            let named = tree.providers.iter().find(|provider| {
                let known = self.cloud.providers.get(&provider.uuid);
                known.is_some_and(|known| known.name.eq_ignore_ascii_case(&name))
            });
            if let Some(provider) = named {
                let uuid = provider.uuid.to_string();
                pool.tags.insert(PROVIDER_TAG.to_owned(), uuid.into());
            }
        }
    }

    /// Places the rest of the instances, one after another.
    fn place(
        &self,
        search: &TreeSearch<'_>,
        free: &mut [i64],
        left: u32,
        steps: &Cell<u64>,
        state: Option<&FilterState>,
        found: &mut Vec<TreePlacement>,
    ) -> bool {
        let Some(left) = left.checked_sub(1) else {
            return true;
        };
        let ended = search.walk(free, state.is_none(), steps, &mut |chosen, free| {
            let candidate = search.candidate(chosen);
            let next = match state.zip(self.filters.as_ref()) {
                Some(((state, spec), filters)) => match filters.take(state, spec, &candidate) {
                    Some(next) => Some(next),
                    None => return false,
                },
                None => None,
            };
            found.push(TreePlacement {
                candidate,
                allocations: search.amounts(chosen),
            });
            let mut rest = free.to_vec();
            let placed = self.place(search, &mut rest, left, steps, next.as_ref(), found);
            if !placed {
                found.pop();
            }
            placed
        });
        if ended == Walk::Cut {
            self.cut.store(true, Ordering::Relaxed);
        }
        ended == Walk::Accepted
    }

    /// What a server frees below its host and of sharing providers, in words.
    pub(super) fn freed_in_words(&self, server: Uuid) -> Vec<String> {
        let freed = self.freed(server).into_iter();
        let others = freed.filter(|(provider, _)| !self.cloud.nodes.contains_key(provider));
        others
            .flat_map(|(provider, amounts)| {
                let known = self.cloud.providers.get(&provider);
                let name = known.map_or_else(|| provider.to_string(), |known| known.name.clone());
                let amounts = amounts.into_iter().filter(|(_, amount)| *amount > 0);
                amounts.map(move |(class, amount)| format!("{amount} {class} of {name}"))
            })
            .collect()
    }
}

impl HostNeeds for TreeNeeds<'_> {
    fn frees(&self, host: &str, instance: ServerId) -> bool {
        let Some((_, tree)) = self.tree(host) else {
            return false;
        };
        let asked = |class: &String| {
            let mut groups = self.query.groups.iter();
            groups.any(|group| group.resources.contains_key(class))
        };
        let freed = self.freed(instance.0);
        let amounts = freed.iter().any(|(provider, amounts)| {
            tree.find(*provider).is_some()
                && amounts
                    .iter()
                    .any(|(class, amount)| *amount > 0 && asked(class))
        });
        let filters = self.filters.as_ref();
        amounts || filters.is_some_and(|filters| filters.frees(host, instance))
    }

    fn fits(&self, host: &str, count: u32, gone: &[ServerId]) -> bool {
        self.placements(host, count, gone).is_some()
    }

    /// The sums of each class over the tree: whatever is placed where, they have to be free.
    fn columns(
        &self,
        host: &str,
        count: u32,
        before: &[ServerId],
        candidates: &[ServerId],
    ) -> NeedColumns {
        let Some((_, tree)) = self.tree(host) else {
            return NeedColumns::none();
        };
        let search = TreeSearch::of(tree, self.query);
        let free = self.free(&search, tree, before);
        let wanted = search.sums();
        let width = wanted.len();
        let mut deficits: Vec<i64> = wanted
            .iter()
            .map(|amount| amount.saturating_mul(i64::from(count)))
            .collect();
        for (cell, free) in free.iter().enumerate() {
            let of = &mut deficits[cell % width.max(1)];
            *of = of.saturating_sub((*free).max(0));
        }
        deficits
            .iter_mut()
            .for_each(|missing| *missing = (*missing).max(0));
        let freed = candidates.iter().flat_map(|server| {
            let mut row = vec![0_i64; width];
            for (provider, amounts) in self.freed(server.0) {
                let Some(at) = tree.find(provider) else {
                    continue;
                };
                for (class, amount) in amounts {
                    if let Some(cell) = search.cell(at, &class) {
                        let of = &mut row[cell % width];
                        *of = of.saturating_add(signed(amount));
                    }
                }
            }
            row
        });
        NeedColumns {
            freed: freed.collect(),
            deficits: vec![deficits],
        }
    }

    fn reason(&self, host: &str, count: u32, gone: &[ServerId]) -> String {
        match self.fits(host, count, gone) {
            true => String::new(),
            false => "its providers cannot take the request's groups even without the servers \
                      that may be evacuated"
                .to_owned(),
        }
    }
}

pub(super) fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}
