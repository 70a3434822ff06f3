//! Servers that were evacuated and kept, as Nova's rows show them.

use super::Cloud;
use ebbtide_nova::model::Flavor;
use uuid::Uuid;

/// What Nova shows of a server that was evacuated and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetainedServerState {
    /// It is stopped, or shelved, and Nova is not working on it.
    Saved,
    /// Nova is working on it.
    Busy,
    Runs,
    /// Any other state: it cannot be resumed.
    Other,
}

/// A server that was evacuated and kept.
#[derive(Debug, Clone)]
pub struct RetainedServerView<'c> {
    /// What Nova shows.
    pub state: RetainedServerState,
    /// The host that keeps it; `None`: none does.
    pub host: Option<&'c str>,
    /// Its owner or an administrator has locked it.
    pub locked: bool,
    pub flavor: &'c Flavor,
}

impl Cloud {
    /// A server that was evacuated and kept; `None`: it does not exist any more.
    #[must_use]
    pub fn retained_server(&self, uuid: Uuid) -> Option<RetainedServerView<'_>> {
        let record = &self.instances.get(&uuid)?.record;
        let state = match (record.vm_state.as_deref(), record.task_state.as_deref()) {
            (_, Some(_)) => RetainedServerState::Busy,
            (Some("stopped" | "shelved" | "shelved_offloaded"), None) => RetainedServerState::Saved,
            (Some("active"), None) => RetainedServerState::Runs,
            _ => RetainedServerState::Other,
        };
        Some(RetainedServerView {
            state,
            host: record.host.as_deref(),
            locked: record.locked,
            flavor: &record.flavor,
        })
    }
}
