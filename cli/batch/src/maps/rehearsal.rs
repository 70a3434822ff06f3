//! Tasks that do not run: each is done once its server was active for as long as it takes.
//!
//! A rehearsal shows what a plan is worth on the servers of a cloud, with the hibernations that
//! come, before there is an image, a Slurm or a bill for more than the servers. Time between two
//! looks counts if the server was active at both.

use super::{TasksSeen, rehearsal_path};
use ebbtide_batch::maps::{AttemptSeen, BagRun, BagWork};
use ebbtide_batch_service::storage;
use ebbtide_burst::{BurstError, PoolServer, Status};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What a rehearsal remembers.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Progress {
    /// The bag: when it began.
    begun: i64,
    /// Time of the last look, and the nodes whose server was active then.
    looked: i64,
    active: BTreeSet<String>,
    /// Active time of attempts by `TASK.NUMBER`, milliseconds.
    ran: BTreeMap<String, i64>,
    /// Tasks that are done, with the number of the attempt.
    done: BTreeMap<usize, u32>,
    /// Attempts that were ended.
    ended: BTreeSet<String>,
}

/// A rehearsal.
#[derive(Debug)]
pub(super) struct Rehearsal<'a> {
    work: &'a BagWork,
    path: PathBuf,
    progress: Progress,
}

impl<'a> Rehearsal<'a> {
    /// Goes on with the rehearsal of the bag that began then, or begins it.
    ///
    /// # Errors
    /// [`BurstError::Storage`].
    pub(super) fn open(work: &'a BagWork, dir: &Path, begun: i64) -> Result<Self, BurstError> {
        let path = rehearsal_path(dir);
        let kept = match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).ok(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(storage("read", &path)(error)),
        };
        let progress = kept.filter(|kept: &Progress| kept.begun == begun);
        Ok(Self {
            work,
            path,
            progress: progress.unwrap_or_else(|| Progress {
                begun,
                ..Progress::default()
            }),
        })
    }

    /// Counts the time since the last look.
    ///
    /// # Errors
    /// [`BurstError::Storage`].
    pub(super) fn look(
        &mut self,
        bag: &BagRun<'_>,
        servers: &[PoolServer],
        now: i64,
    ) -> Result<TasksSeen, BurstError> {
        let runs = |one: &&PoolServer| matches!(one.status, Status::Active | Status::Leaving);
        let active: BTreeSet<String> = servers
            .iter()
            .filter(runs)
            .map(|one| one.node.clone())
            .collect();
        let progress = &mut self.progress;
        let since = (now - progress.looked).max(0);
        let mut seen = TasksSeen {
            ready: active.clone(),
            ..TasksSeen::default()
        };
        let mut changed = active != progress.active;
        for (task, number, vm) in bag.open_attempts() {
            let (key, node) = (format!("{task}.{number}"), self.work.node(vm));
            let there = servers
                .iter()
                .any(|one| one.node == node && !matches!(one.status, Status::Gone | Status::Going));
            if !there {
                progress.ended.insert(key.clone());
            }
            let over = progress.ended.contains(&key);
            if let Some(ran) = progress.ran.get_mut(&key) {
                if active.contains(node) && progress.active.contains(node) && !over {
                    *ran += since;
                    changed = true;
                }
                let length = self.work.lengths[task].saturating_mul(1_000);
                if u64::try_from(*ran).unwrap_or(0) >= length && !over {
                    progress.done.entry(task).or_insert(number);
                    progress.ended.insert(key.clone());
                }
            } else {
                progress.ran.insert(key.clone(), 0);
            }
            let state = if progress.ended.contains(&key) {
                AttemptSeen::Ended { exit: None }
            } else {
                AttemptSeen::Active
            };
            seen.attempts.insert((task, number), state);
        }
        seen.done.clone_from(&progress.done);
        progress.active = active;
        progress.looked = now;
        if changed {
            self.save()?;
        }
        Ok(seen)
    }

    /// Ends an attempt.
    pub(super) fn stop(&mut self, task: usize, number: u32) {
        self.progress.ended.insert(format!("{task}.{number}"));
    }

    fn save(&self) -> Result<(), BurstError> {
        let next = self.path.with_extension("next");
        let text = serde_json::to_string(&self.progress).map_err(std::io::Error::other);
        let text = text.map_err(storage("write", &next))?;
        std::fs::write(&next, text).map_err(storage("write", &next))?;
        std::fs::rename(&next, &self.path).map_err(storage("write", &self.path))
    }
}
