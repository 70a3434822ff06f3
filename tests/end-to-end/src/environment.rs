//! In what a process of a region runs: variables, a network, a clock.

use anyhow::{Result, bail};
use ebbtide_fail_points::{FailPoint, VARIABLE};
use ebbtide_harness::{Network, ProcessCommand};
use std::path::{Path, PathBuf};

/// What is different for one process.
#[derive(Debug, Clone, Default)]
pub struct ProcessEnvironment {
    environment: Vec<(String, String)>,
    network: Option<PathBuf>,
}

impl ProcessEnvironment {
    /// It dies at this place of a preemption.
    #[must_use]
    pub fn dying_at(point: FailPoint) -> Self {
        Self {
            environment: vec![(VARIABLE.to_owned(), point.name().to_owned())],
            network: None,
        }
    }

    /// In another network.
    #[must_use]
    pub fn within(network: &Network) -> Self {
        Self {
            environment: Vec::new(),
            network: Some(network.path()),
        }
    }

    /// With its own clock, which shows what `file` says: `+3600` is an hour ahead of the real time.
    /// This changes only the wall clock: the monotonic clock of a real machine cannot be set.
    ///
    /// # Errors
    /// The library is not there.
    pub fn with_clock(file: &Path) -> Result<Self> {
        let library = std::fs::read_dir("/usr/lib")?
            .flatten()
            .map(|dir| dir.path().join("faketime/libfaketimeMT.so.1"))
            .find(|library| library.exists());
        let Some(library) = library else {
            bail!("libfaketime is missing; run as root: bash devstack/lib/packages.sh faketime");
        };
        let environment = [
            ("LD_PRELOAD", library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", file.display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ];
        Ok(Self {
            environment: environment.map(|(k, v)| (k.to_owned(), v)).to_vec(),
            network: None,
        })
    }

    pub(crate) fn command(&self, name: &str, program: PathBuf) -> ProcessCommand {
        let mut command = match &self.network {
            None => ProcessCommand::new(name, program),
            Some(network) => ProcessCommand::new(name, "nsenter")
                .arg(format!("--net={}", network.display()))
                .arg(program),
        };
        for (variable, value) in &self.environment {
            command = command.env(variable, value);
        }
        command
    }
}
