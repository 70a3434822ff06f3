//! Trees of providers: where the groups of a request can go on one host.
//!
//! A host's tree is its root provider and all providers below it. Sharing providers of its
//! aggregates count with it. [`search`] finds the placements that Placement would offer.

mod host_tree;
mod search;

pub(crate) use host_tree::{HostTree, TreeIndex};
pub(crate) use search::{TreeSearch, Walk};

use crate::candidates::PlacementQuery;
use crate::cloud::Cloud;
use ebbtide_nova::model::{AllocationCandidate, RequestSpec};
use ebbtide_nova::placement::Query;
use ebbtide_nova::table::HostSet;
use std::cell::Cell;
use uuid::Uuid;

/// Steps of a search after which it is cut: some milliseconds.
pub(crate) const STEPS: u64 = 200_000;

/// Why a request never preempts, although trees are searched; `None`: it may.
pub(crate) fn unsupported(query: &Query, instances: usize, index: &TreeIndex) -> Option<String> {
    let said = |text: &str| Some(text.to_owned());
    let sums = |group: &&ebbtide_nova::placement::QueryGroup| group.suffix.is_none();
    let plain = query.groups.iter().find(sums);
    let both = plain.is_some_and(|plain| {
        let numbered = query.groups.iter().filter(|group| group.suffix.is_some());
        let mut classes = numbered.flat_map(|group| group.resources.keys());
        classes.any(|class| plain.resources.contains_key(class))
    });
    if both && query.group_policy.as_deref() != Some("none") {
        return said("a class is asked for with and without a suffix, without group_policy=none");
    }
    if index.hosts_share {
        return said("a compute node shares its inventory");
    }
    if instances > 1 && index.shares_any(query) {
        return said("several servers of one request over a sharing provider");
    }
    if plain.is_some_and(|plain| plain.resources.is_empty()) || query.groups.is_empty() {
        return said("the group without a suffix asks for no resources");
    }
    None
}

impl Cloud {
    /// Whether memory has only Placement's own answer for a query, so that plans search trees.
    #[must_use]
    pub fn needs_trees(&self, asked: &PlacementQuery) -> bool {
        let queries = [Some(&asked.query), asked.fallback.as_ref()];
        queries.into_iter().flatten().any(|query| {
            let [group] = query.groups.as_slice() else {
                return true;
            };
            group.suffix.is_some() || self.others_are_not_asked(group).is_err()
        })
    }

    /// Providers of which something has to be read before trees are searched for a request, the
    /// root provider of a host before those below it. At most about `most`.
    #[must_use]
    pub fn unread_of_trees(
        &self,
        spec: &RequestSpec,
        asked: &PlacementQuery,
        most: usize,
    ) -> Vec<Uuid> {
        let index = self.tree_index();
        let mut unread: Vec<Uuid> = index.unread.clone();
        for place in self.hosts_for(spec).iter() {
            let Some(node) = self.at.get(place).copied().flatten() else {
                continue;
            };
            if unread.len() >= most {
                break;
            }
            let mut queries = std::iter::once(&asked.query).chain(&asked.fallback);
            if queries.any(|query| self.may_have_classes(node, query, &index)) {
                let tree = index.providers_of(self, node);
                unread.extend(tree.into_iter().filter(|uuid| !self.is_read(*uuid)));
            }
        }
        let mut seen = std::collections::HashSet::new();
        unread.retain(|uuid| seen.insert(*uuid));
        unread
    }

    /// Providers below compute nodes, and sharing ones, of which something has to be read. At most
    /// so many.
    #[must_use]
    pub fn unread_below(&self, most: usize) -> Vec<Uuid> {
        let others = self.others.iter().copied();
        let unread = others.filter(|uuid| !self.is_read(*uuid)).take(most);
        unread
            .flat_map(|uuid| {
                let root = self.providers.get(&uuid).and_then(|known| known.root);
                let root = root.filter(|root| *root != uuid && !self.is_read(*root));
                root.into_iter().chain([uuid])
            })
            .collect()
    }

    /// What Placement would offer on a host for a query, in no order: all placements that name the
    /// host's root provider. `None`: something of its tree is unknown, or they are too many. For
    /// comparisons.
    #[must_use]
    pub fn placements(&self, node: Uuid, query: &Query) -> Option<Vec<AllocationCandidate>> {
        let tree = self.host_tree(node, &self.tree_index()).ok()?;
        let search = TreeSearch::of(&tree, query);
        let mut free = search.free();
        let steps = Cell::new(STEPS);
        let mut found = Vec::new();
        let ended = search.walk(&mut free, false, &steps, &mut |chosen, _| {
            found.push(search.candidate(chosen));
            false
        });
        (ended != Walk::Cut).then_some(found)
    }

    /// Hosts whose trees could hold one instance if all servers left that may, by the sums of each
    /// class. Also those of which something is unknown.
    pub(crate) fn hosts_of_trees(
        &self,
        within: &HostSet,
        query: &Query,
        index: &TreeIndex,
    ) -> HostSet {
        let mut hosts = within.clone();
        let gone = within.iter().filter(|place| {
            let node = self.at.get(*place).copied().flatten();
            node.is_none_or(|node| !self.may_have_classes(node, query, index))
        });
        gone.collect::<Vec<_>>()
            .into_iter()
            .for_each(|place| hosts.clear(place));
        hosts
    }
}
