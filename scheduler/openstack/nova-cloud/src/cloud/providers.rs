//! What Placement says of providers.

use super::Cloud;
use crate::error::CloudError;
use crate::facts::{Inventory, ProviderFacts, ProviderLine};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Providers of which something is to be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StaleProviders {
    /// They have another generation than when their facts were read.
    pub changed: Vec<Uuid>,
    /// They were not read whole yet; what is believed of them does until then.
    pub unread: Vec<Uuid>,
}

impl Cloud {
    /// The aggregates that Nova has, as Placement knows them.
    #[must_use]
    pub fn aggregate_uuids(&self) -> Vec<Uuid> {
        let uuids = self.aggregate_list.iter();
        uuids
            .filter_map(|aggregate| aggregate.uuid.parse().ok())
            .collect()
    }

    /// Which providers are in each of Nova's aggregates (`GET /resource_providers?member_of=…`).
    /// Providers that were read by themselves know better.
    pub fn put_memberships(&mut self, members: &BTreeMap<Uuid, BTreeSet<Uuid>>) {
        let mut of: BTreeMap<Uuid, BTreeSet<Uuid>> = BTreeMap::new();
        for (aggregate, providers) in members {
            for provider in providers {
                of.entry(*provider).or_default().insert(*aggregate);
            }
        }
        let open = self
            .providers
            .iter()
            .filter(|(_, provider)| provider.aggregates.is_none() || provider.partial);
        for uuid in open.map(|(uuid, _)| *uuid).collect::<Vec<_>>() {
            let mut changed = false;
            if let Some(provider) = self.providers.get_mut(&uuid) {
                changed = provider.take_aggregates(of.remove(&uuid).unwrap_or_default());
                provider.partial = true;
            }
            self.note_traits(uuid, changed);
            self.follow_provider(uuid);
        }
    }

    /// What Placement says of a provider; unknown parts leave what is known.
    pub fn put_provider(&mut self, provider: ProviderFacts) {
        let uuid = provider.uuid;
        let changed = self.providers.entry(uuid).or_default().take(provider);
        self.note_traits(uuid, changed);
        if !self.nodes.contains_key(&uuid) {
            self.others.insert(uuid);
        }
        self.follow_provider(uuid);
    }

    /// Whether what a provider has was never read: the compute node's row is believed, which knows
    /// nothing of what is reserved and learns of new allocation ratios late.
    #[must_use]
    pub fn only_believed(&self, provider: Uuid) -> bool {
        let known = self.providers.get(&provider);
        known.is_none_or(|known| known.inventories.is_none())
    }

    /// A provider is gone: a compute node without one gets nothing.
    pub fn remove_provider(&mut self, uuid: Uuid) {
        self.others.remove(&uuid);
        let Some(provider) = self.providers.get_mut(&uuid) else {
            return;
        };
        if self.nodes.contains_key(&uuid) {
            provider.generation = None;
            provider.readings += 1;
            provider.inventories = Some(BTreeMap::new());
            provider.used = Some(BTreeMap::new());
            self.follow_provider(uuid);
        } else {
            self.providers.remove(&uuid);
        }
    }

    /// All providers there are (`GET /resource_providers`). Those that are not named are removed.
    /// Answers with those of which something is to be read.
    pub fn provider_list(&mut self, lines: &[ProviderLine]) -> StaleProviders {
        let named: BTreeSet<Uuid> = lines.iter().map(|line| line.uuid).collect();
        let known = self.providers.keys().copied();
        let gone: Vec<Uuid> = known.filter(|uuid| !named.contains(uuid)).collect();
        gone.into_iter().for_each(|uuid| self.remove_provider(uuid));
        let mut to_read = StaleProviders::default();
        for line in lines {
            let provider = self.providers.entry(line.uuid).or_default();
            provider.name.clone_from(&line.name);
            provider.parent = line.parent;
            provider.root = Some(line.root);
            provider.listed = Some(line.generation);
            match provider.generation {
                Some(generation) if generation != line.generation => {
                    provider.consumers_known = false;
                    to_read.changed.push(line.uuid)
                }
                Some(_) if !provider.partial => {}
                _ => to_read.unread.push(line.uuid),
            }
            if !self.nodes.contains_key(&line.uuid) {
                self.others.insert(line.uuid);
            }
        }
        to_read
    }

    /// The generation of a provider when its facts were read.
    #[must_use]
    pub fn provider_generation(&self, uuid: Uuid) -> Option<i64> {
        self.providers.get(&uuid)?.generation
    }

    /// How often the generation of a provider was read: what [`Cloud::own_write`] has to know from
    /// before the write.
    #[must_use]
    pub fn provider_readings(&self, uuid: Uuid) -> u64 {
        self.providers.get(&uuid).map_or(0, |known| known.readings)
    }

    /// We wrote allocations of a provider ourselves, which raises its generation by one: what was
    /// read of it is still true. If its generation was read since the write began (`readings` is
    /// from before it), the write may be in that already and is not counted again: counted twice it
    /// would hide the next change of another process.
    pub fn own_write(&mut self, uuid: Uuid, readings: u64) {
        if let Some(provider) = self.providers.get_mut(&uuid)
            && provider.readings == readings
            && let Some(generation) = &mut provider.generation
        {
            *generation = generation.saturating_add(1);
        }
    }

    /// How often a provider was found with other traits or without an aggregate that it was in. A
    /// decision remembers it, for [`Cloud::traits_changed_since`].
    #[must_use]
    pub fn trait_changes(&self) -> u64 {
        self.trait_changes
    }

    /// Whether a provider was found with other traits, or without an aggregate, since a decision
    /// was made. Placement does not compare them with a claim, and the provider's known generation
    /// is that of its last reading, which may be later than the decision.
    #[must_use]
    pub fn traits_changed_since(&self, provider: Uuid, trait_changes: u64) -> bool {
        let known = self.providers.get(&provider);
        known.is_some_and(|known| known.traits_changed > trait_changes)
    }

    fn note_traits(&mut self, uuid: Uuid, changed: bool) {
        if !changed {
            return;
        }
        self.trait_changes += 1;
        if let Some(provider) = self.providers.get_mut(&uuid) {
            provider.traits_changed = self.trait_changes;
        }
    }

    /// Takes `provider_summaries` of an answer to `GET /allocation_candidates` in: capacity and
    /// usage by class, traits, parents. How many providers were in it.
    ///
    /// # Errors
    /// [`CloudError::BadAnswer`]; what stood before the bad part is taken in.
    pub fn put_summaries(&mut self, answer: &Value) -> Result<usize, CloudError> {
        let summaries = answer.get("provider_summaries").and_then(Value::as_object);
        let summaries = summaries.ok_or_else(|| bad("provider_summaries", "is not there"))?;
        for (name, summary) in summaries {
            let place = || format!("provider_summaries.{name}");
            let uuid: Uuid = name.parse().map_err(|_| bad(&place(), "is not a UUID"))?;
            let resources = summary.get("resources").and_then(Value::as_object);
            let resources = resources.ok_or_else(|| bad(&place(), "has no resources"))?;
            let mut told = BTreeMap::new();
            for (class, amounts) in resources {
                let number = |field: &str| {
                    let number = amounts.get(field).and_then(Value::as_i64);
                    number.ok_or_else(|| {
                        bad(
                            &format!("{}.resources.{class}", place()),
                            "is no pair of numbers",
                        )
                    })
                };
                told.insert(class.clone(), (number("capacity")?, number("used")?));
            }
            let traits = summary.get("traits").and_then(Value::as_array);
            let traits = traits.map(|all| {
                all.iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect()
            });
            let id = |field: &str| {
                summary
                    .get(field)
                    .and_then(Value::as_str)?
                    .parse::<Uuid>()
                    .ok()
            };
            let (parent, root) = (id("parent_provider_uuid"), id("root_provider_uuid"));
            self.put_summary(uuid, &told, traits, (parent, root));
        }
        Ok(summaries.len())
    }

    fn put_summary(
        &mut self,
        uuid: Uuid,
        told: &BTreeMap<String, (i64, i64)>,
        traits: Option<BTreeSet<String>>,
        (parent, root): (Option<Uuid>, Option<Uuid>),
    ) {
        // A compute gives no server more than the whole machine (`nova/virt/libvirt/driver.py`,
        // `update_provider_tree`).
        let row = self.nodes.get(&uuid).map(|node| &node.row);
        let machine = |class: &str| match (row, class) {
            (Some(row), "VCPU") => Some(row.vcpus),
            (Some(row), "MEMORY_MB") => Some(row.memory_mb),
            (Some(row), "DISK_GB") => Some(row.local_gb),
            _ => None,
        };
        let provider = self.providers.entry(uuid).or_default();
        let before = provider.inventories.take().unwrap_or_default();
        let inventory = |(class, (capacity, _)): (&String, &(i64, i64))| {
            let known = before.get(class).copied();
            let same = known.filter(|known| super::provider::capacity(known) == *capacity);
            let whole = Inventory {
                total: *capacity,
                reserved: 0,
                min_unit: known.map_or(1, |known| known.min_unit),
                // A summary does not say what one consumer may take: a claim finds out.
                max_unit: known
                    .map(|known| known.max_unit)
                    .or_else(|| machine(class).map(|most| most.min(*capacity)))
                    .unwrap_or(*capacity),
                step_size: known.map_or(1, |known| known.step_size),
                allocation_ratio: 1.0,
            };
            (class.clone(), same.unwrap_or(whole))
        };
        let inventories: BTreeMap<String, Inventory> = told.iter().map(inventory).collect();
        if inventories != before {
            // It is to be read whole some day. Until then it is as it was when providers were
            // listed, or newer: then a look at its generation shows that.
            provider.generation = provider.listed;
            provider.readings += 1;
            provider.partial = true;
        }
        provider.inventories = Some(inventories);
        provider.used = Some(
            told.iter()
                .map(|(class, (_, used))| (class.clone(), *used))
                .collect(),
        );
        let changed = traits.is_some() && provider.traits != traits;
        if changed {
            provider.traits = traits;
        }
        if root.is_some() {
            (provider.parent, provider.root) = (parent, root);
        }
        self.note_traits(uuid, changed);
        if !self.nodes.contains_key(&uuid) {
            self.others.insert(uuid);
        }
        self.follow_provider(uuid);
    }
}

pub(crate) fn bad(place: &str, problem: &str) -> CloudError {
    CloudError::BadAnswer {
        // Names in it are whatever was answered.
        place: place.chars().take(200).collect(),
        problem: problem.to_owned(),
    }
}
