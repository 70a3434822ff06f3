//! How a process is started, saved and restored.

use super::fault::RunFault;
use super::state::StateDir;
use crate::process::{self, Program, ProgramOutput, Tree};
use ebbtide_run::CheckpointReason;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum time until CRIU's first process appears in its namespace: milliseconds, unless the
/// machine is overloaded.
const APPEARS: Duration = Duration::from_secs(10);

/// Exit code of a command that cannot continue from the given checkpoint.
pub(super) const CANNOT_RESTORE: u8 = 125;

/// How a process is saved.
#[derive(Debug, Clone)]
pub(super) enum SaveMethod {
    /// By the user's commands.
    Commands {
        /// The command that saves.
        save: Option<String>,
        /// The command that replaces the job's command on a restart. Without it, the job's command
        /// starts again and finds the checkpoint through its environment.
        restore: Option<String>,
    },
    /// By CRIU, from outside: the process does not take part.
    Criu {
        program: PathBuf,
        /// Maximum duration of a restore.
        limit: Duration,
    },
}

/// A checkpoint in progress.
#[derive(Debug)]
pub(super) struct Saver {
    /// Its number.
    pub(super) id: u64,
    tree: Tree,
    said: ProgramOutput,
    /// A process to be resumed afterwards.
    stopped: Option<i32>,
}

/// Environment variables of all commands.
pub(super) type Env = Vec<(&'static str, String)>;

impl SaveMethod {
    /// Checkpoints by CRIU, if it works on this machine.
    ///
    /// # Errors
    /// [`RunFault::Program`].
    pub(super) async fn criu(name: &str, limit: Duration) -> Result<Self, RunFault> {
        let fault = |problem: String, next: &str| RunFault::Program {
            program: name.to_owned(),
            problem,
            next: next.to_owned(),
        };
        let install = "install Debian's package `criu`, or say where it is with --criu-program";
        let program = process::find(name)
            .ok_or_else(|| fault("there is no such program".to_owned(), install))?;
        if process::find("unshare").is_none() {
            let problem = "there is no program `unshare`, which gives the process ids of its own";
            return Err(fault(
                problem.to_owned(),
                "install Debian's package `util-linux`",
            ));
        }
        let method = Self::Criu { program, limit };
        let words = method.criu_words(["check"]);
        let checked = match begin(&words, &[]) {
            Ok((mut tree, said)) => process::run_to_end(&mut tree, &said).await,
            Err(error) => Err(error),
        };
        let works = "it needs root (or CAP_CHECKPOINT_RESTORE and CAP_SYS_PTRACE) and a kernel that it knows: Linux 6.13 and later need CRIU 4.1. Commands of your own (--checkpoint-command) need neither";
        checked.map_err(|problem| fault(format!("`criu check` fails: {problem}"), works))?;
        Ok(method)
    }

    /// Its name in the state file.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Commands { .. } => "command",
            Self::Criu { .. } => "criu",
        }
    }

    fn criu_words<const N: usize>(&self, arguments: [&str; N]) -> Vec<String> {
        let program = match self {
            Self::Criu { program, .. } => program.display().to_string(),
            Self::Commands { .. } => String::new(),
        };
        [program]
            .into_iter()
            .chain(arguments.map(str::to_owned))
            .collect()
    }

    /// Whether the method can save.
    pub(super) fn saves(&self) -> bool {
        !matches!(self, Self::Commands { save: None, .. })
    }

    /// Starts the command from its beginning.
    ///
    /// # Errors
    /// [`RunFault::Program`] if it cannot be started, [`RunFault::Storage`].
    pub(super) fn start(
        &self,
        command: &[String],
        env: &Env,
        dir: &StateDir,
    ) -> Result<Tree, RunFault> {
        let mut words = Vec::new();
        if matches!(self, Self::Criu { .. }) {
            // A process-id namespace of its own, so that its process ids are free on every machine.
            // A session of its own, so that it has no terminal.
            words.extend(["unshare", "--pid", "--fork", "setsid"].map(str::to_owned));
        }
        words.extend_from_slice(command);
        launch(&words, env, dir)
    }

    /// Continues from a checkpoint. The inner error is a text that says why this is not possible.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub(super) async fn restore(
        &self,
        id: u64,
        lengths: Option<[u64; 2]>,
        command: &[String],
        env: &Env,
        dir: &StateDir,
    ) -> Result<Result<Tree, String>, RunFault> {
        let from = dir.checkpoint(id);
        // A command could take a missing directory for the start of the job.
        if !from.is_dir() {
            return Ok(Err(format!("{} is not there any more", from.display())));
        }
        match self {
            Self::Commands { restore, .. } => {
                let mut env = env.clone();
                env.push(("EBBTIDE_RESTORE_DIR", from.display().to_string()));
                let words = restore
                    .as_ref()
                    .map_or_else(|| command.to_vec(), |line| shell(line));
                launch(&words, &env, dir).map(Ok)
            }
            Self::Criu { limit, .. } => {
                if let Some(lengths) = lengths {
                    dir.rewind(lengths)?;
                }
                let pid_file = dir.file("pid");
                // CRIU refuses to overwrite an existing file.
                let _ = std::fs::remove_file(&pid_file);
                let words = self.criu_words([
                    "restore",
                    "--restore-detached",
                    "--images-dir",
                    &from.display().to_string(),
                    "--work-dir",
                    &dir.path().display().to_string(),
                    "--pidfile",
                    &pid_file.display().to_string(),
                    "--verbosity=1",
                ]);
                let (mut criu, said) = match begin(&words, &[]) {
                    Ok(begun) => begun,
                    Err(error) => return Ok(Err(error)),
                };
                let ended = process::run_to_end(&mut criu, &said);
                match tokio::time::timeout(*limit, ended).await {
                    Ok(Ok(())) => {}
                    Ok(Err(problem)) => return Ok(Err(problem)),
                    Err(_) => {
                        criu.kill(&[]).await;
                        let problem = format!("CRIU took longer than {} s", limit.as_secs_f64());
                        return Ok(Err(problem));
                    }
                }
                let pid = std::fs::read_to_string(&pid_file).ok();
                let pid = pid.and_then(|text| text.trim().parse().ok());
                Ok(pid
                    .and_then(Tree::adopted)
                    .ok_or_else(|| "CRIU did not say which process it is".to_owned()))
            }
        }
    }

    /// The process that has the job's state: under `unshare` it is a descendant.
    pub(super) async fn subject(&self, tree: &Tree) -> i32 {
        if matches!(self, Self::Commands { .. }) || tree.is_adopted() {
            return tree.pid();
        }
        let appears = async {
            loop {
                if let Some(pid) = process::child_of(tree.pid()) {
                    return pid;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let appeared = tokio::time::timeout(APPEARS, appears).await;
        appeared.unwrap_or_else(|_| tree.pid())
    }

    /// Starts a checkpoint.
    ///
    /// # Errors
    /// A text for people: what cannot be started or written.
    pub(super) async fn save(
        &self,
        id: u64,
        why: CheckpointReason,
        tree: &Tree,
        env: &Env,
        dir: &StateDir,
    ) -> Result<Saver, String> {
        let to = dir.begin(id).map_err(|error| error.to_string())?;
        let subject = self.subject(tree).await;
        let mut env = env.clone();
        let (words, stopped) = match self {
            Self::Commands { save, .. } => {
                env.push(("EBBTIDE_PID", subject.to_string()));
                env.push(("EBBTIDE_CHECKPOINT_DIR", to.display().to_string()));
                env.push(("EBBTIDE_CHECKPOINT_REASON", reason(why).to_owned()));
                let line = save.as_ref().ok_or("there is no --checkpoint-command")?;
                (shell(line), None)
            }
            Self::Criu { .. } => {
                let words = self.criu_words([
                    "dump",
                    "--tree",
                    &subject.to_string(),
                    "--images-dir",
                    &to.display().to_string(),
                    "--leave-stopped",
                    "--verbosity=1",
                ]);
                (words, Some(subject))
            }
        };
        let (tree, said) = begin(&words, &env)?;
        Ok(Saver {
            id,
            tree,
            said,
            stopped,
        })
    }
}

impl Saver {
    /// Waits until the checkpoint is complete and durable. Returns the lengths of the command's
    /// output if the process was stopped meanwhile.
    ///
    /// # Errors
    /// A text for people.
    pub(super) async fn done(&mut self, dir: &StateDir) -> Result<Option<[u64; 2]>, String> {
        let saved = process::run_to_end(&mut self.tree, &self.said).await;
        let lengths = self.stopped.map(|_| dir.lengths());
        if let Some(pid) = self.stopped {
            process::go_on(pid);
        }
        saved?;
        dir.sync_checkpoint(self.id)
            .map_err(|error| error.to_string())?;
        Ok(lengths)
    }

    /// Aborts the checkpoint. Orphans of the command that is being saved remain, because they
    /// belong to the job.
    pub(super) async fn abandon(self) {
        self.tree.kill_alone().await;
        if let Some(pid) = self.stopped {
            process::go_on(pid);
        }
    }

    /// The process that writes the checkpoint.
    pub(super) fn pid(&self) -> i32 {
        self.tree.pid()
    }
}

/// Starts a program whose output matters only if the program fails.
fn begin(
    words: &[String],
    env: &[(&'static str, String)],
) -> Result<(Tree, ProgramOutput), String> {
    let started = || {
        let said = ProgramOutput::new()?;
        let output = said.output()?;
        Ok((Tree::start(Program { words, env, output })?, said))
    };
    started().map_err(|error: std::io::Error| error.to_string())
}

fn launch(words: &[String], env: &Env, dir: &StateDir) -> Result<Tree, RunFault> {
    let output = dir.outputs()?;
    Tree::start(Program { words, env, output }).map_err(|error| RunFault::Program {
        program: words.first().cloned().unwrap_or_default(),
        problem: format!("cannot be started: {error}"),
        next: "the command stands behind `--`, its program has to be in PATH".to_owned(),
    })
}

fn shell(line: &str) -> Vec<String> {
    ["sh", "-c", line].map(str::to_owned).to_vec()
}

/// The reason of a checkpoint, for the command that writes it.
pub(super) fn reason(why: CheckpointReason) -> &'static str {
    match why {
        CheckpointReason::Planned => "planned",
        CheckpointReason::Notice => "notice",
        CheckpointReason::LastTry => "last-try",
        CheckpointReason::Risk => "risk",
        CheckpointReason::Stop => "stop",
        CheckpointReason::Asked => "asked",
    }
}

/// The default state directory. It depends on the command, so that the same command line finds it
/// again.
pub(super) fn default_dir(command: &[String]) -> PathBuf {
    let name = command.first().map_or("", String::as_str);
    let name = Path::new(name).file_name().unwrap_or_default();
    PathBuf::from(format!("{}.run", name.to_string_lossy()))
}
