//! The list of drivers. A new one is added here and nowhere else.

use super::{Driver, simulated};
use crate::clock::Clock;
use crate::error::AgentError;
use std::path::PathBuf;
use std::sync::Arc;

/// What a driver is made from.
#[derive(Debug, Clone)]
pub struct DriverContext {
    /// The host.
    pub host: String,
    /// Where it may keep files; exists.
    pub state_dir: PathBuf,
    /// Its own settings: the table `driver.NAME` of the configuration.
    pub settings: toml::Table,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

/// One driver.
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
}

/// All drivers.
pub const DRIVERS: &[DriverEntry] = &[DriverEntry {
    name: "simulated",
    about: "a stand-in hypervisor in a file, for trying things out and for tests",
    build: simulated::build,
    check: simulated::check_settings,
}];

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
/// [`AgentError::Config`] that names the key, [`AgentError::Io`] if the hypervisor cannot be opened.
pub fn build(name: &str, context: &DriverContext) -> Result<Arc<dyn Driver>, AgentError> {
    (find(name)?.build)(context)
}

/// Checks a driver's settings without touching the hypervisor.
///
/// # Errors
/// [`AgentError::Config`] that names the key.
pub fn check(name: &str, settings: &toml::Table) -> Result<(), AgentError> {
    (find(name)?.check)(settings)
}
