//! The list of drivers. What else a new one needs: `docs/development/checklists/driver.md`.

use super::{Driver, DriverError, libvirt, nova, simulated};
use crate::clock::Clock;
use crate::error::AgentError;
use async_trait::async_trait;
use ebbtide_model::settings::{self, Applies, Key, Type};
use ebbtide_runtime::login::Renewal;
use ebbtide_service_manager::reload::Refusal;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Arguments of a driver.
#[derive(Clone)]
pub struct DriverContext {
    pub host: String,
    /// Its directory for files; exists.
    pub state_dir: PathBuf,
    /// Its own settings: the table `driver.NAME` of the configuration.
    pub settings: toml::Table,
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for DriverContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The settings may hold a password.
        f.debug_struct("DriverContext")
            .field("host", &self.host)
            .field("state_dir", &self.state_dir)
            .finish_non_exhaustive()
    }
}

/// The hosts of a process that is the agent of many hosts, each with its own queue and journal.
#[async_trait]
pub trait Fleet: Send + Sync + fmt::Debug {
    /// The current hosts.
    ///
    /// # Errors
    /// [`DriverError::Failed`].
    async fn hosts(&self) -> Result<BTreeSet<String>, DriverError>;

    /// The driver of one of them; `state_dir` exists and is its own.
    ///
    /// # Errors
    /// As [`build`].
    fn driver(&self, host: &str, state_dir: &Path) -> Result<Arc<dyn Driver>, AgentError>;

    /// Tests the credentials of settings that were read again, and uses them from now on. A driver
    /// without credentials has nothing to do.
    ///
    /// # Errors
    /// [`Refusal`]: the old ones stay.
    async fn renew_login(&self, _settings: &toml::Table) -> Result<Renewal, Refusal> {
        Ok(Renewal::Unchanged)
    }

    /// Interval of listing the hosts.
    fn interval(&self) -> Duration;
}

/// What opens a fleet; `None` if the settings are for one host.
type FleetMaker = fn(&DriverContext) -> Result<Option<Arc<dyn Fleet>>, AgentError>;

#[derive(Debug, Clone, Copy)]
pub struct DriverEntry {
    /// The value of `driver.kind`.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// Checks the settings and opens the hypervisor.
    build: fn(&DriverContext) -> Result<Arc<dyn Driver>, AgentError>,
    /// Checks the settings only.
    check: fn(&toml::Table) -> Result<(), AgentError>,
    /// The keys of its settings.
    keys: fn() -> Vec<Key>,
    /// For drivers that can speak for many hosts.
    fleet: Option<FleetMaker>,
}

/// All drivers.
pub const DRIVERS: &[DriverEntry] = &[
    DriverEntry {
        name: "libvirt",
        about: "QEMU's virtual machines on this host, through libvirt",
        build: libvirt::build,
        check: libvirt::check_settings,
        keys: settings::keys::<libvirt::LibvirtSettings>,
        fleet: None,
    },
    DriverEntry {
        name: "nova",
        about: "Nova's API: beside nova-compute, or one process for many hosts",
        build: nova::build,
        check: nova::check_settings,
        keys: settings::keys::<nova::NovaSettings>,
        fleet: Some(nova::fleet),
    },
    DriverEntry {
        name: "simulated",
        about: "a stand-in hypervisor in a file, for trying things out and for tests",
        build: simulated::build,
        check: simulated::check_settings,
        keys: settings::keys::<simulated::SimulatedSettings>,
        fleet: None,
    },
];

/// The driver of a configuration that names none.
pub const DEFAULT: &str = "simulated";

/// The keys of the table `driver`.
pub(crate) fn keys() -> Vec<Key> {
    let about: Vec<String> = DRIVERS
        .iter()
        .map(|driver| format!("{}: {}.", driver.name, driver.about))
        .collect();
    let kind = Key {
        path: "kind".to_owned(),
        ty: Type::Words(DRIVERS.iter().map(|driver| driver.name).collect()),
        unit: "",
        default: format!("{DEFAULT:?}"),
        range: None,
        required: false,
        applies: Applies::Start,
        example: "\"libvirt\"".to_owned(),
        secret: false,
        what: format!(
            "Which hypervisor the agent drives. {} The settings of each are in its own table; \
             those of the others have no effect.",
            about.join(" ")
        ),
    };
    let of = |driver: &DriverEntry| {
        let keys = (driver.keys)().into_iter();
        keys.map(|key| key.within(driver.name)).collect::<Vec<_>>()
    };
    std::iter::once(kind)
        .chain(DRIVERS.iter().flat_map(of))
        .collect()
}

fn find(name: &str) -> Result<&'static DriverEntry, AgentError> {
    DRIVERS.iter().find(|d| d.name == name).ok_or_else(|| {
        let known: Vec<_> = DRIVERS.iter().map(|d| d.name).collect();
        AgentError::Config {
            key: "driver.kind".to_owned(),
            problem: format!("{name:?} is unknown, use one of {}", known.join(", ")),
        }
    })
}

/// Opens the hypervisor through the driver with this name.
///
/// # Errors
/// [`AgentError::Config`] that names the key, [`AgentError::Io`] if the hypervisor cannot be
/// opened.
pub fn build(name: &str, context: &DriverContext) -> Result<Arc<dyn Driver>, AgentError> {
    (find(name)?.build)(context)
}

/// Opens the hosts that the settings name; `None` if the settings are for one host.
///
/// # Errors
/// As [`build`].
pub fn fleet(name: &str, context: &DriverContext) -> Result<Option<Arc<dyn Fleet>>, AgentError> {
    match find(name)?.fleet {
        Some(open) => open(context),
        None => Ok(None),
    }
}

/// True if one process with this driver can be the agent of many hosts.
#[must_use]
pub fn may_be_fleet(name: &str) -> bool {
    find(name).is_ok_and(|driver| driver.fleet.is_some())
}

/// Checks a driver's settings without touching the hypervisor.
///
/// # Errors
/// [`AgentError::Config`] that names the key.
pub fn check(name: &str, settings: &toml::Table) -> Result<(), AgentError> {
    (find(name)?.check)(settings)
}
