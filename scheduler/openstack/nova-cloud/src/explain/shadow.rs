//! What weighers in shadow would have chosen, from what a decision was made from.

use super::SchedulingRecord;
use ebbtide_nova::filters::Context;
use ebbtide_nova::model::Options;
use ebbtide_nova::schedule::sorted;
use ebbtide_nova::states::States;

/// The first host by the weighers that decided, and by those in shadow. Chance and claims come
/// after both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowRanking {
    /// By the weighers that decided; `None`: no host passed the filters.
    pub decided: Option<String>,
    /// By those in shadow, or what they raised.
    pub shadow: Result<Option<String>, String>,
}

impl SchedulingRecord {
    /// What the weighers in shadow would have chosen. `None`: nothing is in shadow; or the request
    /// was for several servers, and what one gets changes the hosts for the next; or the decision
    /// has narrowed what it asks for (NUMA cells, PCI devices).
    #[must_use]
    pub fn in_shadow(&self) -> Option<ShadowRanking> {
        let shadow = self.shadow.as_ref()?;
        let [record] = self.instances.as_slice() else {
            return None;
        };
        let mut spec = self.spec.clone();
        let devices = spec
            .pci_requests
            .as_ref()
            .is_some_and(|all| !all.is_empty());
        if devices || spec.numa_topology.is_some() {
            return None;
        }
        // The decision has written the host into the group.
        if let (Some(group), [_]) = (spec.instance_group.as_mut(), self.chosen.as_slice()) {
            group.hosts.pop();
        }
        let name = |at: usize| record.states.get(at).host.clone();
        let options = Options::clone(&self.options).with_plugins(shadow.as_ref().clone());
        let context = Context {
            options: &options,
            now: self.now,
        };
        let hosts = self.hosts.iter().collect();
        let mut states = record.states.clone();
        let sorted = sorted(&mut states, hosts, &spec, &context, 0);
        Some(ShadowRanking {
            decided: record.sort.best.first().map(|(at, _)| name(*at)),
            shadow: sorted
                .map(|sorted| sorted.hosts.first().map(|at| name(*at)))
                .map_err(|fault| fault.to_string()),
        })
    }
}
