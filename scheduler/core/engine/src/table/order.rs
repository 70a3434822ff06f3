//! The hosts of a set in the order of their registration.

use super::{HostIndex, HostTable};
use ebbtide_model::host_set::HostSet;

impl HostTable {
    /// The hosts of a set, in the order of their registration.
    pub(crate) fn in_order(&self, set: &HostSet) -> Vec<HostIndex> {
        let order = self.order.iter().copied();
        order.filter(|host| set.has(host.at())).collect()
    }

    /// The first `many` hosts of a set, in the order of their registration.
    pub(crate) fn first_of(&self, set: &HostSet, many: usize) -> Vec<HostIndex> {
        let count = set.count();
        if many == 0 || count == 0 {
            return Vec::new();
        }
        // Walking the order meets one in `all / count`; walking the set means to sort it.
        if count > self.len() / 16 {
            let order = self.order.iter().copied();
            return order.filter(|host| set.has(host.at())).take(many).collect();
        }
        let mut hosts: Vec<HostIndex> = set.iter().map(HostIndex::new).collect();
        let key = |host: &HostIndex| self.rank(*host);
        if many < hosts.len() {
            hosts.select_nth_unstable_by_key(many - 1, key);
            hosts.truncate(many);
        }
        hosts.sort_unstable_by_key(key);
        hosts
    }
}
