//! Tasks as jobs of Slurm, each bound to the node of its server, and the nodes that they need.
//!
//! A node is powered up by slurmctld, whose program creates the server, and down when the plan does
//! not want it any more. A node whose server is frozen is left alone: slurmctld has to be told
//! (`SlurmdTimeout`) not to give it up.

use super::TasksSeen;
use crate::service::marks::{names, number, result};
use crate::service::start::submit;
use ebbtide_batch::maps::{AttemptSeen, BagRun, BagWork};
use ebbtide_batch::script::{ScriptOptions, mark_path};
use ebbtide_batch::{BatchSettings, WorkId, job_name};
use ebbtide_batch_service::faults::log;
use ebbtide_batch_service::storage;
use ebbtide_burst::slurm::{Node, SlurmJob};
use ebbtide_burst::{BurstError, PoolServer, Status};
use ebbtide_runtime::clock::unix_millis;
use ebbtide_slurm::Slurm;
use std::collections::{BTreeMap, BTreeSet};

/// Repeat interval of a change of a node without visible effect, milliseconds.
const AGAIN_MS: i64 = 5_000;
/// What the reasons of our programs' drains begin with.
const OURS: &str = "ebbtide-burst";

/// The jobs of a bag and their nodes.
pub(super) struct SlurmTasks<'a> {
    settings: &'a BatchSettings,
    slurm: &'a Slurm,
    work: &'a BagWork,
    /// In the names of jobs: when the bag began.
    id: WorkId,
    /// Nodes that are to be powered up as soon as Slurm has them off.
    wanted: BTreeSet<String>,
    /// Slurm's numbers of attempts.
    jobs: BTreeMap<(usize, u32), u32>,
    /// When a node was last changed how.
    sent: BTreeMap<(String, &'static str), i64>,
}

impl<'a> SlurmTasks<'a> {
    /// The jobs of a bag that began then.
    ///
    /// # Errors
    /// [`BurstError::Storage`] if its directory cannot be used.
    pub(super) fn new(
        settings: &'a BatchSettings,
        slurm: &'a Slurm,
        work: &'a BagWork,
        begun: i64,
    ) -> Result<Self, BurstError> {
        names(&work.work).map_err(storage("use", &work.work.dir))?;
        Ok(Self {
            settings,
            slurm,
            work,
            id: begun.unsigned_abs(),
            wanted: BTreeSet::new(),
            jobs: BTreeMap::new(),
            sent: BTreeMap::new(),
        })
    }

    /// Looks at nodes, jobs and marks, and sees to the nodes.
    ///
    /// # Errors
    /// Slurm's; [`BurstError::Storage`] if the bag's directory cannot be read.
    pub(super) async fn look(
        &mut self,
        bag: &BagRun<'_>,
        servers: &[PoolServer],
    ) -> Result<TasksSeen, BurstError> {
        let nodes = self.slurm.nodes().await?;
        let jobs = self.slurm.jobs().await?;
        let mut seen = TasksSeen::default();
        self.tend(bag, servers, &nodes, &mut seen).await?;
        let work = &self.work.work;
        let marks = names(work).map_err(storage("use", &work.dir))?;
        for member in work.members() {
            if marks.contains(&work.member_name(member))
                && let Some(by) = number(&mark_path(work, member))
            {
                seen.done.insert(member.index, by);
            }
        }
        self.jobs.clear();
        for (task, attempt, _) in bag.open_attempts() {
            let name = job_name(self.id, BagWork::member(task), attempt);
            let own = jobs.iter().filter(|job| job.name == name);
            let state = self.attempt(task, attempt, own.max_by_key(|job| job.id));
            seen.attempts.insert((task, attempt), state);
        }
        Ok(seen)
    }

    fn attempt(&mut self, task: usize, number: u32, job: Option<&SlurmJob>) -> AttemptSeen {
        let exit = || result(&self.work.work, BagWork::member(task), number).exit;
        match job {
            Some(job) if !job.is_over() => {
                self.jobs.insert((task, number), job.id);
                AttemptSeen::Active
            }
            Some(_) => AttemptSeen::Ended { exit: exit() },
            // Slurm forgets jobs some minutes after their end.
            None => match exit() {
                Some(code) => AttemptSeen::Ended { exit: Some(code) },
                None => AttemptSeen::Unknown,
            },
        }
    }

    /// Powers nodes up and down, and opens them.
    async fn tend(
        &mut self,
        bag: &BagRun<'_>,
        servers: &[PoolServer],
        nodes: &[Node],
        seen: &mut TasksSeen,
    ) -> Result<(), BurstError> {
        let work = self.work;
        for (vm, name) in work.nodes() {
            let Some(node) = nodes.iter().find(|node| node.name == name) else {
                let problem = format!(
                    "node {name} is not there; it needs a NodeName line with State=CLOUD, and PrivateData=cloud"
                );
                return Err(BurstError::Cluster { problem });
            };
            let off = node.is_off() || node.is_stopping();
            let there = servers
                .iter()
                .any(|one| one.node == name && !matches!(one.status, Status::Gone | Status::Going));
            if !bag.wants(vm) {
                self.wanted.remove(name);
                if !off {
                    self.change(name, "state=power_down_force").await?;
                }
            } else if node.is_off() && !node.is_stopping() && !node.is_down() {
                if self.wanted.remove(name) {
                    self.change(name, "state=power_up").await?;
                }
            } else if !there && !off && (node.is_down() || node.is_up()) {
                // A server that is gone, or that the cloud did not give: off, then on again.
                self.change(name, "state=power_down_force").await?;
            } else if node.is_up() && node.is_drained() && node.reason.starts_with(OURS) {
                self.change(name, "state=undrain").await?;
            }
            if node.in_service() {
                seen.ready.insert(name.to_owned());
            }
        }
        Ok(())
    }

    async fn change(&mut self, node: &str, change: &'static str) -> Result<(), BurstError> {
        let (key, now) = ((node.to_owned(), change), unix_millis());
        let sent = self.sent.get(&key).copied();
        if sent.is_some_and(|at| (at..at + AGAIN_MS).contains(&now)) {
            return Ok(());
        }
        self.slurm.node(node, &[change]).await?;
        log(&format!("{node}: {change}"));
        self.sent.insert(key, now);
        Ok(())
    }

    /// Has a node powered up as soon as Slurm has it off.
    pub(super) fn power_up(&mut self, node: &str) {
        self.wanted.insert(node.to_owned());
    }

    /// Submits an attempt.
    ///
    /// # Errors
    /// [`BurstError::Silent`] if Slurm refuses, [`BurstError::Storage`].
    pub(super) async fn start(
        &self,
        task: usize,
        number: u32,
        node: &str,
    ) -> Result<(), BurstError> {
        let mut nodes = self.work.nodes();
        let vm = nodes.find(|(_, name)| *name == node).map(|(vm, _)| vm);
        let Some(server_type) = vm.and_then(|vm| self.work.server_type(vm)) else {
            return Ok(());
        };
        let options = ScriptOptions {
            attempt: number,
            server_type,
            age: 0,
            length: 0,
            ebbtide: &self.settings.slurm.ebbtide,
        };
        let memory_mb = self.work.bag.tasks()[task].memory_mb;
        let (member, work) = (BagWork::member(task), (self.id, &self.work.work));
        let (settings, slurm) = (self.settings, self.slurm);
        submit(settings, slurm, work, member, node, memory_mb, options).await
    }

    /// Ends an attempt.
    ///
    /// # Errors
    /// [`BurstError::Silent`] if Slurm refuses.
    pub(super) async fn stop(&self, task: usize, number: u32) -> Result<(), BurstError> {
        match self.jobs.get(&(task, number)) {
            Some(job) => self
                .slurm
                .run("scancel", &[&job.to_string()])
                .await
                .map(drop),
            None => Ok(()),
        }
    }
}
