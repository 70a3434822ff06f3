//! Processes that die by themselves, or are to live elsewhere after that.

use super::{PATIENCE, Region};
use crate::ProcessEnvironment;
use anyhow::{Context, Result, bail};
use ebbtide_harness::{Process, Signal};
use std::os::unix::process::ExitStatusExt;

/// SIGABRT: how a process ends that was asked to die at a place (`ebbtide-fail-points`).
const ABORTED: i32 = 6;

impl Region {
    /// In what the scheduler runs from its next start on.
    pub fn scheduler_will_run_in(&mut self, environment: ProcessEnvironment) {
        self.options.scheduler_in = environment;
    }

    /// In what the agent of a host runs from its next start on.
    pub fn agent_will_run_in(&mut self, host: &str, environment: ProcessEnvironment) {
        self.options.agents_in.insert(host.to_owned(), environment);
    }

    /// Ends the scheduler as an operator does, with SIGTERM: it gives back what it has.
    ///
    /// # Errors
    /// It does not end.
    pub async fn stop_scheduler(&mut self) -> Result<()> {
        let process = self.scheduler.take();
        let process = process.context("the scheduler is not running")?;
        Ok(process.stop(Signal::Term, PATIENCE).await?)
    }

    /// Waits until the scheduler has died where it was asked to.
    ///
    /// # Errors
    /// It lives on, or has died otherwise; with its log.
    pub async fn scheduler_died(&mut self) -> Result<()> {
        let process = self.scheduler.take();
        died(&process.context("the scheduler is not running")?).await
    }

    /// Waits until the agent of a host has died where it was asked to.
    ///
    /// # Errors
    /// It lives on, or has died otherwise; with its log.
    pub async fn agent_died(&mut self, host: &str) -> Result<()> {
        let process = self.agents.remove(host);
        died(&process.context("no such agent")?).await
    }

    /// What the agent of a host has said so far, in all its lives.
    #[must_use]
    pub fn agent_log(&self, host: &str) -> String {
        let log = self.dir.path().join(format!("agent-{host}.log"));
        std::fs::read_to_string(log).unwrap_or_default()
    }
}

/// Set to keep the files of a region whose test has failed.
const ENV_KEEP: &str = "EBBTIDE_TEST_KEEP";

impl Drop for Region {
    #[allow(clippy::print_stderr)] // Tells the developer where the logs are.
    fn drop(&mut self) {
        if std::thread::panicking() && std::env::var_os(ENV_KEEP).is_some() {
            self.dir.disable_cleanup(true);
            eprintln!("the region's logs are in {}", self.dir.path().display());
        }
    }
}

async fn died(process: &Process) -> Result<()> {
    let status = process.wait_exit(PATIENCE).await?;
    if status.signal() != Some(ABORTED) {
        bail!(
            "{} ended with {status}: {}",
            process.name(),
            process.log_tail()
        );
    }
    Ok(())
}
