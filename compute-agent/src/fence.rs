//! The operator's fence: a program that ends a victim which the hypervisor does not end (its QEMU
//! hangs in the kernel, libvirt does not answer). Without a fence such a victim stays, and the
//! preemptor gets another host.
//!
//! The agent calls the program as Pacemaker calls its fence agents: lines of `name=value` on
//! standard input, among them `action=off` and `plug=` with the server's identifier. Exit code 0
//! means that the server certainly does not run any more. So `fence_virsh` and others of Debian's
//! `fence-agents` can be used as well as a few lines of shell. The agent may call it again for a
//! server that it has already ended.

use crate::driver::DriverError;
use ebbtide_model::ServerId;
use ebbtide_model::settings::check_ranges;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// How much of the program's words is passed on, in characters.
const MAX_WORDS: usize = 400;

ebbtide_model::settings! {
    /// The table `fence`.
    #[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct FenceSettings: Default {
        /// The operator's program that ends a victim which the hypervisor does not end, with its
        /// full path, and its arguments. The agent calls it as Pacemaker calls fence agents. Not
        /// set: there is no fence.
        pub command: Vec<String> = Vec::new() => key(r#"["/usr/sbin/fence_virsh"]"#);
        /// Further parameters for the program on its standard input, name = "value". May hold
        /// passwords.
        pub options: BTreeMap<String, String> = BTreeMap::new()
            => key(r#"{ ip = "192.0.2.10", login = "root", identity_file = "/etc/ebbtide/fence.key" }"#)
                .secret();
        /// How often the fence is tried for one victim.
        pub tries: u32 = 3 => key("5").range(1..=100);
        /// How long the fence may take each time.
        // Pacemaker's default for fencing.
        pub timeout_seconds: u32 = 60 => key("30").range(1..=3600);
    }
}

impl fmt::Debug for FenceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceSettings")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

impl FenceSettings {
    /// Checks what can be checked without calling it.
    ///
    /// # Errors
    /// The key, and what is wrong with it.
    pub fn check(&self) -> Result<(), (String, String)> {
        let refused = |key: &str, problem: &str| Err((key.to_owned(), problem.to_owned()));
        match self.command.first() {
            Some(program) if !Path::new(program).is_absolute() => {
                return refused("command", "write the program with its full path");
            }
            Some(program) if !Path::new(program).is_file() => {
                return refused("command", &format!("there is no file {program}"));
            }
            None if !self.options.is_empty() => {
                return refused("options", "there is no fence.command that could use them");
            }
            _ => {}
        }
        for (name, value) in &self.options {
            if name.is_empty() || name.contains(['=', '\n']) || value.contains('\n') {
                let problem = "names without \"=\", and everything without line breaks";
                return refused(&format!("options.{name}"), problem);
            }
            if ["action", "plug", "nodename"].contains(&name.as_str()) {
                return refused(&format!("options.{name}"), "the agent sets it by itself");
            }
        }
        check_ranges(self).map_err(|range| (range.key.clone(), range.problem()))
    }
}

/// A fence that can be called.
#[derive(Clone)]
pub struct Fence {
    program: String,
    arguments: Vec<String>,
    options: BTreeMap<String, String>,
    limit: Duration,
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options may hold a password.
        f.debug_struct("Fence")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

impl Fence {
    /// The fence; `None` if the settings name none.
    #[must_use]
    pub fn new(settings: &FenceSettings) -> Option<Self> {
        let (program, arguments) = settings.command.split_first()?;
        Some(Self {
            program: program.clone(),
            arguments: arguments.to_vec(),
            options: settings.options.clone(),
            limit: Duration::from_secs(u64::from(settings.timeout_seconds)),
        })
    }

    /// Ends a server of a host. `Ok` if the program says that it does not run any more.
    ///
    /// # Errors
    /// [`DriverError::Failed`] with the program's words, or why there are none.
    pub async fn fence(&self, host: &str, server_id: ServerId) -> Result<(), DriverError> {
        tracing::warn!(host, %server_id, program = self.program, "the hypervisor did not end a victim: it is fenced");
        let failed = |detail: String| DriverError::Failed {
            what: "fence the server",
            detail,
        };
        let output = match tokio::time::timeout(self.limit, self.call(host, server_id)).await {
            Ok(output) => output
                .map_err(|error| failed(format!("{} could not be run: {error}", self.program)))?,
            // Dropping the call has killed the program.
            Err(_) => {
                return Err(failed(format!(
                    "{} did not end within {} s (fence.timeout_seconds)",
                    self.program,
                    self.limit.as_secs()
                )));
            }
        };
        if output.status.success() {
            return Ok(());
        }
        Err(failed(format!(
            "{} ended with {}: {}",
            self.program,
            output.status,
            words(&output)
        )))
    }

    async fn call(&self, host: &str, server_id: ServerId) -> std::io::Result<Output> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .env("EBBTIDE_HOST", host)
            .env("EBBTIDE_SERVER_ID", server_id.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            let mut told = format!("action=off\nplug={server_id}\nnodename={server_id}\n");
            for (name, value) in &self.options {
                told.push_str(&format!("{name}={value}\n"));
            }
            // A program that takes its orders from the environment may have closed it already.
            let _ = stdin.write_all(told.as_bytes()).await;
        }
        child.wait_with_output().await
    }
}

/// The last of what the program said, errors before anything else.
fn words(output: &Output) -> String {
    let said = [&output.stderr, &output.stdout]
        .map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned())
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or_else(|| "it said nothing".to_owned());
    let lines: Vec<&str> = said.lines().collect();
    let last = lines.iter().rev().take(5).rev().copied();
    last.collect::<Vec<_>>()
        .join("; ")
        .chars()
        .take(MAX_WORDS)
        .collect()
}

#[cfg(test)]
mod tests;
