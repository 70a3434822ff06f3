//! What Placement has given, compared with what computes report.

use super::Cloud;

impl Cloud {
    /// Hosts of whose compute nodes Placement has given more CPUs, as far as is known here, than
    /// their computes count (`compute_nodes.vcpus_used`, pinned CPUs included).
    ///
    /// Placement raises no generation of a provider that a consumer gives up, so a release of which
    /// no message tells stays unknown: a compute that starts gives up what it had of servers that
    /// were evacuated from it, for example (`_destroy_evacuated_instances` in
    /// `nova/compute/manager.py`). The compute's own count falls then. It also is less for a moment
    /// after each claim, and always for flavors whose extra specs ask Placement for more CPUs than
    /// the flavor has.
    #[must_use]
    pub fn hosts_above_report(&self) -> Vec<String> {
        let above = self.nodes.iter().filter(|(uuid, node)| {
            let Some(known) = self.providers.get(uuid) else {
                return false;
            };
            let used = known.used.as_ref().unwrap_or(&known.consumed);
            let cpus = ["VCPU", "PCPU"].iter().filter_map(|class| used.get(*class));
            cpus.sum::<i64>() > node.row.vcpus_used
        });
        above.map(|(_, node)| node.row.host.clone()).collect()
    }
}
