//! Hosts, as their agents report them and operators set them.

use crate::{Inventory, ModelError, ResourceClass, Timestamp, Trait, names};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of classes in one host's inventory. A real host has far fewer; the limit stops
/// faulty input.
pub const MAX_CLASSES: usize = 256;
/// Most traits of one host.
pub const MAX_TRAITS: usize = 4096;

/// One compute host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its name, unique in the region: the agent's identity.
    pub name: String,
    /// What it has.
    pub inventory: BTreeMap<ResourceClass, Inventory>,
    /// What it is.
    #[serde(default)]
    pub traits: BTreeSet<Trait>,
    /// The operator's reason for disabling it; `None` if it is enabled.
    #[serde(default)]
    pub disabled_reason: Option<String>,
    /// The owner that has taken it back; it is disabled then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim: Option<Box<crate::Reclaim>>,
    /// The current run of the host's agent: a new session means that the agent restarted.
    #[serde(default)]
    pub agent_session: Option<uuid::Uuid>,
    /// When an operator removed it for good. The record stays, so that the agent is refused if it
    /// comes back. Such a host is disabled, for schedulers of versions that do not know this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<Timestamp>,
    /// When the last message of the agent arrived.
    #[serde(default)]
    pub last_seen: Option<Timestamp>,
    /// The name of the storage that it shares with other hosts: any of them can resume what one of
    /// them keeps there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// When it was first registered. With everything else equal, hosts registered earlier come
    /// first.
    pub created_at: Timestamp,
}

/// Whether a host may get new instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostHealth {
    /// Enabled, and its agent was heard within the service down time.
    Up,
    /// Its agent has not been heard for longer than the service down time.
    Down,
    /// Disabled by an operator, whatever its agent says.
    Disabled,
}

impl HostHealth {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Disabled => "disabled",
        }
    }
}

impl Host {
    /// Checks everything that an agent may have got wrong.
    ///
    /// # Errors
    /// The first thing that is out of range, named.
    pub fn check(&self) -> Result<(), ModelError> {
        names::check_host_name(&self.name)?;
        let too_many = |what: &str, n: usize, limit: usize| ModelError::Range {
            what: format!("host {}: {what}", self.name),
            value: n.to_string(),
            allowed: format!("at most {limit}"),
        };
        if self.inventory.len() > MAX_CLASSES {
            return Err(too_many(
                "resource classes",
                self.inventory.len(),
                MAX_CLASSES,
            ));
        }
        if self.traits.len() > MAX_TRAITS {
            return Err(too_many("traits", self.traits.len(), MAX_TRAITS));
        }
        if let Some(storage) = &self.storage {
            names::check_name("storage", storage)?;
        }
        self.inventory
            .iter()
            .try_for_each(|(class, inventory)| inventory.check(class))
    }

    /// What instances may use of a class in all.
    #[must_use]
    pub fn capacity(&self, class: &ResourceClass) -> u64 {
        self.inventory.get(class).map_or(0, Inventory::capacity)
    }

    /// Up, down or disabled, given the service down time in milliseconds (Nova:
    /// `service_down_time`; exactly that old is up).
    #[must_use]
    pub fn health(&self, now: Timestamp, down_after_millis: i64) -> HostHealth {
        if self.disabled_reason.is_some() {
            return HostHealth::Disabled;
        }
        match self.last_seen {
            Some(seen) if now.millis_since(seen) <= down_after_millis => HostHealth::Up,
            _ => HostHealth::Down,
        }
    }
}
