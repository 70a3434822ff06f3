//! One call of libvirt: a `virsh` process, bounded in time. No library of libvirt is linked, so
//! that the agent can be built and run where there is none.

use crate::driver::DriverError;
use ebbtide_model::ServerId;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// How much of libvirt's complaint is passed on.
const MAX_COMPLAINT: usize = 600;

/// Where libvirt is.
#[derive(Debug, Clone)]
pub(super) struct Virsh {
    program: PathBuf,
    uri: String,
    limit: Duration,
}

/// What libvirt said instead of doing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VirshRefusal {
    /// There is no such domain.
    Gone,
    /// Anything else, in its own words.
    Because(String),
}

impl VirshRefusal {
    /// For the agent.
    pub(super) fn about(self, server_id: ServerId, what: &'static str) -> DriverError {
        match self {
            Self::Gone => DriverError::NotFound { server_id },
            Self::Because(detail) => DriverError::Failed { what, detail },
        }
    }

    /// For the agent, where no single server was asked for.
    pub(super) fn failed(self, what: &'static str) -> DriverError {
        let detail = match self {
            Self::Gone => "the domain went away meanwhile".to_owned(),
            Self::Because(detail) => detail,
        };
        DriverError::Failed { what, detail }
    }
}

impl Virsh {
    pub(super) fn new(program: PathBuf, uri: String, limit: Duration) -> Self {
        Self {
            program,
            uri,
            limit,
        }
    }

    /// The same for another host.
    pub(super) fn to(&self, uri: &str) -> Self {
        Self::new(self.program.clone(), uri.to_owned(), self.limit)
    }

    /// One command that should be quick. Returns what it printed.
    pub(super) async fn call(&self, words: &[&str]) -> Result<String, VirshRefusal> {
        match tokio::time::timeout(self.limit, self.wait(words)).await {
            Ok(answer) => answer,
            Err(_) => Err(VirshRefusal::Because(format!(
                "virsh {} did not answer within {} s (driver.libvirt.command_seconds)",
                words.first().unwrap_or(&""),
                self.limit.as_secs_f64()
            ))),
        }
    }

    /// Runs one command without a time limit; the caller limits it.
    pub(super) async fn wait(&self, words: &[&str]) -> Result<String, VirshRefusal> {
        let output = Command::new(&self.program)
            .args(["--quiet", "--connect", &self.uri])
            .args(words)
            // The driver parses English output only.
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|error| {
                VirshRefusal::Because(format!("cannot run {}: {error}", self.program.display()))
            })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(understood(&String::from_utf8_lossy(&output.stderr)))
    }
}

/// What a complaint of virsh means.
pub(super) fn understood(complaint: &str) -> VirshRefusal {
    let gone = [
        "failed to get domain",
        "Domain not found",
        "no domain with matching",
    ];
    if gone.iter().any(|words| complaint.contains(words)) {
        return VirshRefusal::Gone;
    }
    let lines = complaint
        .lines()
        .map(|line| line.trim_start_matches("error: ").trim());
    let told: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    VirshRefusal::Because(told.join("; ").chars().take(MAX_COMPLAINT).collect())
}
