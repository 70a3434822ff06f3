//! What a server group asks of the hosts on which a server has to leave.
//!
//! A hard policy is a limit. A soft one comes before the cost of victims, but not before their
//! number: no server ends for a preference.

use super::make::RequestPlanner;
use ebbtide_nova::model::HostState;
use std::collections::BTreeSet;

/// Most instances of a group on one host that are tried for soft anti-affinity before any number is
/// allowed.
const MOST_APART: u32 = 8;

/// How a plan keeps to its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupRule {
    /// As a hard policy demands; a soft one demands nothing.
    Demanded,
    /// All on one host.
    Together,
    /// All on one host that has at least so many members already.
    WithMembers(u32),
    /// No more than so many members on a host.
    AtMost(u32),
}

impl RequestPlanner<'_> {
    /// The group's policy; empty without a group.
    pub(super) fn policy(&self) -> &str {
        let group = self.spec.instance_group.as_ref();
        group.map_or("", |group| group.policy.as_str())
    }

    /// The members of the group, those that are expected included.
    pub(super) fn members(&self) -> BTreeSet<&str> {
        let group = self.spec.instance_group.iter();
        group
            .flat_map(|group| group.members.iter().map(String::as_str))
            .collect()
    }

    /// The rules that keep a soft policy, strictest first.
    pub(super) fn soft_rules(&self) -> Vec<GroupRule> {
        let options = self.cloud.options();
        let matters = |multiplier: Option<f64>| multiplier.is_some_and(|m| m > 0.0);
        let several = self.uuids.len() > 1;
        match self.policy() {
            "soft-affinity" if matters(options.soft_affinity_weight_multiplier) => {
                let most = self.most_here();
                let with = [most, 1]
                    .into_iter()
                    .filter(|least| (1..=most).contains(least));
                let together = several.then_some(GroupRule::Together);
                with.map(GroupRule::WithMembers).chain(together).collect()
            }
            "soft-anti-affinity" if matters(options.soft_anti_affinity_weight_multiplier) => {
                let instances = u32::try_from(self.uuids.len()).unwrap_or(u32::MAX);
                let most = self.most_here().saturating_add(instances);
                // As many as there could be at most is no rule any more.
                (1..most.min(MOST_APART + 1))
                    .map(GroupRule::AtMost)
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// The most members on any host that passes.
    fn most_here(&self) -> u32 {
        let members = self.members();
        let places = self.sorted.hosts.iter();
        let here = places.map(|place| here(&members, self.state(*place)));
        here.max().unwrap_or(0)
    }
}

/// How many members are on a host.
pub(super) fn here(members: &BTreeSet<&str>, state: &HostState) -> u32 {
    let on = &state.instances;
    let here = if members.len() < on.len() {
        members
            .iter()
            .filter(|uuid| on.contains_key(**uuid))
            .count()
    } else {
        on.keys()
            .filter(|uuid| members.contains(uuid.as_str()))
            .count()
    };
    u32::try_from(here).unwrap_or(u32::MAX)
}
