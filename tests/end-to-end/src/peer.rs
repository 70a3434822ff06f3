//! Further schedulers of a region: they share its database and broker.

use crate::ProcessEnvironment;
use crate::region::{PATIENCE, bin};
use anyhow::{Context, Result, bail};
use ebbtide_client::Credentials;
use ebbtide_client::{Region as Clients, RegionChannel};
use ebbtide_harness::{Process, Signal, eventually};
use ebbtide_proto::v1::admin_client::AdminClient;
use ebbtide_proto::v1::scheduler_client::SchedulerClient;
use ebbtide_proto::v1::servers_client::ServersClient;
use std::path::{Path, PathBuf};

/// A scheduler beside the first one. It ends with this.
pub struct Peer {
    process: Process,
    ready: PathBuf,
    log: PathBuf,
}

/// Starts a scheduler and waits until it answers.
pub(crate) async fn launch(
    name: &str,
    program: &Path,
    environment: &ProcessEnvironment,
    config: &Path,
    ready: &Path,
    log: &Path,
) -> Result<Process> {
    let process = environment
        .command(name, program.to_owned())
        .arg("--config")
        .arg(config)
        .arg("--ready-file")
        .arg(ready)
        .spawn(log)?;
    let answered = tokio::select! {
        () = eventually(PATIENCE, async || if ready.exists() { Ok(()) } else { Err("no ready file") }) => true,
        () = process.ended() => false,
    };
    if !answered {
        bail!("{name} has ended: {}", process.log_tail());
    }
    Ok(process)
}

impl Peer {
    /// Starts one with a configuration of its own; its files are in `dir`.
    ///
    /// # Errors
    /// It ends before it answers, with its log.
    pub async fn start(dir: &Path, config: &Path, name: &str) -> Result<Self> {
        Self::start_of(&bin("ebbtide-scheduler"), dir, config, name).await
    }

    /// The same of a given program: another version.
    ///
    /// # Errors
    /// It ends before it answers, with its log.
    pub async fn start_of(program: &Path, dir: &Path, config: &Path, name: &str) -> Result<Self> {
        let ready = dir.join(format!("ready-{name}.json"));
        let log = dir.join(format!("scheduler-{name}.log"));
        let process = launch(
            &format!("ebbtide-scheduler {name}"),
            program,
            &ProcessEnvironment::default(),
            config,
            &ready,
            &log,
        )
        .await?;
        Ok(Self {
            process,
            ready,
            log,
        })
    }

    /// An address of its ready file, `grpc` or `http`.
    ///
    /// # Errors
    /// It is not there.
    pub fn address(&self, key: &str) -> Result<String> {
        let text = std::fs::read_to_string(&self.ready)?;
        let ready: serde_json::Value = serde_json::from_str(&text)?;
        let address = ready[key].as_str().context("no such address")?;
        Ok(format!("http://{address}"))
    }

    /// Where its API is.
    ///
    /// # Errors
    /// It is not there.
    pub fn endpoint(&self) -> Result<String> {
        self.address("grpc")
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// True if it does not run any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.process.exit_status().is_some()
    }

    async fn clients(&self) -> Result<Clients> {
        Ok(Clients::connect(&self.endpoint()?, &Credentials::default()).await?)
    }

    /// The tenant's calls.
    ///
    /// # Errors
    /// No answer.
    pub async fn servers(&self) -> Result<ServersClient<RegionChannel>> {
        Ok(self.clients().await?.servers)
    }

    /// The scheduler's calls.
    ///
    /// # Errors
    /// No answer.
    pub async fn scheduler(&self) -> Result<SchedulerClient<RegionChannel>> {
        Ok(self.clients().await?.scheduler)
    }

    /// The operator's calls.
    ///
    /// # Errors
    /// No answer.
    pub async fn admin(&self) -> Result<AdminClient<RegionChannel>> {
        Ok(self.clients().await?.admin)
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// It is not running.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.process.signal(signal)?;
        Ok(())
    }

    /// Asks it to end, and waits for that.
    ///
    /// # Errors
    /// It does not end in time.
    pub async fn stop(self) -> Result<()> {
        self.process.stop(Signal::Term, PATIENCE).await?;
        Ok(())
    }

    /// Kills it without warning.
    pub fn kill(self) {
        self.process.kill();
    }

    /// What it has said so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}
