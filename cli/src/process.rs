//! The only module of this crate that starts, ends and waits for other processes.
//!
//! Each process that this module starts leads its own process group, so that it can be ended with
//! all its descendants. Descendants that leave the group are found too: this program adopts the
//! orphans of its descendants ([`adopt`]) and ends them with the rest.

use rustix::process::{Pid, Signal, WaitOptions};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;
use tokio::process::{Child, Command};

/// What to start.
#[derive(Debug)]
pub struct Program<'a> {
    /// Program and arguments.
    pub words: &'a [String],
    /// Environment variables in addition to those of this program.
    pub env: &'a [(&'static str, String)],
    /// Destinations of its output and its errors.
    pub output: (File, File),
}

/// A process with its descendants.
#[derive(Debug)]
pub struct Tree {
    kind: Kind,
    /// The process that is ended, and its descendants with it.
    pid: Pid,
}

#[derive(Debug)]
enum Kind {
    Child(Child),
    /// Another program has started the process, and this one has adopted it.
    Adopted,
}

/// Identifies a process for a later program. The process id alone is not enough, because the kernel
/// reuses ids.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ProcessIdentity {
    /// Its process id.
    pub pid: i32,
    /// Start time, in ticks since the machine booted.
    pub birth: u64,
    /// Which boot of the machine that was.
    pub boot: String,
}

/// Children that this process had before it started any process: a shell that replaced itself by
/// this program may leave some.
static STRANGERS: OnceLock<Vec<i32>> = OnceLock::new();

/// Makes this process the parent of its descendants' orphans. Call it before any process is
/// started.
///
/// # Errors
/// The kernel's.
pub fn adopt() -> io::Result<()> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    STRANGERS.get_or_init(|| children(own).collect());
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

impl Tree {
    /// Starts a program, in a group of its own, with nothing to read.
    ///
    /// # Errors
    /// There is no such program, or it may not be started.
    pub fn start(program: Program<'_>) -> io::Result<Self> {
        let Some((name, arguments)) = program.words.split_first() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let child = Command::new(name)
            .args(arguments)
            .envs(program.env.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(program.output.0)
            .stderr(program.output.1)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        let pid = pid.and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("it ended before it began"))?;
        Ok(Self {
            kind: Kind::Child(child),
            pid,
        })
    }

    /// A process that another program has started and left to us.
    #[must_use]
    pub fn adopted(pid: i32) -> Option<Self> {
        Some(Self {
            kind: Kind::Adopted,
            pid: Pid::from_raw(pid)?,
        })
    }

    /// True if another program has started it.
    #[must_use]
    pub fn is_adopted(&self) -> bool {
        matches!(self.kind, Kind::Adopted)
    }

    /// Its id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Who it is.
    #[must_use]
    pub fn identity(&self) -> Option<ProcessIdentity> {
        identity(self.pid())
    }

    /// Waits for its end. Safe to cancel.
    ///
    /// # Errors
    /// The kernel's.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        match &mut self.kind {
            Kind::Child(child) => child.wait().await,
            Kind::Adopted => loop {
                // The runtime waits for its own children only.
                match rustix::process::waitpid(Some(self.pid), WaitOptions::NOHANG) {
                    Ok(Some((_, status))) => {
                        use std::os::unix::process::ExitStatusExt;
                        return Ok(ExitStatus::from_raw(status.as_raw()));
                    }
                    Ok(None) => tokio::time::sleep(Duration::from_millis(20)).await,
                    Err(error) => return Err(error.into()),
                }
            },
        }
    }

    /// Ends it and all its descendants, and waits until they are gone. `spare` are other processes
    /// that were started here.
    pub async fn kill(self, spare: &[i32]) {
        self.kill_alone().await;
        end_orphans(spare);
    }

    /// As [`Tree::kill`], but leaves orphans of the descendants alone: they cannot be told from
    /// those of other processes.
    pub async fn kill_alone(mut self) {
        for pid in descendants(self.pid()) {
            end(pid);
        }
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        let _ = rustix::process::kill_process(self.pid, Signal::KILL);
        // The exit status is not needed.
        let _ = self.ended().await;
    }
}

/// Ends the remains of ended processes, once this process has [adopted](adopt) them: all children
/// except those in `spare` and those that existed before.
pub fn end_orphans(spare: &[i32]) {
    let strangers = STRANGERS.get().into_iter().flatten();
    let mut known: BTreeSet<i32> = spare.iter().chain(strangers).copied().collect();
    let own = rustix::process::getpid().as_raw_nonzero().get();
    // Ending some may make orphans of others; a tree that is deeper than this has no purpose but to
    // be deep.
    for _ in 0..16 {
        let orphans: Vec<i32> = children(own).filter(|pid| known.insert(*pid)).collect();
        if orphans.is_empty() {
            break;
        }
        for pid in orphans {
            end(pid);
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
            }
        }
    }
}

/// Reaps children that have ended, orphans that this process has [adopted](adopt). It leaves the
/// children in `spare`, for which other code waits.
pub fn reap(spare: &[i32]) {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    for pid in children(own).filter(|pid| !spare.contains(pid)) {
        let ended = stat(pid).is_some_and(|stat| stat.state == 'Z');
        if let Some(pid) = Pid::from_raw(pid).filter(|_| ended) {
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

fn end(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

/// Lets a process and its descendants go on that were stopped.
pub fn go_on(pid: i32) {
    for pid in descendants(pid).into_iter().chain([pid]) {
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = rustix::process::kill_process(pid, Signal::CONT);
        }
    }
}

/// Ends a process of an earlier run, with its descendants, if it is still the same one. True if it
/// was.
pub fn end_left_over(left: &ProcessIdentity) -> bool {
    if identity(left.pid).as_ref() != Some(left) {
        return false;
    }
    for pid in descendants(left.pid) {
        end(pid);
    }
    if let Some(pid) = Pid::from_raw(left.pid) {
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    }
    end(left.pid);
    true
}

fn identity(pid: i32) -> Option<ProcessIdentity> {
    let birth = stat(pid)?.birth;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(ProcessIdentity {
        pid,
        birth,
        boot: boot.trim().to_owned(),
    })
}

/// What is known of a process (proc(5), fields 3, 4 and 22 of stat).
struct Stat {
    /// `Z` for one that has ended and was not waited for.
    state: char,
    parent: i32,
    birth: u64,
}

fn stat(pid: i32) -> Option<Stat> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some(Stat {
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
        birth: fields.nth(17)?.parse().ok()?,
    })
}

fn children(of: i32) -> impl Iterator<Item = i32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(move |pid| stat(*pid).is_some_and(|stat| stat.parent == of))
}

/// The first child of a process, once it has one.
#[must_use]
pub fn child_of(pid: i32) -> Option<i32> {
    children(pid).next()
}

/// All descendants of a process, nearest first.
fn descendants(of: i32) -> Vec<i32> {
    let mut found: Vec<i32> = children(of).collect();
    let mut at = 0;
    while let Some(&next) = found.get(at) {
        at += 1;
        for child in children(next) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
    }
    found
}

/// What a program says, kept in memory: a full disk is one of the things that it may have to say.
#[derive(Debug)]
pub struct ProgramOutput(File);

/// How much of it is looked at, from its end, bytes: who says more says the important thing last.
const SAID: usize = 256 * 1024;

impl ProgramOutput {
    /// Nothing yet.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new() -> io::Result<Self> {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let memory = rustix::fs::memfd_create("said", flags)?;
        Ok(Self(File::from(memory)))
    }

    /// Where output and errors go.
    ///
    /// # Errors
    /// The kernel's.
    pub fn output(&self) -> io::Result<(File, File)> {
        Ok((self.0.try_clone()?, self.0.try_clone()?))
    }

    /// Its last lines, in one.
    #[must_use]
    pub fn last(&self) -> String {
        let mut bytes = vec![0; SAID];
        let whole = self.0.metadata().map_or(0, |meta| meta.len());
        let from = whole.saturating_sub(SAID as u64);
        let length = self.0.read_at(&mut bytes, from).unwrap_or(0);
        let text = String::from_utf8_lossy(bytes.get(..length).unwrap_or_default());
        let lines = text.lines().rev().map(str::trim);
        let mut last: Vec<&str> = lines.filter(|line| !line.is_empty()).take(3).collect();
        last.reverse();
        last.join("; ")
    }
}

/// Waits for a program that is to end well by itself.
///
/// # Errors
/// In words: how it ended, with the end of what it said.
pub async fn run_to_end(tree: &mut Tree, said: &ProgramOutput) -> Result<(), String> {
    let status = tree.ended().await.map_err(|error| error.to_string())?;
    if status.success() {
        return Ok(());
    }
    Err(match said.last().as_str() {
        "" => status.to_string(),
        last => format!("{status}: {last}"),
    })
}

/// Whether a signal ended it that others send to make a process go, as a machine does that is shut
/// down or has no memory left. Signals by which a process fails of itself are not among them.
#[must_use]
pub fn ended_from_outside(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    let others = [Signal::HUP, Signal::INT, Signal::KILL, Signal::TERM];
    let others = others.map(Signal::as_raw);
    status
        .signal()
        .is_some_and(|signal| others.contains(&signal))
}

/// The exit code as shells have it: 128 and the signal for a process that a signal ended.
#[must_use]
pub fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255)
}

/// Where a program is that a shell would start by this name.
#[must_use]
pub fn find(name: &str) -> Option<std::path::PathBuf> {
    if name.contains('/') {
        return Path::new(name).is_file().then(|| name.into());
    }
    let path = std::env::var_os("PATH")?;
    // An ordinary user's PATH lacks the folders of the system's programs.
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}
