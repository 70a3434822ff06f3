//! How a [`Process`] is to be started.

use super::log::Log;
use super::{Process, Signal};
use crate::error::{Error, Result};
use crate::programs;
use crate::user::RunAs;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Run between `setpriv` and the program. The parent's death signal is set by then; if the parent
/// died before that, the signal will never come, but the parent process id has changed. (dash, bash
/// and busybox set PPID at start.)
const CHECK_PARENT: &str = r#"[ "$PPID" = "$1" ] || exit 125; shift; exec "$@""#;

/// A program with its arguments, environment and output, to be started as a [`Process`].
#[derive(Debug, Clone)]
pub struct ProcessCommand {
    name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    clear_environment: bool,
    directory: Option<PathBuf>,
    run_as: RunAs,
    when_parent_dies: Signal,
}

impl ProcessCommand {
    /// `program` by path, or by name to be looked up in PATH. `name` is for people: messages and
    /// thread names.
    #[must_use]
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            clear_environment: false,
            directory: None,
            run_as: RunAs::Caller,
            when_parent_dies: Signal::Kill,
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item = impl Into<OsString>>>(mut self, arguments: I) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, variable: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((variable.into(), value.into()));
        self
    }

    /// Gives it none of the caller's environment.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.clear_environment = true;
        self
    }

    /// Its working directory; the caller's when not set.
    #[must_use]
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sends it SIGTERM instead of SIGKILL when the caller's process dies: for programs that have
    /// children of their own to look after.
    #[must_use]
    pub fn term_when_parent_dies(mut self) -> Self {
        self.when_parent_dies = Signal::Term;
        self
    }

    /// As whom it runs.
    pub(crate) fn run_as(mut self, user: RunAs) -> Self {
        self.run_as = user;
        self
    }

    /// Starts it, with its standard output and standard error appended to the file `log` and
    /// nothing on standard input. It gets a process group of its own, so that Ctrl-C in a terminal
    /// reaches the caller only.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the log cannot be written, [`Error::Spawn`] when the process cannot be
    /// created, [`Error::ProgramMissing`] when `setpriv` (util-linux) or `sh` is missing.
    pub fn spawn(self, log: impl AsRef<Path>) -> Result<Process> {
        let (log, output) = Log::capture(log.as_ref())?;
        let mut command = self.prepared()?;
        let second = output.try_clone().map_err(Error::io(
            "duplicate the pipe for",
            log.path().unwrap_or_else(|| Path::new("")),
        ))?;
        command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(second)
            .process_group(0);
        Process::spawn(self.name, command, log, true)
    }

    /// Starts it with the caller's standard input, output and error, in the caller's process group:
    /// for a program that the caller runs on behalf of a person. What that program leaves in the
    /// background when it ends is its own affair.
    ///
    /// # Errors
    ///
    /// As [`ProcessCommand::spawn`].
    pub fn spawn_in_foreground(self) -> Result<Process> {
        let command = self.prepared()?;
        Process::spawn(self.name, command, Log::none(), false)
    }

    /// The whole command line: `setpriv … -- sh -c CHECK sh PARENT program arguments`. All of them
    /// `exec`, so that the process id is the program's.
    fn prepared(&self) -> Result<std::process::Command> {
        let program = self.resolved()?;
        let mut command = std::process::Command::new(programs::find("setpriv", "rabbitmq")?);
        command
            .args(self.run_as.setpriv_arguments())
            .arg("--pdeathsig")
            .arg(match self.when_parent_dies {
                Signal::Term => "TERM",
                _ => "KILL",
            })
            .arg("--")
            .arg(programs::find("sh", "rabbitmq")?)
            .args(["-c", CHECK_PARENT, "sh"])
            .arg(std::process::id().to_string())
            .arg(program)
            .args(&self.arguments);
        if self.clear_environment {
            command.env_clear();
        }
        command.envs(self.environment.iter().map(|(key, value)| (key, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        Ok(command)
    }

    /// The program's path. Looked up here, because the shell's "not found" would come too late to
    /// be an error of `spawn`.
    fn resolved(&self) -> Result<PathBuf> {
        let found = if self.program.components().count() > 1 {
            Some(self.program.clone()).filter(|program| program.is_file())
        } else {
            let path =
                std::env::var_os("PATH").unwrap_or_else(|| OsStr::new(programs::PATH).into());
            std::env::split_paths(&path)
                .map(|folder| folder.join(&self.program))
                .find(|program| program.is_file())
        };
        let found = found.ok_or_else(|| Error::Spawn {
            name: self.name.clone(),
            source: std::io::Error::new(
                std::io::ErrorKind::NotFound,
                format!("{} is not there", self.program.display()),
            ),
        })?;
        // Relative paths are the caller's, not those of the child's working directory.
        std::path::absolute(&found).map_err(Error::io("resolve", &found))
    }
}
