//! How many servers a cluster needs: by its long jobs, or as it is told.

use super::ClusterSnapshot;
use crate::record::JobClass;
use crate::settings::ElasticSettings;
use crate::slurm::{JobState, SlurmJob};
use std::collections::BTreeSet;

/// The load of a cluster, as [`ebbtide_elastic::ControllerEvent::Load`] counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// N_long: on-demand nodes that run long jobs, or that a waiting long job needs.
    pub long: u32,
    /// All on-demand nodes in service.
    pub on_demand: u32,
}

impl Load {
    /// The load of a cluster whose nodes with these names are servers of the pool.
    #[must_use]
    pub fn of(world: &ClusterSnapshot<'_>, names: &[String], settings: &ElasticSettings) -> Self {
        let stay = world
            .nodes
            .iter()
            .filter(|node| !names.contains(&node.name));
        let stay: BTreeSet<&str> = stay
            .filter(|node| node.in_service())
            .map(|node| node.name.as_str())
            .collect();
        let is_long = |job: &&SlurmJob| JobClass::of(job, settings) == JobClass::Long;
        let mut busy = BTreeSet::new();
        let mut waiting = 0u32;
        for job in world.jobs.iter().filter(is_long) {
            if job.runs() {
                busy.extend(job.nodes.iter().map(String::as_str));
            } else if job.state == JobState::Pending {
                let nodes = job.node_count.max(1).saturating_mul(job.count);
                waiting = waiting.saturating_add(nodes);
            }
        }
        // A waiting job takes nodes that short jobs use now, but no more than there are.
        let free = stay.iter().filter(|name| !busy.contains(*name)).count() as u32;
        Self {
            long: busy.len() as u32 + waiting.min(free),
            on_demand: stay.len() as u32,
        }
    }

    /// The load for which a controller with the threshold 1 keeps so many servers.
    #[must_use]
    pub fn servers(wanted: u32) -> Self {
        Self {
            long: wanted,
            on_demand: 0,
        }
    }
}
