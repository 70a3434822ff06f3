//! The placements of a query in one host's tree (`placement/objects/allocation_candidate.py`,
//! `research_context.py`).
//!
//! A group with a suffix needs one provider for all its classes. The group without a suffix may
//! take each class of another provider. So the search fills slots: one for each group with a
//! suffix, one for each class of the group without.

use super::host_tree::{HostTree, TreeProvider};
use ebbtide_nova::model::AllocationCandidate;
use ebbtide_nova::placement::{Query, QueryGroup};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// How a search has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    /// A placement was accepted.
    Accepted,
    /// There is no further placement.
    Exhausted,
    /// The limit of steps was reached.
    Cut,
}

#[derive(Debug)]
struct Slot {
    /// Position of its group in the query.
    group: usize,
    /// Classes by number, and amounts.
    demands: Vec<(usize, i64)>,
    /// Providers that can give this if it is free.
    choices: Vec<usize>,
    /// The slot before it that asks for the same, so that their order does not matter.
    twin: Option<usize>,
}

/// One query on one host.
#[derive(Debug)]
pub(crate) struct TreeSearch<'a> {
    tree: &'a HostTree,
    query: &'a Query,
    classes: Vec<&'a str>,
    slots: Vec<Slot>,
    /// Positions of groups that come from one subtree.
    subtrees: Vec<Vec<usize>>,
    isolate: bool,
    /// How many slots are of the group without a suffix; they come first.
    plain: usize,
}

impl<'a> TreeSearch<'a> {
    pub(crate) fn of(tree: &'a HostTree, query: &'a Query) -> Self {
        let all = query.groups.iter().flat_map(|group| &group.resources);
        let classes: BTreeSet<&str> = all.map(|(class, _)| class.as_str()).collect();
        let mut search = Self {
            tree,
            query,
            classes: classes.into_iter().collect(),
            slots: Vec::new(),
            subtrees: Vec::new(),
            isolate: query.group_policy.as_deref() == Some("isolate"),
            plain: 0,
        };
        let at = |suffix: &String| {
            let mut groups = query.groups.iter();
            groups.position(|group| group.suffix.as_ref() == Some(suffix))
        };
        let subtrees = query.same_subtree.iter();
        search.subtrees = subtrees
            .map(|suffixes| suffixes.iter().filter_map(at).collect())
            .collect();
        search.fill();
        search
    }

    fn fill(&mut self) {
        let root = &self.tree.providers[0];
        let query = self.query;
        let fits_root = query.root_required.is_subset(&root.traits)
            && query.root_forbidden.is_disjoint(&root.traits);
        let mut groups: Vec<(usize, &QueryGroup)> = query.groups.iter().enumerate().collect();
        groups.sort_by_key(|(_, group)| group.suffix.is_some());
        for (at, group) in groups {
            let amount = |(class, amount): (&String, &i128)| {
                let number = self.classes.iter().position(|known| known == class)?;
                Some((number, i64::try_from(*amount).unwrap_or(i64::MAX)))
            };
            let demands: Vec<(usize, i64)> = group.resources.iter().filter_map(amount).collect();
            let parts: Vec<Vec<(usize, i64)>> = match group.suffix {
                Some(_) => vec![demands],
                None => demands.into_iter().map(|demand| vec![demand]).collect(),
            };
            for demands in parts {
                let providers = 0..self.tree.providers.len();
                let choices = providers
                    .filter(|provider| fits_root && self.may_give(*provider, group, &demands));
                let slot = Slot {
                    group: at,
                    choices: choices.collect(),
                    demands,
                    twin: self.twin(at),
                };
                self.slots.push(slot);
                self.plain += usize::from(group.suffix.is_none());
            }
        }
    }

    /// The slot of the last group before this one that asks for the same.
    fn twin(&self, at: usize) -> Option<usize> {
        let group = &self.query.groups[at];
        group.suffix.as_ref()?;
        let alone = |at: &usize| !self.subtrees.iter().any(|one| one.contains(at));
        let same = |slot: &Slot| {
            let other = &self.query.groups[slot.group];
            let suffix = group.suffix.clone();
            let other = QueryGroup {
                suffix: other.suffix.as_ref().and(suffix),
                ..other.clone()
            };
            other == *group && alone(&slot.group)
        };
        self.slots.iter().rposition(same).filter(|_| alone(&at))
    }

    /// Whether a provider can give this to a group if it is free.
    fn may_give(&self, at: usize, group: &QueryGroup, demands: &[(usize, i64)]) -> bool {
        let provider = &self.tree.providers[at];
        let root = &self.tree.providers[0];
        let gives = demands.iter().all(|(class, amount)| {
            let has = provider.classes.get(self.classes[*class]);
            has.is_some_and(|has| {
                (has.min_unit..=has.max_unit).contains(amount) && amount % has.step_size == 0
            })
        });
        if !gives || !group.forbidden.is_disjoint(&provider.traits) {
            return false;
        }
        let named = |name: &String| name.parse::<Uuid>().ok();
        let bad: BTreeSet<Uuid> = group
            .forbidden_aggregates
            .iter()
            .filter_map(named)
            .collect();
        let choices = group.member_of.iter();
        let choices: Vec<BTreeSet<Uuid>> = choices
            .map(|choice| choice.iter().filter_map(named).collect())
            .collect();
        let is_member = |of: &TreeProvider| {
            let mut choices = choices.iter();
            choices.all(|choice| !choice.is_disjoint(&of.aggregates))
        };
        let is_bad = |of: &TreeProvider| !bad.is_disjoint(&of.aggregates);
        if group.suffix.is_some() {
            let asks = !group.required.is_empty() || !group.member_of.is_empty();
            return group.required.is_subset(&provider.traits)
                && is_member(provider)
                && !is_bad(provider)
                // Placement looks at the tree of amounts only, and takes no group of nothing.
                && (demands.is_empty() || self.is_in_tree(provider, group))
                && (asks || !demands.is_empty());
        }
        // The tree is where the root is, for members as well.
        let member = match provider.shared {
            true => is_member(provider),
            false => is_member(provider) || is_member(root),
        };
        member
            && !is_bad(provider)
            && !is_bad(root)
            && (group.in_tree.is_none() || !provider.shared)
            && self.is_in_tree(provider, group)
    }

    /// `in_tree` may name any provider of a tree.
    fn is_in_tree(&self, provider: &TreeProvider, group: &QueryGroup) -> bool {
        let Some(named) = &group.in_tree else {
            return true;
        };
        let Ok(named) = named.parse::<Uuid>() else {
            return false;
        };
        let known = self.tree.find(named);
        let root = known.map_or(named, |at| self.tree.providers[at].root);
        provider.root == root
    }

    /// What is free of each provider and class, as [`Self::walk`] takes it.
    pub(crate) fn free(&self) -> Vec<i64> {
        let each = self.tree.providers.iter().flat_map(|provider| {
            let of = |class: &&str| provider.classes.get(*class).map_or(0, |has| has.free);
            self.classes.iter().map(of).collect::<Vec<_>>()
        });
        each.collect()
    }

    /// How much one instance takes of each class.
    pub(crate) fn sums(&self) -> Vec<i64> {
        let mut sums = vec![0_i64; self.classes.len()];
        for (class, amount) in self.slots.iter().flat_map(|slot| &slot.demands) {
            sums[*class] = sums[*class].saturating_add(*amount);
        }
        sums
    }

    /// The place of a provider's class in what is free; `None`: the query does not ask for it.
    pub(crate) fn cell(&self, provider: usize, class: &str) -> Option<usize> {
        let class = self.classes.iter().position(|known| *known == class)?;
        Some(provider * self.classes.len() + class)
    }

    /// Goes through the placements until `visit` accepts one. It gets the provider of each slot and
    /// what is free behind it. `once`: equal groups are tried in one order only.
    pub(crate) fn walk(
        &self,
        free: &mut [i64],
        once: bool,
        steps: &Cell<u64>,
        visit: &mut dyn FnMut(&[usize], &mut [i64]) -> bool,
    ) -> Walk {
        let mut taken = vec![0; free.len()];
        let mut chosen = Vec::with_capacity(self.slots.len());
        let mut way = Way {
            search: self,
            free,
            taken: &mut taken,
            once,
            steps,
        };
        way.next(&mut chosen, visit)
    }

    /// Whether the providers of the group without a suffix have its traits together.
    fn has_plain_traits(&self, chosen: &[usize]) -> bool {
        let Some(first) = self.slots.first().filter(|_| self.plain > 0) else {
            return true;
        };
        let required = &self.query.groups[first.group].required;
        required.iter().all(|name| {
            let mut providers = chosen[..self.plain].iter();
            providers.any(|at| self.tree.providers[*at].traits.contains(name))
        })
    }

    /// Whether groups that have to come from one subtree do: one of their providers is above all.
    fn is_of_subtrees(&self, chosen: &[usize]) -> bool {
        self.subtrees.iter().all(|groups| {
            let of = self.slots.iter().zip(chosen);
            let of = of.filter(|(slot, _)| groups.contains(&slot.group));
            let providers: Vec<&TreeProvider> =
                of.map(|(_, at)| &self.tree.providers[*at]).collect();
            providers.iter().any(|top| {
                let mut all = providers.iter();
                all.all(|below| below.ancestors.contains(&top.uuid))
            })
        })
    }

    /// Nova finds a host by its root provider, which has to give something.
    fn names_root(&self, chosen: &[usize]) -> bool {
        let mut pairs = self.slots.iter().zip(chosen);
        pairs.any(|(slot, at)| *at == 0 && !slot.demands.is_empty())
    }

    /// A placement in Placement's words.
    pub(crate) fn candidate(&self, chosen: &[usize]) -> AllocationCandidate {
        let mut mappings: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (slot, at) in self.slots.iter().zip(chosen) {
            let suffix = self.query.groups[slot.group].suffix.as_deref();
            let provider = self.tree.providers[*at].uuid.to_string();
            let of = mappings.entry(suffix.unwrap_or_default()).or_default();
            of.insert(provider);
        }
        let allocations: Map<String, Value> = self
            .amounts(chosen)
            .into_iter()
            .map(|(provider, amounts)| (provider.to_string(), json!({ "resources": amounts })))
            .collect();
        AllocationCandidate {
            allocations: allocations.into(),
            mappings: json!(mappings),
        }
    }

    /// What a placement takes of each provider.
    pub(crate) fn amounts(&self, chosen: &[usize]) -> BTreeMap<Uuid, BTreeMap<String, u64>> {
        let mut amounts: BTreeMap<Uuid, BTreeMap<String, u64>> = BTreeMap::new();
        for (slot, at) in self.slots.iter().zip(chosen) {
            for (class, amount) in &slot.demands {
                let of = amounts.entry(self.tree.providers[*at].uuid).or_default();
                let sum = of.entry(self.classes[*class].to_owned()).or_default();
                *sum = sum.saturating_add(amount.unsigned_abs());
            }
        }
        amounts
    }
}

/// A search on its way.
struct Way<'s, 'a> {
    search: &'s TreeSearch<'a>,
    free: &'s mut [i64],
    /// What this placement takes of each provider and class.
    taken: &'s mut [i64],
    once: bool,
    steps: &'s Cell<u64>,
}

impl Way<'_, '_> {
    fn next(
        &mut self,
        chosen: &mut Vec<usize>,
        visit: &mut dyn FnMut(&[usize], &mut [i64]) -> bool,
    ) -> Walk {
        let search = self.search;
        let at = chosen.len();
        if at == search.plain && !search.has_plain_traits(chosen) {
            return Walk::Exhausted;
        }
        let Some(slot) = search.slots.get(at) else {
            if !search.names_root(chosen) || !search.is_of_subtrees(chosen) {
                return Walk::Exhausted;
            }
            return match visit(chosen, self.free) {
                true => Walk::Accepted,
                false => Walk::Exhausted,
            };
        };
        for provider in &slot.choices {
            let provider = *provider;
            let Some(left) = self.steps.get().checked_sub(1) else {
                return Walk::Cut;
            };
            self.steps.set(left);
            let isolated = search.isolate && at >= search.plain;
            let used = isolated && chosen[search.plain..].contains(&provider);
            let before = slot.twin.filter(|_| self.once).map(|twin| chosen[twin]);
            if used || before.is_some_and(|before| provider < before) {
                continue;
            }
            if self.take(slot, provider) {
                chosen.push(provider);
                let ended = self.next(chosen, visit);
                if ended != Walk::Exhausted {
                    return ended;
                }
                chosen.pop();
                self.give_back(slot, provider);
            }
        }
        Walk::Exhausted
    }

    /// Takes a slot's amounts from a provider, if they are free and not too much for one consumer.
    fn take(&mut self, slot: &Slot, provider: usize) -> bool {
        let search = self.search;
        let width = search.classes.len();
        let fits = slot.demands.iter().all(|(class, amount)| {
            let cell = provider * width + class;
            let has = &search.tree.providers[provider].classes;
            let most = has
                .get(search.classes[*class])
                .map_or(0, |has| has.max_unit);
            self.free[cell] >= *amount && self.taken[cell].saturating_add(*amount) <= most
        });
        if fits {
            for (class, amount) in &slot.demands {
                self.free[provider * width + class] -= amount;
                self.taken[provider * width + class] += amount;
            }
        }
        fits
    }

    fn give_back(&mut self, slot: &Slot, provider: usize) {
        let width = self.search.classes.len();
        for (class, amount) in &slot.demands {
            self.free[provider * width + class] += amount;
            self.taken[provider * width + class] -= amount;
        }
    }
}
