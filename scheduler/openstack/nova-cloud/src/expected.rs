//! Members of server groups that have a host and are not there yet: newcomers of preemptions under
//! way, and instances that were just placed.
//!
//! Nova's databases show a member's host only once its compute has begun to build it. With a
//! preemption that takes as long as the victims' grace period, and a group's filters and weighers
//! would send the next member elsewhere meanwhile.

use crate::cloud::Cloud;
use ebbtide_nova::model::{InstanceFacts, RequestSpec};
use ebbtide_nova::schedule::ScheduleCall;
use ebbtide_nova::states::HostStateList;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use uuid::Uuid;

/// Instances and the hosts that they will be on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpectedInstances(Vec<(String, String)>);

impl FromIterator<(Uuid, String)> for ExpectedInstances {
    fn from_iter<T: IntoIterator<Item = (Uuid, String)>>(all: T) -> Self {
        let all = all.into_iter();
        Self(all.map(|(uuid, host)| (uuid.to_string(), host)).collect())
    }
}

impl Cloud {
    /// Adds hosts of members to a request's group that the conductor did not know of when it sent
    /// the request: of members that have come to a host meanwhile, by the rows known here, and of
    /// members that are expected.
    pub(crate) fn complete_group(
        &self,
        spec: &mut RequestSpec,
        call: &ScheduleCall,
        expected: &ExpectedInstances,
    ) {
        let Some(group) = &mut spec.instance_group else {
            return;
        };
        let own = call.instance_uuids.as_deref().unwrap_or_default();
        let others = group.members.iter().filter(|uuid| !own.contains(uuid));
        let there = others.filter_map(|uuid| {
            let uuid = uuid.parse::<Uuid>().ok()?;
            self.instances.get(&uuid)?.record.host.clone()
        });
        let there: Vec<String> = there.collect();
        let coming = expected.0.iter().map(|(_, host)| host.clone());
        for host in there.into_iter().chain(coming) {
            if !group.hosts.contains(&host) {
                group.hosts.push(host);
            }
        }
    }
}

impl ExpectedInstances {
    /// These and more.
    #[must_use]
    pub fn and(mut self, more: impl Iterator<Item = (Uuid, String)>) -> Self {
        self.0
            .extend(more.map(|(uuid, host)| (uuid.to_string(), host)));
        self
    }

    /// Those in the server group of a request, but not the request's own instances.
    pub(crate) fn members(&self, spec: &RequestSpec, call: &ScheduleCall) -> Self {
        let Some(group) = &spec.instance_group else {
            return Self::default();
        };
        if self.0.is_empty() {
            return Self::default();
        }
        let own: BTreeSet<&String> = call.instance_uuids.iter().flatten().collect();
        let group: BTreeSet<&String> = group.members.iter().collect();
        let is_member = |uuid: &String| group.contains(uuid) && !own.contains(uuid);
        let members = self.0.iter().filter(|(uuid, _)| is_member(uuid));
        Self(members.cloned().collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// They are among the instances of these hosts, as if they were there.
    pub(crate) fn stand(
        &self,
        places: impl Iterator<Item = usize>,
        states: &mut impl HostStateList,
    ) {
        let mut on: HashMap<&str, Vec<&String>> = HashMap::new();
        for (uuid, host) in &self.0 {
            on.entry(host).or_default().push(uuid);
        }
        for place in places {
            let Some(uuids) = on.get(states.get(place).host.as_str()) else {
                continue;
            };
            let instances = Arc::make_mut(&mut states.edit(place).instances);
            for uuid in uuids {
                let entry = instances.entry((*uuid).clone());
                entry.or_insert_with(InstanceFacts::default);
            }
        }
    }
}
