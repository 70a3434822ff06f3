//! What physically runs, whatever Placement shows.
//!
//! A victim of an open preemption still runs in capacity that Placement has given to its newcomer.
//! As long as the newcomer holds that, Placement shows the host as full. If the newcomer is
//! deleted, Placement shows capacity as free in which the victim still runs. That capacity counts
//! as used here until the victim is gone, or holds it again.

use super::{Cloud, provider};
use crate::facts::{Allocations, Consumer};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use uuid::Uuid;

/// Victims and newcomers of an open preemption.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenPreemption {
    /// All victims: plans must not use them.
    pub victims: BTreeSet<Uuid>,
    /// Victims that may still run, with what they held when they were chosen.
    pub running: BTreeMap<Uuid, Allocations>,
    /// The instances that get the victims' capacity.
    pub newcomers: BTreeSet<Uuid>,
}

impl OpenPreemption {
    /// What runs on a provider beyond what victims and newcomers hold there.
    fn unseen<'a>(
        &self,
        at: Uuid,
        lives: impl Fn(Uuid) -> bool,
        held: impl Fn(Uuid) -> Option<&'a BTreeMap<String, u64>>,
    ) -> BTreeMap<String, i64> {
        let mut unseen = BTreeMap::new();
        for (victim, had) in &self.running {
            if let Some(had) = had.get(&at).filter(|_| lives(*victim)) {
                provider::add(&mut unseen, had, 1);
            }
        }
        for consumer in self.running.keys().chain(&self.newcomers) {
            if let Some(holds) = held(*consumer) {
                provider::add(&mut unseen, holds, -1);
            }
        }
        unseen.retain(|_, amount| *amount > 0);
        unseen
    }

    fn providers(&self) -> impl Iterator<Item = Uuid> + '_ {
        self.running.values().flat_map(|had| had.keys().copied())
    }
}

/// Open preemptions by their ids in the ledger.
#[derive(Debug, Default)]
pub(crate) struct OpenPreemptions {
    pub(super) rows: HashMap<Uuid, OpenPreemption>,
    /// The preemptions that name a consumer.
    naming: HashMap<Uuid, BTreeSet<Uuid>>,
    /// The preemptions with victims on a provider.
    at: HashMap<Uuid, BTreeSet<Uuid>>,
}

impl Cloud {
    /// Whether these are the known open preemptions.
    #[must_use]
    pub fn open_preemptions_are(&self, rows: &HashMap<Uuid, OpenPreemption>) -> bool {
        self.open.rows == *rows
    }

    /// Sets the open preemptions of the ledger.
    pub fn set_open_preemptions(&mut self, rows: HashMap<Uuid, OpenPreemption>) {
        if self.open.rows == rows {
            return;
        }
        let mut naming: HashMap<Uuid, BTreeSet<Uuid>> = HashMap::new();
        let mut at: HashMap<Uuid, BTreeSet<Uuid>> = HashMap::new();
        for (id, row) in &rows {
            for provider in row.providers() {
                at.entry(provider).or_default().insert(*id);
            }
            for consumer in row.running.keys().chain(&row.newcomers) {
                naming.entry(*consumer).or_default().insert(*id);
            }
        }
        let before = std::mem::replace(&mut self.open, OpenPreemptions { rows, naming, at });
        let victims = |open: &OpenPreemptions| -> BTreeSet<Uuid> {
            open.rows.values().flat_map(|r| r.victims.clone()).collect()
        };
        let (were, are) = (victims(&before), victims(&self.open));
        // A preemption that this scheduler has just begun is in neither set.
        for spared in were.difference(&are) {
            self.set_leaving(*spared, false);
        }
        for leaves in &are {
            self.set_leaving(*leaves, true);
        }
        let differs = |id: &&Uuid| before.rows.get(*id) != self.open.rows.get(*id);
        let ids = before.rows.keys().chain(self.open.rows.keys());
        let changed = ids.filter(differs).flat_map(|id| {
            let rows = [before.rows.get(id), self.open.rows.get(id)];
            rows.into_iter().flatten()
        });
        let touched: BTreeSet<Uuid> = changed.flat_map(OpenPreemption::providers).collect();
        for provider in touched {
            self.follow_running(provider);
        }
    }

    /// Updates the unseen usage after a change of a consumer that an open preemption names.
    pub(super) fn follow_named(&mut self, consumer: Uuid) {
        let Some(rows) = self.open.naming.get(&consumer) else {
            return;
        };
        let rows = rows.iter().filter_map(|id| self.open.rows.get(id));
        let touched: BTreeSet<Uuid> = rows.flat_map(OpenPreemption::providers).collect();
        for provider in touched {
            self.follow_running(provider);
        }
    }

    fn follow_running(&mut self, at: Uuid) {
        let running = self.unseen_by(at, |consumer| {
            self.consumers.get(&consumer)?.allocations.get(&at)
        });
        let known = self.providers.entry(at).or_default();
        if known.running != running {
            known.running = running;
            self.follow_amounts(at);
        }
    }

    fn unseen_by<'a>(
        &self,
        at: Uuid,
        held: impl Fn(Uuid) -> Option<&'a BTreeMap<String, u64>>,
    ) -> BTreeMap<String, i64> {
        let mut all: BTreeMap<String, i64> = BTreeMap::new();
        // A victim that its owner has deleted, or that has moved, does not run here any more,
        // whatever its record says.
        let root = self.providers.get(&at).and_then(|known| known.root);
        let node = root
            .filter(|root| self.nodes.contains_key(root))
            .unwrap_or(at);
        let is_shared = !self.nodes.contains_key(&node);
        let lives = |victim: Uuid| {
            let instance = self.instances.get(&victim);
            instance.is_some_and(|instance| {
                let on = self.node_of(&instance.record);
                on == Some(node) || (is_shared && on.is_some())
            })
        };
        let rows = self.open.at.get(&at).into_iter().flatten();
        for row in rows.filter_map(|id| self.open.rows.get(id)) {
            for (class, amount) in row.unseen(at, lives, &held) {
                let sum = all.entry(class).or_default();
                *sum = sum.saturating_add(amount);
            }
        }
        all
    }

    /// What runs on a provider beyond what these consumers hold there according to Placement.
    #[must_use]
    pub fn unseen_beside(&self, at: Uuid, consumers: &[Consumer]) -> BTreeMap<String, i64> {
        self.unseen_by(at, |wanted| {
            let found = consumers.iter().find(|consumer| consumer.uuid == wanted);
            found.map(|consumer| &consumer.resources)
        })
    }

    /// True if victims of open preemptions may still run on a provider. `except`: the preemption
    /// that does not count.
    #[must_use]
    pub fn is_being_evacuated(&self, at: Uuid, except: Option<Uuid>) -> bool {
        let rows = self.open.at.get(&at).into_iter().flatten();
        rows.into_iter().any(|id| Some(*id) != except)
    }

    /// A class of which a provider has less than its consumers hold and its unseen victims use;
    /// `None`: everything fits.
    #[must_use]
    pub fn overfull(&self, at: Uuid, consumers: &[Consumer]) -> Option<String> {
        let node = self.nodes.get(&at)?;
        let inventories = self.providers.get(&at)?.inventories(&node.row);
        let unseen = self.unseen_beside(at, consumers);
        let mut used = unseen.clone();
        for consumer in consumers {
            provider::add(&mut used, &consumer.resources, 1);
        }
        // Without unseen usage, Placement itself has checked this.
        unseen.into_keys().find_map(|class| {
            let capacity = inventories.get(&class).map_or(0, super::capacity);
            let used = used.get(&class).copied().unwrap_or(0);
            (used > capacity).then(|| format!("{used} of {capacity} {class}"))
        })
    }

    /// Whether amounts fit beside what runs unseen on a provider. Without unseen usage, Placement
    /// decides.
    pub(crate) fn fits_beside(&self, at: Uuid, amounts: &BTreeMap<String, u64>) -> bool {
        let known = self.providers.get(&at);
        let unseen = known.is_some_and(|known| !known.running.is_empty());
        !unseen || self.has_left(at, amounts)
    }

    /// Whether a provider has so much left beside all that is used there. Of classes that are not
    /// known here it has.
    #[must_use]
    pub fn has_left(&self, at: Uuid, amounts: &BTreeMap<String, u64>) -> bool {
        let Some(known) = self.providers.get(&at) else {
            return true;
        };
        let inventories = match self.nodes.get(&at) {
            Some(node) => known.inventories(&node.row),
            None => known.inventories.clone().unwrap_or_default(),
        };
        amounts.iter().all(|(class, amount)| {
            let cell = inventories.get(class).map(|has| known.cell(class, has));
            let amount = i64::try_from(*amount).unwrap_or(i64::MAX);
            cell.is_none_or(|cell| i64::from(cell.free) >= amount)
        })
    }
}
