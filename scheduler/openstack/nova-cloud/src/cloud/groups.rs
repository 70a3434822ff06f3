//! Server groups of victims, as far as disruption budgets need them.
//!
//! A cell's database does not say in which group a server is, and only budgets of groups ask. So
//! the caller reads the members of the groups that have a budget, before a plan is made.

use super::Cloud;
use ebbtide_model::GroupId;
use std::collections::{BTreeSet, HashMap};
use uuid::Uuid;

impl Cloud {
    /// The server group of a server, if it is known.
    #[must_use]
    pub fn group_of(&self, server: Uuid) -> Option<GroupId> {
        let row = || self.instances.get(&server)?.record.group.map(GroupId);
        self.group_members.get(&server).copied().or_else(row)
    }

    /// Whether these are the known members of groups.
    #[must_use]
    pub fn group_members_are(&self, members: &HashMap<Uuid, GroupId>) -> bool {
        self.group_members == *members
    }

    /// Sets the members of groups that have a budget, each server with its group.
    pub fn set_group_members(&mut self, members: HashMap<Uuid, GroupId>) {
        let before = std::mem::replace(&mut self.group_members, members);
        let all: BTreeSet<Uuid> = before
            .keys()
            .chain(self.group_members.keys())
            .copied()
            .collect();
        for server in all {
            if before.get(&server) != self.group_members.get(&server) {
                self.count_again(server);
            }
        }
    }
}
