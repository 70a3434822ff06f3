//! The slow reference for one instance without group: every host, every set of candidates. Shares
//! no code with the engine but the table's data.

use super::kit::now;
use crate::{Budgets, Instance, InstancePhase};
use ebbtide_model::{Host, Resources};
use std::collections::BTreeMap;

/// What an answer is compared by: tier (0 room, 1 waits, 2 evicts), cost in millionths, number of
/// victims.
pub(crate) type Price = (u8, u64, usize);

/// The amount that all instances use for which `counts` is true, plus what the others retain.
fn used(instances: &[Instance], class: &str, counts: impl Fn(&Instance) -> bool) -> i64 {
    let amounts = instances.iter().map(|i| {
        let takes = i.resources.amount(class);
        if i.phase != InstancePhase::Retained && counts(i) {
            takes
        } else {
            i.retained.amount(class).min(takes)
        }
    });
    i64::try_from(amounts.sum::<u64>()).unwrap()
}

fn staying(instance: &Instance) -> bool {
    instance.preemptible
        && !matches!(
            instance.phase,
            InstancePhase::Leaving | InstancePhase::Retained
        )
}

pub(crate) fn is_candidate(instance: &Instance) -> bool {
    staying(instance) && instance.protected_until.is_none_or(|until| until <= now())
}

/// Millionths of what a victim costs with the default cost module.
pub(crate) fn cost(instance: &Instance) -> u64 {
    let age = instance.launched_at.map_or(0, |l| now().millis_since(l));
    u64::try_from(age % 3_600_000).unwrap() * 1000
}

/// The cheapest answer on one host; `None` if it cannot take the request.
pub(crate) fn on_host(
    host: &Host,
    all: &[Instance],
    request: &Resources,
    budgets: &Budgets,
) -> Option<Price> {
    let here: Vec<Instance> = all
        .iter()
        .filter(|i| i.host == host.name)
        .cloned()
        .collect();
    let free = |class: &str, counts: &dyn Fn(&Instance) -> bool| {
        let capacity = host.capacity(&class.parse().unwrap());
        i64::try_from(capacity).unwrap() - used(&here, class, counts)
    };
    let fits = |counts: &dyn Fn(&Instance) -> bool| {
        request
            .iter()
            .all(|(class, wanted)| i64::try_from(wanted).unwrap() <= free(class.as_str(), counts))
    };
    if fits(&|_| true) {
        return Some((0, 0, 0));
    }
    if fits(&|i| !i.preemptible || staying(i)) {
        return Some((1, 0, 0));
    }
    let candidates: Vec<&Instance> = here.iter().filter(|i| is_candidate(i)).collect();
    (1_u32..1 << candidates.len())
        .filter_map(|mask| {
            let chosen = |at: usize| mask & (1 << at) != 0;
            let set: Vec<&Instance> = (0..candidates.len())
                .filter(|at| chosen(*at))
                .map(|at| candidates[at])
                .collect();
            let gone = |i: &Instance| set.iter().any(|v| v.id == i.id);
            let enough = fits(&|i| (!i.preemptible || staying(i)) && !gone(i));
            (enough && within(&set, budgets))
                .then(|| (2, set.iter().map(|i| cost(i)).sum(), set.len()))
        })
        .min()
}

/// True if a set keeps every budget.
pub(crate) fn within(set: &[&Instance], budgets: &Budgets) -> bool {
    let mut projects: BTreeMap<&str, u32> = BTreeMap::new();
    let mut groups: BTreeMap<_, u32> = BTreeMap::new();
    for victim in set {
        *projects.entry(&victim.project_id).or_default() += 1;
        if let Some(group) = victim.group_id {
            *groups.entry(group).or_default() += 1;
        }
    }
    projects
        .iter()
        .all(|(p, n)| budgets.project(p).is_none_or(|limit| *n <= limit))
        && groups
            .iter()
            .all(|(g, n)| budgets.group(*g).is_none_or(|limit| *n <= limit))
}
