//! The table `driver.simulated` of the configuration.

use super::faults::FaultyAction;
use crate::driver::HostFacts;
use crate::driver::storage::StorageSettings;
use crate::error::AgentError;
use ebbtide_model::settings::{Setting, Shape, Type, check_ranges};
use ebbtide_model::{Inventory, ResourceClass, Trait, toml_text};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Longest time that an action may be configured to take: an hour is beyond every time limit of the
/// agent.
const MAX_SECONDS: f64 = 3_600.0;

/// `sun_path` of Linux has 108 bytes with its end; a socket is this directory, `/`, a UUID and
/// `.metadata`.
const MAX_METADATA_DIR: usize = 108 - 1 - 1 - 36 - 9;

ebbtide_model::settings! {
    /// How large the simulated host is, and how long its hypervisor takes. All times are in
    /// seconds.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct SimulatedSettings: Default {
        /// What the host has of each resource class: a plain total, or a table with total, reserved
        /// and `allocation_ratio`.
        pub inventory: BTreeMap<ResourceClass, Amount> = BTreeMap::new()
            => key("{ VCPU = 8, MEMORY_MB = 16384, DISK_GB = 100 }").required();
        /// What the host is, as Placement's traits.
        pub traits: BTreeSet<Trait> = BTreeSet::new() => key(r#"["CUSTOM_SSD"]"#);
        /// Where the hypervisor keeps its state; not set: in `state_dir`.
        pub dir: Option<PathBuf> = None => key("/var/lib/ebbtide/simulated");
        /// Where each running guest has a socket with its metadata; not set: nowhere. At most 61
        /// bytes long.
        pub metadata_dir: Option<PathBuf> = None => key("/run/ebbtide-agent");
        /// The storage that it shares with other hosts, where preemptible servers are kept.
        pub storage: Option<StorageSettings> = None;
        /// Time to start a server.
        // Of the order of what QEMU takes, shortened so that a demonstration is not dull.
        pub start_seconds: f64 = 0.3 => key("0.0").range(0.0..=MAX_SECONDS);
        /// Time to reach a guest with its notice.
        pub notice_seconds: f64 = 0.05 => key("0.0").range(0.0..=MAX_SECONDS);
        /// Time to terminate a server.
        pub terminate_seconds: f64 = 0.2 => key("0.0").range(0.0..=MAX_SECONDS);
        /// Time to stop a server.
        pub stop_seconds: f64 = 0.5 => key("0.0").range(0.0..=MAX_SECONDS);
        /// Time to hibernate a server.
        pub hibernate_seconds: f64 = 1.0 => key("0.0").range(0.0..=MAX_SECONDS);
        /// Time to delete a server.
        pub delete_seconds: f64 = 0.2 => key("0.0").range(0.0..=MAX_SECONDS);
    }
}

/// What the host has of one class, in short or in full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    /// Only the total: nothing reserved, no overcommit.
    Total(u64),
    /// In full.
    Full(Inventory),
}

impl Setting for Amount {
    fn shape() -> Shape {
        Shape::Value(Type::Table)
    }
}

impl SimulatedSettings {
    /// Settings with this inventory and actions that take no time: for tests.
    #[must_use]
    pub fn instant(inventory: BTreeMap<ResourceClass, Inventory>) -> Self {
        let full = inventory.into_iter().map(|(c, i)| (c, Amount::Full(i)));
        Self {
            inventory: full.collect(),
            traits: BTreeSet::new(),
            dir: None,
            metadata_dir: None,
            storage: None,
            start_seconds: 0.0,
            notice_seconds: 0.0,
            terminate_seconds: 0.0,
            stop_seconds: 0.0,
            hibernate_seconds: 0.0,
            delete_seconds: 0.0,
        }
    }

    /// Reads and checks the table.
    ///
    /// # Errors
    /// [`AgentError::Config`] that names the key.
    pub fn from_table(table: &toml::Table) -> Result<Self, AgentError> {
        let settings: Self = table.clone().try_into().map_err(|error: toml::de::Error| {
            AgentError::config(
                "driver.simulated",
                toml_text::without_values(error.message()),
            )
        })?;
        if settings.inventory.is_empty() {
            return Err(AgentError::config(
                "driver.simulated.inventory",
                "it is missing or empty; write for example inventory = { VCPU = 8, MEMORY_MB = 16384, DISK_GB = 100 }",
            ));
        }
        for (class, inventory) in &settings.facts().inventory {
            let refused = |error: ebbtide_model::ModelError| {
                AgentError::config(
                    format!("driver.simulated.inventory.{class}"),
                    error.to_string(),
                )
            };
            inventory.check(class).map_err(refused)?;
        }
        if let Some(dir) = &settings.metadata_dir
            && dir.as_os_str().len() > MAX_METADATA_DIR
        {
            let problem = format!(
                "it is longer than {MAX_METADATA_DIR} bytes, the paths of sockets are limited"
            );
            return Err(AgentError::config("driver.simulated.metadata_dir", problem));
        }
        if let Some(storage) = &settings.storage {
            storage.check("simulated")?;
        }
        check_ranges(&settings)
            .map_err(|range| AgentError::out_of_range("driver.simulated", range))?;
        Ok(settings)
    }

    pub(super) fn facts(&self) -> HostFacts {
        let full = |amount: &Amount| match amount {
            Amount::Total(total) => Inventory::of(*total),
            Amount::Full(inventory) => inventory.clone(),
        };
        let inventory = self.inventory.iter().map(|(c, a)| (c.clone(), full(a)));
        HostFacts {
            inventory: inventory.collect(),
            traits: self.traits.clone(),
            storage: self.storage.as_ref().map(|s| s.name.clone()),
        }
    }

    pub(super) fn duration(&self, what: FaultyAction) -> Duration {
        let seconds = match what {
            FaultyAction::Start => self.start_seconds,
            FaultyAction::Notice | FaultyAction::Withdraw => self.notice_seconds,
            FaultyAction::Terminate => self.terminate_seconds,
            FaultyAction::Stop => self.stop_seconds,
            FaultyAction::Hibernate => self.hibernate_seconds,
            FaultyAction::Delete => self.delete_seconds,
            FaultyAction::List | FaultyAction::Look => 0.0,
        };
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
    }
}
