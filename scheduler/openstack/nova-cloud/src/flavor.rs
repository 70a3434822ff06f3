//! What a flavor means: what its servers take, and what happens to them if they are preemptible.

use ebbtide_model::{FlavorProperties, InterruptionBehaviour, Money, Resources, Seconds};
use ebbtide_nova::model::Flavor;
use std::collections::BTreeMap;

/// What extra specs say about servers that may be driven out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PreemptibleTerms {
    pub(crate) interruption: InterruptionBehaviour,
    pub(crate) grace: Option<Seconds>,
    pub(crate) protected: Option<Seconds>,
    pub(crate) max_lifetime: Option<Seconds>,
    pub(crate) price_per_hour: Money,
    pub(crate) max_price: Option<Money>,
    pub(crate) priority: u8,
}

/// What a preemptible flavor says beside its amounts; `None` for a normal one. Nova has taken the
/// flavor as it is, so it cannot be refused here: where one of our keys is wrong, all but the
/// marking itself counts as not said.
#[must_use]
pub fn preemptible_properties(flavor: &Flavor) -> Option<FlavorProperties> {
    if !flavor.is_preemptible() {
        return None;
    }
    let specs = flavor.extra_specs.iter().flat_map(|specs| specs.iter());
    let specs = specs.map(|(key, value)| (key.as_str(), value.as_str()));
    let unsaid = || FlavorProperties::of(Resources::new());
    let mut properties = unsaid();
    if properties.read_terms(specs).is_err() {
        properties = unsaid();
    }
    Some(properties)
}

/// The terms of a preemptible flavor; `None` for a normal one.
pub(crate) fn terms(flavor: &Flavor) -> Option<PreemptibleTerms> {
    let properties = preemptible_properties(flavor)?;
    Some(PreemptibleTerms {
        interruption: properties.interruption,
        grace: properties.grace,
        protected: properties.protected,
        max_lifetime: properties.max_lifetime,
        price_per_hour: properties.price_per_hour,
        max_price: properties.max_price,
        priority: properties.priority,
    })
}

/// What a server of a flavor most probably has in Placement (`ResourceRequest.from_request_spec`,
/// without image and ports). Believed until Placement is read.
pub(crate) fn believed_resources(
    flavor: &Flavor,
    boots_from_volume: bool,
) -> BTreeMap<String, u64> {
    let mut resources = BTreeMap::new();
    let amount = |n: i64| u64::try_from(n).unwrap_or(0);
    let specs = flavor.extra_specs.as_ref();
    let dedicated = specs
        .and_then(|specs| specs.get("hw:cpu_policy"))
        .is_some_and(|policy| policy == "dedicated");
    let cpu = if dedicated { "PCPU" } else { "VCPU" };
    resources.insert(cpu.to_owned(), amount(flavor.vcpus));
    resources.insert("MEMORY_MB".to_owned(), amount(flavor.memory_mb));
    let root = if boots_from_volume { 0 } else { flavor.root_gb };
    let swap = amount(flavor.swap).div_ceil(1024);
    let disk = amount(root.saturating_add(flavor.ephemeral_gb)).saturating_add(swap);
    resources.insert("DISK_GB".to_owned(), disk);
    for (key, value) in specs.iter().flat_map(|specs| specs.iter()) {
        if let Some(class) = key.strip_prefix("resources:")
            && let Ok(amount) = value.trim().parse::<u64>()
        {
            resources.insert(class.to_owned(), amount);
        }
    }
    resources.retain(|_, amount| *amount > 0);
    resources
}

/// The least that a server of a flavor holds in Placement, over all of its providers: what the
/// flavor itself and its numbered groups (`resources1:VGPU`, `resources_GPU:VGPU`) ask for.
#[must_use]
pub fn least_resources(flavor: &Flavor, boots_from_volume: bool) -> BTreeMap<String, u64> {
    let mut resources = believed_resources(flavor, boots_from_volume);
    let specs = flavor.extra_specs.iter().flat_map(|specs| specs.iter());
    for (key, value) in specs {
        let grouped = key
            .strip_prefix("resources")
            .and_then(|k| k.split_once(':'));
        let Some((_, class)) = grouped.filter(|(suffix, _)| !suffix.is_empty()) else {
            continue;
        };
        if let Ok(amount) = value.trim().parse::<u64>()
            && amount > 0
        {
            let sum = resources.entry(class.to_owned()).or_default();
            *sum = sum.saturating_add(amount);
        }
    }
    resources
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_nova::model::OrderedMap;

    fn flavor(specs: &[(&str, &str)]) -> Flavor {
        Flavor {
            vcpus: 2,
            memory_mb: 2000,
            root_gb: 20,
            ephemeral_gb: 1,
            swap: 1500,
            extra_specs: Some(
                specs
                    .iter()
                    .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                    .collect::<OrderedMap<String>>(),
            ),
            ..Flavor::default()
        }
    }

    #[test]
    fn a_flavor_takes_what_nova_would_ask_for() {
        let told = |f: &Flavor, volume| {
            let resources = believed_resources(f, volume);
            resources
                .iter()
                .map(|(c, n)| format!("{c}={n}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            told(&flavor(&[]), false),
            "DISK_GB=23 MEMORY_MB=2000 VCPU=2"
        );
        assert_eq!(told(&flavor(&[]), true), "DISK_GB=3 MEMORY_MB=2000 VCPU=2");
        let odd = flavor(&[
            ("hw:cpu_policy", "dedicated"),
            ("resources:DISK_GB", "0"),
            ("resources:CUSTOM_X", "4"),
        ]);
        assert_eq!(told(&odd, false), "CUSTOM_X=4 MEMORY_MB=2000 PCPU=2");
    }

    #[test]
    fn groups_of_a_flavor_count_beside_what_it_asks_for_itself() {
        let grouped = flavor(&[
            ("resources:VCPU", "0"),
            ("resources1:VCPU", "1"),
            ("resources_GPU:VGPU", "1"),
            ("resources_GPU2:VGPU", "2"),
            ("resources3:CUSTOM_X", "0"),
        ]);
        let least = least_resources(&grouped, true);
        let amounts = [
            ("DISK_GB", 3),
            ("MEMORY_MB", 2000),
            ("VCPU", 1),
            ("VGPU", 3),
        ];
        let amounts = amounts.map(|(class, n)| (class.to_owned(), n));
        assert_eq!(least, BTreeMap::from(amounts));
        assert_eq!(believed_resources(&grouped, true).get("VGPU"), None);
    }

    #[test]
    fn a_marked_flavor_is_preemptible_even_if_another_key_is_wrong() {
        let good = terms(&flavor(&[
            ("ebbtide:preemptible", "True"),
            ("ebbtide:grace_seconds", "30"),
        ]))
        .unwrap();
        assert_eq!(good.grace, Some(Seconds(30)));
        let bad = terms(&flavor(&[
            ("ebbtide:preemptible", "true"),
            ("ebbtide:grace_seconds", "soon"),
        ]))
        .unwrap();
        assert_eq!(bad.grace, None);
        assert_eq!(terms(&flavor(&[("ebbtide:preemptible", "no")])), None);
        assert_eq!(terms(&Flavor::default()), None);
    }
}
