//! Server groups and where their members are.

use super::instance::InstanceRow;
use super::{HostIndex, HostTable, InstancePhase};
use ebbtide_model::{GroupId, ServerGroup};
use std::collections::BTreeMap;

/// Members of one group on one host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MemberCount {
    /// Members that are not leaving: they attract under affinity.
    pub(crate) staying: u32,
    /// Members that are leaving: they still occupy the host under anti-affinity.
    pub(crate) leaving: u32,
}

impl MemberCount {
    pub(crate) fn all(self) -> u32 {
        self.staying.saturating_add(self.leaving)
    }
}

/// A group as far as it is known: instances may name a group before the group itself is put.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct GroupEntry {
    /// What it asks for, once known.
    pub(crate) definition: Option<ServerGroup>,
    /// Hosts with members, and their counts. A host without members has no entry.
    pub(crate) members: BTreeMap<HostIndex, MemberCount>,
}

impl GroupEntry {
    /// Counts a member, or with `false` no longer.
    pub(super) fn add(&mut self, row: &InstanceRow, present: bool) {
        if row.phase == InstancePhase::Retained {
            return;
        }
        let count = self.members.entry(row.host).or_default();
        let kind = if row.phase == InstancePhase::Leaving {
            &mut count.leaving
        } else {
            &mut count.staying
        };
        *kind = if present {
            kind.saturating_add(1)
        } else {
            kind.saturating_sub(1)
        };
        if *count == MemberCount::default() {
            self.members.remove(&row.host);
        }
    }
}

impl HostTable {
    /// Inserts or replaces a server group. Its members are the instances that name it.
    pub fn put_group(&mut self, group: &ServerGroup) {
        self.groups.entry(group.id).or_default().definition = Some(group.clone());
    }

    /// Forgets a server group; instances that still name it keep doing so. True if it was known.
    pub fn remove_group(&mut self, id: GroupId) -> bool {
        let known = self
            .groups
            .get_mut(&id)
            .is_some_and(|g| g.definition.take().is_some());
        self.drop_group_if_empty(id);
        known
    }

    #[must_use]
    pub fn group(&self, id: GroupId) -> Option<&ServerGroup> {
        self.groups.get(&id).and_then(|g| g.definition.as_ref())
    }

    /// Where the members of a group are.
    pub(crate) fn members(&self, id: GroupId) -> Option<&BTreeMap<HostIndex, MemberCount>> {
        self.groups.get(&id).map(|g| &g.members)
    }

    /// Removes a group that has neither a definition nor members.
    pub(super) fn drop_group_if_empty(&mut self, id: GroupId) {
        if self
            .groups
            .get(&id)
            .is_some_and(|g| g.definition.is_none() && g.members.is_empty())
        {
            self.groups.remove(&id);
        }
    }
}
