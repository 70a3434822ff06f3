//! A row of `compute_nodes` (`nova/objects/compute_node.py`).

use ebbtide_nova::fault::Fault;
use ebbtide_nova::hosts::ComputeRow;
use std::sync::Arc;

/// A compute node.
#[derive(Debug, Clone)]
pub struct ComputeNode {
    /// Database id: what a row is known by. A UUID can come back under another id when a node is deleted and made again.
    pub id: i64,
    /// UUID, which is also its resource provider's; `None` only in rows that Nova cannot use.
    pub uuid: Option<String>,
    /// Service's host.
    pub host: Option<String>,
    /// Hypervisor's host name.
    pub nodename: Option<String>,
    /// Deleted; only changes report such rows.
    pub deleted: bool,
    /// Microseconds since 1970, UTC.
    pub updated_at: Option<i64>,
    /// The row as `ebbtide-nova` takes it, or what Nova raises for it: such a row fails every request of its cell.
    pub row: Result<Arc<ComputeRow>, Fault>,
}
