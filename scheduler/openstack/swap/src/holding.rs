//! Conversions between a record's holdings and Placement's form.

use ebbtide_openstack::placement::{ConsumerAllocations, Generation};
use ebbtide_openstack::{NewClaim, OpenStackError, ReleasedConsumer, Resources};
use ebbtide_preemption::Holding;
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

/// Amounts of resource classes, by provider.
pub type Amounts = BTreeMap<Uuid, BTreeMap<String, u64>>;

/// Amounts by provider, from a candidate's JSON. Ignores invalid amounts: Placement has checked its
/// offers.
#[must_use]
pub fn amounts(allocations: &Value) -> Amounts {
    let mut amounts = Amounts::new();
    for (provider, on_provider) in allocations.as_object().into_iter().flatten() {
        let Ok(provider) = Uuid::parse_str(provider) else {
            continue;
        };
        let resources = on_provider["resources"].as_object().into_iter().flatten();
        let resources: BTreeMap<String, u64> = resources
            .filter_map(|(class, amount)| Some((class.clone(), amount.as_u64()?)))
            .collect();
        amounts.insert(provider, resources);
    }
    amounts
}

/// Whether a consumer holds exactly this holding.
pub(crate) fn same(holds: &ConsumerAllocations, holding: &Holding) -> bool {
    let held: BTreeMap<Uuid, &BTreeMap<String, u64>> = holds
        .allocations
        .iter()
        .map(|(provider, of)| (*provider, &of.resources))
        .collect();
    let wanted = amounts(&holding.allocations);
    held.len() == wanted.len()
        && wanted
            .iter()
            .all(|(provider, amounts)| held.get(provider).is_some_and(|of| *of == amounts))
}

/// A claim in Placement's form.
pub(crate) fn claim(
    consumer: Uuid,
    holding: &Holding,
    generation: Option<Generation>,
) -> Result<NewClaim, OpenStackError> {
    Ok(NewClaim {
        consumer,
        resources: Resources::new(holding.allocations.clone(), holding.mappings.clone())?,
        project_id: holding.project_id.clone(),
        user_id: holding.user_id.clone(),
        generation,
    })
}

/// A consumer that is to hold nothing any more.
pub(crate) fn emptied(consumer: Uuid, owner: &Holding, generation: Generation) -> ReleasedConsumer {
    ReleasedConsumer {
        consumer,
        generation,
        project_id: owner.project_id.clone(),
        user_id: owner.user_id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_openstack::placement::ProviderAllocation;
    use serde_json::json;

    const HOST: &str = "00000000-0000-4000-8000-000000000001";

    fn holding(allocations: Value) -> Holding {
        Holding {
            allocations,
            mappings: None,
            project_id: "p".to_owned(),
            user_id: "u".to_owned(),
            generation: None,
        }
    }

    fn holds(resources: &[(&str, u64)]) -> ConsumerAllocations {
        let resources = resources.iter();
        let resources = resources.map(|(class, n)| ((*class).to_owned(), *n));
        let on_host = ProviderAllocation {
            resources: resources.collect(),
            generation: None,
        };
        ConsumerAllocations {
            allocations: BTreeMap::from([(HOST.parse().unwrap_or_default(), on_host)]),
            ..ConsumerAllocations::default()
        }
    }

    #[test]
    fn what_holds_another_amount_another_class_or_another_provider_is_not_the_same() {
        let wanted = holding(json!({HOST: {"resources": {"VCPU": 2, "DISK_GB": 10}}}));
        assert!(same(&holds(&[("VCPU", 2), ("DISK_GB", 10)]), &wanted));
        assert!(!same(&holds(&[("VCPU", 2)]), &wanted));
        assert!(!same(&holds(&[("VCPU", 2), ("DISK_GB", 11)]), &wanted));
        assert!(!same(
            &holds(&[("VCPU", 2), ("DISK_GB", 10), ("MEMORY_MB", 1)]),
            &wanted
        ));
        assert!(!same(&ConsumerAllocations::default(), &wanted));
        let other = "00000000-0000-4000-8000-000000000002";
        let two = json!({HOST: {"resources": {"VCPU": 2}}, other: {"resources": {"VCPU": 2}}});
        assert!(!same(&holds(&[("VCPU", 2)]), &holding(two)));
    }

    #[test]
    fn what_is_no_amount_is_left_out() {
        let read = amounts(&json!({HOST: {"resources": {"VCPU": 2, "X": "3"}}, "no": {}}));
        let host = HOST.parse().unwrap_or_default();
        let two = BTreeMap::from([("VCPU".to_owned(), 2)]);
        assert_eq!(read, Amounts::from([(host, two)]));
    }
}
