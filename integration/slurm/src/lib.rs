//! Slurm's own programs, as a person would start them: `squeue`, `sinfo`, `scontrol`, `scancel`,
//! `sbatch`.
//!
//! Slurm has no stable library and its REST service is a daemon that few sites run; its programs
//! are there wherever Slurm is.

use ebbtide_burst::BurstError;
use ebbtide_burst::slurm::{Node, SlurmJob, jobs, nodes};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// How much of what a program says goes into a message.
const SAID: usize = 400;

/// A cluster.
#[derive(Debug, Clone, Default)]
pub struct Slurm {
    /// slurm.conf, if it is not where Slurm looks for it.
    pub conf: Option<PathBuf>,
    /// Where the programs are, if not in PATH.
    pub bin_dir: Option<PathBuf>,
    /// How long one of them may take; for ever if it is zero.
    pub timeout: Duration,
}

impl Slurm {
    /// Runs one of Slurm's programs to its end; what it printed.
    ///
    /// # Errors
    /// [`BurstError::Silent`] if it is not there, fails, or does not end in time; it is ended then.
    pub async fn run(&self, program: &str, arguments: &[&str]) -> Result<String, BurstError> {
        let silent = |problem: String| BurstError::Silent {
            program: format!("{program} {}", arguments.join(" ")),
            problem,
        };
        let path = match &self.bin_dir {
            Some(dir) => dir.join(program),
            None => PathBuf::from(program),
        };
        let mut command = Command::new(path);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(conf) = &self.conf {
            command.env("SLURM_CONF", conf);
        }
        let ended = command.output();
        let output = if self.timeout.is_zero() {
            ended.await
        } else {
            match tokio::time::timeout(self.timeout, ended).await {
                Ok(output) => output,
                Err(_) => return Err(silent(format!("no end after {:?}", self.timeout))),
            }
        };
        let output = output.map_err(|error| silent(error.to_string()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let said: String = said.trim().replace('\n', "; ").chars().take(SAID).collect();
        if !output.status.success() {
            return Err(silent(match said.as_str() {
                "" => output.status.to_string(),
                said => format!("{}: {said}", output.status),
            }));
        }
        let printed = String::from_utf8(output.stdout);
        let printed = printed.map_err(|_| silent("what it printed is no UTF-8".to_owned()))?;
        // Slurm 22.05's squeue and sinfo end well without having said anything if slurmctld is
        // away.
        if printed.trim().is_empty() && arguments.contains(&"--json") {
            return Err(silent(format!("it printed nothing: {said}")));
        }
        Ok(printed)
    }

    /// All jobs that Slurm still knows, those that have ended included.
    ///
    /// # Errors
    /// As [`Self::run`]; [`BurstError::Answer`] for what is not understood.
    pub async fn jobs(&self) -> Result<Vec<SlurmJob>, BurstError> {
        jobs(&self.run("squeue", &["--states=all", "--json"]).await?)
    }

    /// All nodes.
    ///
    /// # Errors
    /// As [`Self::jobs`].
    pub async fn nodes(&self) -> Result<Vec<Node>, BurstError> {
        nodes(&self.run("sinfo", &["--json"]).await?)
    }

    /// Changes a node.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn node(&self, node: &str, changes: &[&str]) -> Result<(), BurstError> {
        let name = format!("nodename={node}");
        let mut arguments = vec!["update", name.as_str()];
        arguments.extend(changes);
        self.run("scontrol", &arguments).await.map(drop)
    }
}
