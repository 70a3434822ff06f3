//! A Slurm that there is not: nothing runs on the servers, and a task is done once its server was
//! active for as long as the task takes.
//!
//! A rehearsal shows what a plan is worth on the servers of a cloud, with the hibernations that
//! come, before there is an image, a Slurm or a bill for more than the servers. Time between two
//! looks counts if the server was active at both.

use crate::service::marks::Marks;
use ebbtide_batch::{Attempt, BatchAction, Book, MemberId, WorkId, job_name};
use ebbtide_batch_service::pool::within;
use ebbtide_batch_service::storage;
use ebbtide_burst::slurm::{BaseState, JobState, Node, SlurmJob};
use ebbtide_burst::{BurstAction, BurstError, PoolServer, Status};
use ebbtide_server_pool::ServerPool;
use ebbtide_shell::errors::CliError;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The name of its file in the state directory.
const FILE: &str = "rehearsal.json";

/// What a rehearsal remembers.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Progress {
    /// Time of the last look, and the nodes whose server was active then.
    looked: i64,
    active: BTreeSet<String>,
    /// Active time of attempts by the name of their job, milliseconds.
    ran: BTreeMap<String, i64>,
    /// Attempts whose task is done.
    done: BTreeSet<String>,
    /// Attempts that were ended, also because their server is gone.
    ended: BTreeSet<String>,
}

#[derive(Debug)]
pub(crate) struct Rehearsal {
    path: PathBuf,
    progress: Progress,
    /// Nodes that take no jobs.
    drained: BTreeSet<String>,
    /// The numbers of jobs, by their names.
    numbers: BTreeMap<String, u32>,
}

impl Rehearsal {
    /// Goes on with what stands in the state directory.
    ///
    /// # Errors
    /// [`BurstError::Storage`].
    pub(crate) fn open(dir: &Path) -> Result<Self, BurstError> {
        let path = dir.join(FILE);
        let progress = match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map_err(std::io::Error::other),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Progress::default()),
            Err(error) => Err(error),
        };
        Ok(Self {
            progress: progress.map_err(storage("read", &path))?,
            path,
            drained: BTreeSet::new(),
            numbers: BTreeMap::new(),
        })
    }

    /// Counts the time since the last look; the nodes and jobs that Slurm would show, and marks.
    ///
    /// # Errors
    /// [`BurstError::Storage`].
    pub(crate) fn look(
        &mut self,
        book: &Book,
        nodes: &[String],
        servers: &[PoolServer],
        now: i64,
        marks: &mut Marks,
    ) -> Result<(Vec<Node>, Vec<SlurmJob>), BurstError> {
        let with = |which: fn(Status) -> bool| -> BTreeSet<String> {
            let own = servers.iter().filter(|one| which(one.status));
            own.map(|one| one.node.clone()).collect()
        };
        let active = with(|one| matches!(one, Status::Active | Status::Leaving));
        let there = with(|one| !matches!(one, Status::Gone | Status::Going));
        let since = (now - self.progress.looked).max(0);
        let mut jobs = Vec::new();
        let mut open = BTreeSet::new();
        for (id, member, name, attempt, length) in attempts(book) {
            let (node, since_ms) = (attempt.node.as_str(), attempt.started);
            self.count(&name, node, since, length, &active, &there);
            if self.progress.done.contains(&name) {
                marks.learn_one(id, member.0, member.1);
            }
            jobs.push(self.job(&name, node, since_ms, there.contains(node)));
            open.insert(name);
        }
        let progress = &mut self.progress;
        progress.ran.retain(|name, _| open.contains(name));
        progress.done.retain(|name| open.contains(name));
        progress.ended.retain(|name| open.contains(name));
        progress.active.clone_from(&active);
        progress.looked = now;
        self.numbers.retain(|name, _| open.contains(name));
        if !open.is_empty() {
            self.save()?;
        }
        let nodes = nodes.iter().map(|name| self.node(name, &active, &there));
        Ok((nodes.collect(), jobs))
    }

    fn count(
        &mut self,
        name: &str,
        node: &str,
        since: i64,
        length: i64,
        active: &BTreeSet<String>,
        there: &BTreeSet<String>,
    ) {
        let progress = &mut self.progress;
        if !there.contains(node) {
            progress.ended.insert(name.to_owned());
        }
        if progress.ended.contains(name) {
            return;
        }
        let Some(ran) = progress.ran.get_mut(name) else {
            progress.ran.insert(name.to_owned(), 0);
            return;
        };
        if active.contains(node) && progress.active.contains(node) {
            *ran += since;
        }
        if *ran >= length {
            progress.done.insert(name.to_owned());
            progress.ended.insert(name.to_owned());
        }
    }

    /// The job of an attempt.
    fn job(&mut self, name: &str, node: &str, start_ms: i64, there: bool) -> SlurmJob {
        let next = self.numbers.values().max().map_or(1, |last| last + 1);
        let id = *self.numbers.entry(name.to_owned()).or_insert(next);
        let (state, word) = if self.progress.done.contains(name) {
            (JobState::Completed, "COMPLETED")
        } else if self.progress.ended.contains(name) {
            let word = if there { "CANCELLED" } else { "NODE_FAIL" };
            (JobState::Ended, word)
        } else {
            (JobState::Running, "RUNNING")
        };
        SlurmJob {
            state,
            state_word: word.to_owned(),
            nodes: vec![node.to_owned()],
            start_ms,
            ..SlurmJob::waiting(id, name)
        }
    }

    /// A node: on if its server is active.
    fn node(&self, name: &str, active: &BTreeSet<String>, there: &BTreeSet<String>) -> Node {
        let mut flags = BTreeSet::from(["CLOUD".to_owned()]);
        if !active.contains(name) {
            let word = if there.contains(name) {
                "POWERING_UP"
            } else {
                "POWERED_DOWN"
            };
            flags.insert(word.to_owned());
        }
        if self.drained.contains(name) {
            flags.insert("DRAIN".to_owned());
        }
        Node {
            name: name.to_owned(),
            base: BaseState::Idle,
            flags,
            cpus: 1,
            features: Vec::new(),
            weight: 0,
            comment: String::new(),
            reason: ebbtide_burst::RESTING.to_owned(),
            partitions: Vec::new(),
        }
    }

    /// Carries out what Slurm would, and creates and deletes servers. One action that fails does
    /// not keep the others from being tried.
    ///
    /// # Errors
    /// The first of the cloud.
    pub(crate) async fn act(
        &mut self,
        cloud: &ServerPool,
        servers: &[PoolServer],
        nodes: &[BurstAction],
        jobs: &[BatchAction],
    ) -> Result<(), CliError> {
        for action in jobs {
            let (BatchAction::Stop { job } | BatchAction::Save { job }) = action else {
                continue;
            };
            let named = self.numbers.iter().find(|(_, number)| *number == job);
            self.progress
                .ended
                .extend(named.map(|(name, _)| name.clone()));
        }
        let mut first = Ok(());
        for action in nodes {
            let done = match action {
                BurstAction::PowerUp { node } => within(cloud.create(node)).await.map(drop),
                BurstAction::PowerDown { node } => {
                    self.drained.remove(node);
                    Ok(())
                }
                BurstAction::Drain { node, .. } | BurstAction::Rest { node } => {
                    self.drained.insert(node.clone());
                    Ok(())
                }
                BurstAction::Open { node } => {
                    self.drained.remove(node);
                    Ok(())
                }
                _ => Ok(()),
            };
            first = first.and(done);
        }
        // Slurm's program gives back what a node has that is powered down.
        let given_back = servers.iter().filter(|one| {
            let ends = |action: &BurstAction| match action {
                BurstAction::PowerDown { node } => one.node == *node,
                BurstAction::Delete { instance } => one.id == *instance,
                _ => false,
            };
            !matches!(one.status, Status::Gone | Status::Going) && nodes.iter().any(ends)
        });
        for one in given_back {
            first = first.and(within(cloud.give_back(one)).await);
        }
        first
    }

    fn save(&self) -> Result<(), BurstError> {
        let next = self.path.with_extension("next");
        let text = serde_json::to_string(&self.progress).map_err(std::io::Error::other);
        let text = text.map_err(storage("write", &next))?;
        std::fs::write(&next, text).map_err(storage("write", &next))?;
        std::fs::rename(&next, &self.path).map_err(storage("write", &self.path))
    }
}

/// The open attempts of bags by maps: the work, the member with the attempt's number, the name of
/// the job, the attempt, and how long the task takes, milliseconds.
fn attempts(book: &Book) -> impl Iterator<Item = (WorkId, (MemberId, u32), String, &Attempt, i64)> {
    let bags = book.works.iter();
    let bags = bags.filter_map(|(id, one)| Some((*id, one, one.bag.as_ref()?)));
    bags.flat_map(|(id, one, bag)| {
        one.running().map(move |(member, attempt)| {
            let length = bag.work.lengths[member.index].saturating_mul(1_000);
            let length = i64::try_from(length).unwrap_or(i64::MAX);
            let name = job_name(id, member, attempt.number);
            let of = (member, attempt.number);
            (id, of, name, attempt, length)
        })
    })
}
