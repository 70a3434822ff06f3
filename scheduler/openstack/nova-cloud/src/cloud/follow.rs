//! Keeps the columns and the victims' table consistent with what is known of a provider.

use super::Cloud;
use crate::facts::Allocations;
use crate::flavor::PreemptibleTerms;
use ebbtide_engine::{Instance as Row, InstancePhase};
use ebbtide_model::resource::MAX_AMOUNT;
use ebbtide_model::{
    Host, InterruptionBehaviour, ModelError, ResourceClass, Resources, Seconds, Timestamp,
};
use std::collections::BTreeMap;
use uuid::Uuid;

/// An age in milliseconds that no instance reaches: instances that must not be evicted now,
/// whatever their age, are protected until then.
const NEVER: i64 = i64::MAX;

/// What a victim keeps of its host after its eviction: the disk of a stopped one. Shelving, which
/// is how Nova hibernates, removes the disk from the host, too.
pub(crate) fn kept(
    terms: &PreemptibleTerms,
    stop_keeps_disk: bool,
    resources: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    let keeps = stop_keeps_disk && terms.interruption == InterruptionBehaviour::Stop;
    let disk = resources.get_key_value("DISK_GB").filter(|_| keeps);
    disk.map(|(class, amount)| (class.clone(), *amount))
        .into_iter()
        .collect()
}

/// Amounts of a request in the engine's form.
///
/// # Errors
/// A class that the engine does not know: without it the request would look smaller than it is.
pub(crate) fn requested(amounts: &BTreeMap<String, u64>) -> Result<Resources, ModelError> {
    let mut resources = Resources::new();
    for (class, amount) in amounts {
        resources.set(class.parse()?, (*amount).min(MAX_AMOUNT))?;
    }
    Ok(resources)
}

/// Amounts of an instance in the engine's form. Omits a class that Placement could not have.
pub(crate) fn engine_resources(amounts: &BTreeMap<String, u64>) -> Resources {
    let mut resources = Resources::new();
    for (class, amount) in amounts {
        if let Ok(class) = class.parse::<ResourceClass>() {
            // In range by the cut.
            let _known = resources.set(class, (*amount).min(MAX_AMOUNT));
        }
    }
    resources
}

pub(super) fn millis(micros: i64) -> Timestamp {
    Timestamp::from_millis(micros.div_euclid(1000))
}

impl Cloud {
    /// What a victim continues to hold of all providers: the disk of a stopped one, and what it has
    /// below its host (devices, accelerators, bandwidth) and of sharing providers, which Nova and
    /// Cyborg keep for a server that is only stopped.
    pub(crate) fn kept_allocations(
        &self,
        terms: &PreemptibleTerms,
        allocations: &Allocations,
    ) -> Allocations {
        if terms.interruption != InterruptionBehaviour::Stop {
            return Allocations::new();
        }
        let keeps = allocations.iter().map(|(provider, amounts)| {
            let keeps = match self.nodes.contains_key(provider) {
                true => kept(terms, self.settings.stop_keeps_disk, amounts),
                false => amounts.clone(),
            };
            (*provider, keeps)
        });
        keeps.filter(|(_, keeps)| !keeps.is_empty()).collect()
    }

    /// Updates everything of a provider.
    pub(super) fn follow_provider(&mut self, uuid: Uuid) {
        let Some(place) = self.nodes.get(&uuid).and_then(|node| node.place) else {
            return;
        };
        if let Some(provider) = self.providers.get(&uuid) {
            self.columns
                .set_traits(place, provider.traits.as_ref().map(|traits| traits.iter()));
            self.columns
                .set_aggregates(place, provider.aggregates.as_ref().map(|all| all.iter()));
            self.columns.aggregates_partial.put(place, provider.partial);
        }
        self.follow_amounts(uuid);
    }

    /// Updates inventories and usage of a provider.
    pub(super) fn follow_amounts(&mut self, uuid: Uuid) {
        let (Some(node), Some(provider)) = (self.nodes.get(&uuid), self.providers.get(&uuid))
        else {
            return;
        };
        let Some(place) = node.place else {
            return;
        };
        let inventories = provider.inventories(&node.row);
        let cells = inventories
            .iter()
            .map(|(class, inventory)| (class.as_str(), provider.cell(class, inventory)));
        self.columns.set_amounts(place, cells);
        let stock = |(class, inventory): (&String, &crate::facts::Inventory)| {
            let capacity = super::capacity(inventory).max(0).unsigned_abs();
            let total = capacity.min(MAX_AMOUNT);
            let reserved = provider.normal_use(class).max(0).unsigned_abs().min(total);
            let inventory = ebbtide_model::Inventory {
                total,
                reserved,
                allocation_ratio: 1.0,
            };
            Some((class.parse().ok()?, inventory))
        };
        self.victims.put_host(&Host {
            name: self.names[place].clone(),
            inventory: inventories.iter().filter_map(stock).collect(),
            traits: Default::default(),
            disabled_reason: None,
            reclaim: None,
            agent_session: None,
            removed_at: None,
            last_seen: None,
            storage: None,
            // Ties are broken in the order of places, as in Nova's decisions.
            created_at: Timestamp::from_millis(place as i64),
        });
        if self.numbers[place].is_none() {
            self.numbers[place] = self.victims.host_number(&self.names[place]);
        }
    }

    /// Adds an instance to the victims' table. False if it cannot be there.
    pub(super) fn put_victim(
        &mut self,
        uuid: Uuid,
        provider: Uuid,
        resources: &BTreeMap<String, u64>,
    ) -> bool {
        let (Some(instance), Some(node)) = (self.instances.get(&uuid), self.nodes.get(&provider))
        else {
            return false;
        };
        let (Some(terms), Some(place)) = (&instance.terms, node.place) else {
            return false;
        };
        let record = &instance.record;
        let protected = terms.protected.unwrap_or(self.settings.protected);
        let protected_until = if !instance.is_free_to_go() {
            Some(Timestamp::from_millis(NEVER))
        } else if protected == Seconds(0) {
            None
        } else {
            // An instance that has not started yet is protected until it has.
            let until = record.launched_at.map(|at| millis(at).plus(protected));
            Some(until.unwrap_or_else(|| Timestamp::from_millis(NEVER)))
        };
        let row = Row {
            id: uuid.into(),
            name: record.name.clone(),
            project_id: record.project_id.clone(),
            host: self.names[place].clone(),
            resources: engine_resources(resources),
            retained: engine_resources(&kept(terms, self.settings.stop_keeps_disk, resources)),
            preemptible: true,
            group_id: self.group_of(uuid),
            launched_at: record.launched_at.map(millis),
            protected_until,
            price_per_hour: terms.price_per_hour,
            max_price: self.bid_of(uuid, terms),
            // OpenStack mode has no lifetime models, so the flavor is not used.
            flavor: String::new(),
            ends_at: self.end_of_life(uuid),
            priority: terms.priority,
            phase: InstancePhase::Running,
        };
        self.touch_devices(provider);
        self.victims.put_instance(&row).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_an_unknown_class_is_refused_and_an_instance_with_one_is_not() {
        let amounts = BTreeMap::from([("VCPU".to_owned(), 2), ("FUTURE_CLASS".to_owned(), 1)]);
        assert_eq!(engine_resources(&amounts).to_string(), "VCPU=2");
        let error = requested(&amounts).unwrap_err();
        assert!(error.to_string().contains("FUTURE_CLASS"), "{error}");
        let huge = BTreeMap::from([("CUSTOM_X".to_owned(), u64::MAX)]);
        assert_eq!(requested(&huge).unwrap().amount("CUSTOM_X"), MAX_AMOUNT);
    }
}
