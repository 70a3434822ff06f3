//! Signals for a process and all its descendants, whatever process group or session they are in.
//!
//! A process group is not enough: each backend of PostgreSQL and each port program of Erlang is a
//! session of its own, and a PostgreSQL backend that outlives its postmaster by a moment keeps the
//! next one from starting. Descendants that have lost their parent before the look cannot be found;
//! the servers here leave none (they end when their parent does).

use ebbtide_runtime::clock::Deadline;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Stops `root` and all its descendants with SIGSTOP and returns them, parents before children.
///
/// A stopped parent neither makes more children nor collects ended ones, so the process ids found
/// below it stay theirs. It is repeated until a look finds nothing new: then all are stopped.
pub(super) fn freeze(root: Pid) -> Vec<Pid> {
    let mut frozen = vec![root];
    let mut known: HashSet<Pid> = frozen.iter().copied().collect();
    let _ = rustix::process::kill_process(root, Signal::STOP);
    loop {
        let children = children_by_parent();
        let before = frozen.len();
        let mut next = 0;
        while next < frozen.len() {
            for &child in children.get(&frozen[next]).into_iter().flatten() {
                if known.insert(child) {
                    let _ = rustix::process::kill_process(child, Signal::STOP);
                    frozen.push(child);
                }
            }
            next += 1;
        }
        if frozen.len() == before {
            return frozen;
        }
    }
}

/// The end of [`freeze`]: children first, so that a parent does not meet stopped children.
pub(super) fn thaw(root: Pid) {
    // Looking again instead of remembering: SIGCONT does no harm to a process that was not stopped.
    for pid in freeze(root).into_iter().rev() {
        let _ = rustix::process::kill_process(pid, Signal::CONT);
    }
}

/// Kills `root` and all its descendants and waits at most `deadline` until all of them have ended.
pub(super) fn kill(root: Pid, deadline: Duration) {
    let deadline = Deadline::after(deadline);
    let doomed = freeze(root);
    // Opened while their ids are surely theirs.
    let handles: Vec<OwnedFd> = doomed
        .iter()
        .filter_map(|pid| rustix::process::pidfd_open(*pid, PidfdFlags::empty()).ok())
        .collect();
    for pid in doomed {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    for handle in &handles {
        loop {
            let left = deadline.remaining();
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            // Readable when the process has ended, collected or not (pidfd_open(2)).
            let mut polled = [PollFd::new(handle, PollFlags::IN)];
            match rustix::event::poll(&mut polled, Some(&timeout)) {
                Err(rustix::io::Errno::INTR) => {}
                _ => break,
            }
        }
    }
}

/// All processes of the machine, by parent.
fn children_by_parent() -> HashMap<Pid, Vec<Pid>> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
            .and_then(Pid::from_raw);
        let Some(pid) = pid else { continue };
        // A process that ends between the two looks has no file any more.
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        if let Some(parent) = parent_of(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

/// The parent's id from the text of /proc/PID/stat: `pid (name) state parent …`, where the name may
/// hold anything.
fn parent_of(stat: &str) -> Option<Pid> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let parent = after_name.split_ascii_whitespace().nth(1)?;
    Pid::from_raw(parent.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strange_program_name_does_not_hide_its_parent() {
        let parent = parent_of("42 (a) S 1 (b) S 7 42 42 0").unwrap();
        assert_eq!(parent.as_raw_nonzero().get(), 7);
        assert_eq!(parent_of("42 (kthreadd) S 0 0 0"), None);
    }
}
