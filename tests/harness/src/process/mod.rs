//! A child process that cannot outlive its owner.
//!
//! What holds:
//! - The process and all its descendants end when the [`Process`] is dropped, when
//!   [`Process::kill`] is called, and when the owner's process dies in whatever way.
//! - Signals never hit a stranger: the process id stays reserved until the exit status is
//!   collected, and collecting it and sending signals exclude each other.
//! - A wait ends with the event, with the exit of the process, or with its deadline; never with a
//!   hang.

mod command;
mod log;
mod tree;

pub use command::ProcessCommand;

use crate::error::{Error, Result};
use ebbtide_runtime::clock::Deadline;
use log::Log;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long the kernel may take to end a process after SIGKILL. Reached only when a process hangs
/// in the kernel (a dead network file system, for instance); then it is better to go on than to
/// hang as well.
const KILL_DEADLINE: Duration = Duration::from_secs(10);

/// What can be sent to a [`Process`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM, to the process itself: please end.
    Term,
    /// SIGINT, to the process itself: what Ctrl-C sends; PostgreSQL's "fast shutdown".
    Int,
    /// SIGHUP, to the process itself: re-read the configuration, or the terminal is gone.
    Hup,
    /// SIGKILL, to the process and all its descendants.
    Kill,
    /// SIGSTOP, to the process and all its descendants: it hangs, its connections stay open.
    Stop,
    /// SIGCONT, to the process and all its descendants: the end of a SIGSTOP.
    Cont,
}

/// A running (or ended) child process; made by [`ProcessCommand::spawn`].
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: Pid,
    log: Log,
    life: Arc<Life>,
}

/// What the owner and the thread that watches over the process share.
#[derive(Debug)]
struct Life {
    /// `None` while it runs. The lock is held while the status is collected and while signals are
    /// sent: see the module comment.
    ended: Mutex<Option<ExitStatus>>,
    /// For those who wait without a runtime (Drop).
    ended_changed: Condvar,
    /// For those who wait with one.
    announced: watch::Sender<Option<ExitStatus>>,
}

impl Life {
    fn lock(&self) -> MutexGuard<'_, Option<ExitStatus>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process {
    /// Starts `command` and returns when it is created (not: when it is ready).
    fn spawn(
        name: String,
        mut command: std::process::Command,
        log: Log,
        kill_group: bool,
    ) -> Result<Self> {
        let life = Arc::new(Life {
            ended: Mutex::new(None),
            ended_changed: Condvar::new(),
            announced: watch::Sender::new(None),
        });
        let (tell, told) = std::sync::mpsc::channel();
        let guardian = {
            let life = Arc::clone(&life);
            move || {
                // The kernel sends the "parent death signal" when the *thread* that created the
                // child ends. So the thread that creates it is the one that stays until the child
                // has ended, and never a thread of a pool.
                let spawned = command.spawn();
                // Closes our copies of the log pipe's writing end, so that the log ends when the
                // child's copies are closed.
                drop(command);
                match spawned {
                    Ok(child) => {
                        let told = tell.send(Ok(child.id()));
                        if told.is_ok() {
                            watch_over(child, &life, kill_group);
                        }
                    }
                    Err(error) => drop(tell.send(Err(error))),
                }
            }
        };
        let failed = |source| Error::Spawn {
            name: name.clone(),
            source,
        };
        std::thread::Builder::new()
            .name(format!("guardian of {name}"))
            .spawn(guardian)
            .map_err(failed)?;
        let pid = told
            .recv()
            .map_err(|_| failed(std::io::Error::other("the guardian thread ended")))?
            .map_err(failed)?;
        let pid = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| failed(std::io::Error::other("impossible process id")))?;
        tracing::debug!(name, pid = pid.as_raw_nonzero().get(), "started");
        Ok(Self {
            name,
            pid,
            log,
            life,
        })
    }

    /// Its name for people, as given to [`ProcessCommand::new`].
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id. It stays the same through `exec`, and reserved until the process is
    /// collected.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// The file with its standard output and standard error, if these are captured.
    #[must_use]
    pub fn log_path(&self) -> Option<&Path> {
        self.log.path()
    }

    /// The last lines of its log, for messages.
    #[must_use]
    pub fn log_tail(&self) -> String {
        self.log.tail()
    }

    /// How it ended; `None` while it runs.
    #[must_use]
    pub fn exit_status(&self) -> Option<ExitStatus> {
        *self.life.lock()
    }

    /// Sends a signal. To whom it goes: see [`Signal`].
    ///
    /// # Errors
    ///
    /// [`Error::NotRunning`] when it has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let ended = self.life.lock();
        if let Some(status) = *ended {
            return Err(Error::NotRunning {
                name: self.name.clone(),
                status: status.to_string(),
            });
        }
        let one = |signal| match rustix::process::kill_process(self.pid, signal) {
            // It has ended but is not yet collected: as good as delivered.
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(Error::Spawn {
                name: format!("a signal to {}", self.name),
                source: error.into(),
            }),
        };
        match signal {
            Signal::Term => one(rustix::process::Signal::TERM),
            Signal::Int => one(rustix::process::Signal::INT),
            Signal::Hup => one(rustix::process::Signal::HUP),
            Signal::Kill => {
                tree::kill(self.pid, KILL_DEADLINE);
                Ok(())
            }
            Signal::Stop => {
                tree::freeze(self.pid);
                Ok(())
            }
            Signal::Cont => {
                tree::thaw(self.pid);
                Ok(())
            }
        }
    }

    /// Ends it and all its descendants with SIGKILL and waits until they are gone (milliseconds).
    /// Does nothing when it has ended already.
    pub fn kill(&self) {
        if self.signal(Signal::Kill).is_err() {
            return;
        }
        let ended = self.life.lock();
        let waited = self
            .life
            .ended_changed
            .wait_timeout_while(ended, KILL_DEADLINE, |ended| ended.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        if waited.1.timed_out() {
            tracing::warn!(name = self.name, pid = self.pid(), "survives SIGKILL");
        }
    }

    /// Waits until it has ended and all that it printed is in its log.
    ///
    /// # Errors
    ///
    /// [`Error::TooSlow`] after `deadline`; the process then still runs.
    pub async fn wait_exit(&self, deadline: Duration) -> Result<ExitStatus> {
        // The status decides, not the timer: it may have ended in the last moment.
        let _ = tokio::time::timeout(deadline, self.ended()).await;
        let Some(status) = self.exit_status() else {
            return Err(Error::TooSlow {
                name: self.name.clone(),
                wanted: "its end".to_owned(),
                deadline,
                tail: self.log_tail(),
            });
        };
        self.log.drained().await;
        Ok(status)
    }

    /// Waits for as long as it runs.
    pub async fn ended(&self) {
        let mut announced = self.life.announced.subscribe();
        // An error would mean that the sender is gone, but `self` holds it.
        let _ = announced.wait_for(Option::is_some).await;
    }

    /// Sends SIGTERM (or `signal`), waits for the end, and kills what is left after `deadline`.
    ///
    /// # Errors
    ///
    /// [`Error::TooSlow`] when it had to be killed.
    pub async fn stop(&self, signal: Signal, deadline: Duration) -> Result<()> {
        if self.signal(signal).is_err() {
            return Ok(());
        }
        let ended = self.wait_exit(deadline).await.map(drop);
        self.kill();
        ended
    }

    /// Waits until a line of its output contains `text`, and returns that line. Lines written
    /// before the call count.
    ///
    /// # Errors
    ///
    /// [`Error::Exited`] when it ends without such a line, [`Error::TooSlow`] after `deadline`;
    /// both with the end of the log. [`Error::Io`] when its output is not captured or the log
    /// cannot be read.
    pub async fn wait_for_line(&self, text: &str, deadline: Duration) -> Result<String> {
        self.wait_for_any(&[text], deadline).await
    }

    /// The same with several texts, of which the first one is the hoped-for.
    pub(crate) async fn wait_for_any(&self, texts: &[&str], deadline: Duration) -> Result<String> {
        let deadline = Deadline::after(deadline);
        let wanted = || format!("a line with `{}`", texts.first().unwrap_or(&""));
        let mut scan = self.log.scan()?;
        let mut announced = self.life.announced.subscribe();
        loop {
            // Read before the scan: what is written after the scan then wakes the wait below.
            let ended = announced.borrow_and_update().is_some();
            if ended {
                // What it wrote last may still be on its way through the pipe.
                self.log.drained().await;
            }
            if let Some(line) = scan.find(texts)? {
                return Ok(line);
            }
            if ended {
                return Err(Error::Exited {
                    name: self.name.clone(),
                    status: self
                        .exit_status()
                        .map_or_else(|| "unknown status".to_owned(), |status| status.to_string()),
                    wanted: wanted(),
                    tail: self.log_tail(),
                });
            }
            let more = async {
                tokio::select! {
                    () = scan.more() => {}
                    _ = announced.changed() => {}
                }
            };
            if tokio::time::timeout(deadline.remaining(), more)
                .await
                .is_err()
            {
                return Err(Error::TooSlow {
                    name: self.name.clone(),
                    wanted: wanted(),
                    deadline: deadline.whole(),
                    tail: self.log_tail(),
                });
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits for the end of `child`, ends what it left in its process group, and tells everybody.
fn watch_over(mut child: Child, life: &Life, kill_group: bool) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // NOWAIT leaves it a zombie, which keeps its process id from being given to another
        // process.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(Errno::INTR) = rustix::process::waitid(WaitId::Pid(pid), options) {}
    }
    let mut ended = life.lock();
    if let (Some(pid), true) = (pid, kill_group) {
        // The group's number is reserved too, as long as its leader is a zombie.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    // Fails only if another thread has already collected the child. The process has ended in any
    // case.
    *ended = Some(child.wait().unwrap_or_default());
    life.announced.send_replace(*ended);
    life.ended_changed.notify_all();
}

/// A path for messages when there is none.
fn no_log() -> PathBuf {
    PathBuf::from("(output is not captured)")
}

#[cfg(test)]
mod tests;
