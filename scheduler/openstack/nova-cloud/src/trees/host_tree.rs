//! The providers of one host as the search takes them.

use crate::cloud::{Cloud, capacity};
use ebbtide_nova::placement::Query;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use uuid::Uuid;

/// One class of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeClass {
    /// Capacity minus all usage; negative if overcommitted.
    pub(crate) free: i64,
    pub(crate) min_unit: i64,
    pub(crate) max_unit: i64,
    pub(crate) step_size: i64,
}

#[derive(Debug, Clone)]
pub(crate) struct TreeProvider {
    pub(crate) uuid: Uuid,
    /// Its own root, which differs from the host's for most sharing providers.
    pub(crate) root: Uuid,
    /// Itself and all providers above it.
    pub(crate) ancestors: BTreeSet<Uuid>,
    /// It is of another tree and shares its inventory with the host by an aggregate.
    pub(crate) shared: bool,
    pub(crate) classes: BTreeMap<String, TreeClass>,
    pub(crate) traits: BTreeSet<String>,
    pub(crate) aggregates: BTreeSet<Uuid>,
}

/// The providers of one host, the root provider first.
#[derive(Debug, Clone)]
pub(crate) struct HostTree {
    pub(crate) providers: Vec<TreeProvider>,
}

impl HostTree {
    /// The position of a provider.
    pub(crate) fn find(&self, uuid: Uuid) -> Option<usize> {
        self.providers.iter().position(|known| known.uuid == uuid)
    }
}

/// Which providers are below which root, and which share: one look at all providers.
#[derive(Debug, Clone, Default)]
pub(crate) struct TreeIndex {
    below: HashMap<Uuid, Vec<Uuid>>,
    /// Sharing providers, with their aggregates and classes.
    sharing: Vec<(Uuid, BTreeSet<Uuid>, BTreeSet<String>)>,
    /// Root providers that are no compute nodes and of which nothing is known.
    pub(super) unread: Vec<Uuid>,
    /// A compute node shares its inventory.
    pub(super) hosts_share: bool,
}

impl TreeIndex {
    /// Whether a sharing provider has a class of the query.
    pub(super) fn shares_any(&self, query: &Query) -> bool {
        let asked = query.groups.iter().flat_map(|group| group.resources.keys());
        let classes: BTreeSet<&String> = asked.collect();
        let mut shared = self.sharing.iter().flat_map(|(_, _, classes)| classes);
        shared.any(|class| classes.contains(class))
    }

    /// The host's tree and the providers that share with it, the root first.
    pub(crate) fn providers_of(&self, cloud: &Cloud, node: Uuid) -> Vec<Uuid> {
        let mut all = vec![node];
        all.extend(self.below.get(&node).into_iter().flatten());
        let own = all.len();
        for (uuid, aggregates, _) in &self.sharing {
            let meets = |of: &Uuid| {
                let known = cloud.providers.get(of).and_then(|p| p.aggregates.as_ref());
                known.is_some_and(|known| !known.is_disjoint(aggregates))
            };
            if !all.contains(uuid) && all[..own].iter().any(meets) {
                all.push(*uuid);
            }
        }
        all
    }
}

impl Cloud {
    pub(crate) fn tree_index(&self) -> TreeIndex {
        let mut index = TreeIndex {
            hosts_share: self.columns.is_trait_used(crate::cloud::SHARES),
            ..TreeIndex::default()
        };
        for uuid in &self.others {
            let Some(provider) = self.providers.get(uuid) else {
                continue;
            };
            match provider.root {
                Some(root) if root != *uuid => index.below.entry(root).or_default().push(*uuid),
                _ if provider.traits.is_none() => index.unread.push(*uuid),
                _ => {}
            }
            if provider.shares() {
                let aggregates = provider.aggregates.clone().unwrap_or_default();
                let classes = provider
                    .inventories
                    .iter()
                    .flat_map(BTreeMap::keys)
                    .cloned();
                index.sharing.push((*uuid, aggregates, classes.collect()));
            }
        }
        index
    }

    /// Whether everything of a provider is known, its consumers included.
    pub(crate) fn is_read(&self, uuid: Uuid) -> bool {
        self.providers.get(&uuid).is_some_and(|known| {
            let facts = known.inventories.is_some() && !known.partial;
            let place = known.traits.is_some() && known.aggregates.is_some();
            facts && place && known.consumers_known
        })
    }

    /// Whether a host's tree has each class that is asked for, as far as it is known, and enough
    /// of it if all servers left that may.
    pub(super) fn may_have_classes(&self, node: Uuid, query: &Query, index: &TreeIndex) -> bool {
        let providers = index.providers_of(self, node);
        let mut sums: BTreeMap<&str, i128> = BTreeMap::new();
        for uuid in &providers {
            let Some(known) = self.providers.get(uuid) else {
                return true;
            };
            let Some(inventories) = &known.inventories else {
                return true;
            };
            for (class, inventory) in inventories {
                *sums.entry(class).or_default() += i128::from(capacity(inventory).max(0));
            }
        }
        let mut wanted: BTreeMap<&str, i128> = BTreeMap::new();
        for (class, amount) in query.groups.iter().flat_map(|group| &group.resources) {
            *wanted.entry(class).or_default() += amount;
        }
        wanted
            .iter()
            .all(|(class, amount)| sums.get(class).is_some_and(|sum| sum >= amount))
    }

    /// A host's tree with what is free now.
    ///
    /// # Errors
    /// Which provider is not known well enough.
    pub(crate) fn host_tree(&self, node: Uuid, index: &TreeIndex) -> Result<HostTree, Uuid> {
        let tree = index.providers_of(self, node);
        let own = 1 + index.below.get(&node).map_or(0, Vec::len);
        let providers = tree.iter().enumerate().map(|(at, uuid)| {
            if !self.is_read(*uuid) {
                return Err(*uuid);
            }
            self.tree_provider(*uuid, at >= own).ok_or(*uuid)
        });
        Ok(HostTree {
            providers: providers.collect::<Result<_, _>>()?,
        })
    }

    fn tree_provider(&self, uuid: Uuid, shared: bool) -> Option<TreeProvider> {
        let known = self.providers.get(&uuid)?;
        let mut ancestors = BTreeSet::from([uuid]);
        let mut above = known.parent;
        while let Some(parent) = above.filter(|parent| ancestors.insert(*parent)) {
            above = self.providers.get(&parent).and_then(|known| known.parent);
        }
        let classes = known.inventories.as_ref()?.iter().map(|(class, has)| {
            let class_of = TreeClass {
                free: capacity(has).saturating_sub(known.used_of(class)),
                min_unit: has.min_unit,
                max_unit: has.max_unit,
                step_size: has.step_size.max(1),
            };
            (class.clone(), class_of)
        });
        Some(TreeProvider {
            uuid,
            root: known.root.unwrap_or(uuid),
            ancestors,
            shared,
            classes: classes.collect(),
            traits: known.traits.clone()?,
            aggregates: known.aggregates.clone()?,
        })
    }
}
