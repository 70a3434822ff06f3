//! Short tasks in one queue for all servers, as a batch system such as Slurm has it.
//!
//! Each task has a place in the order of arrival. A server that is free takes the first task;
//! of several servers that are free those on demand come first. A task that is lost with its server
//! returns to its place, or, with [`Recovery::RequeueLast`], goes to the end.
//!
//! *Why this needs no copies.* Let each task have a copy for on-demand servers in the same order,
//! which sleeps while the task runs and is dropped when it has ended. A task that waits is the
//! first one for any free server exactly if its copy is, so whether a server takes the task or the
//! copy makes no difference; and a copy that wakes up is where the task returns to. By induction
//! over the events both give the same schedule. `tests/recovery.rs` compares them on small queues.

use super::pool::ServerPool;
use super::server::{Admission, ShortTask};
use super::setup::Recovery;
use super::watch::ServerRole;
use super::world::ClusterSimulation;
use std::collections::BTreeMap;

/// The queue, and the servers that wait for a task.
#[derive(Debug)]
pub(crate) struct SharedQueue {
    /// By their places: job and task.
    tasks: BTreeMap<u64, (u32, ShortTask)>,
    next: u64,
    /// For short jobs only, general, transient: which to use first.
    idle: [ServerPool; 3],
}

impl SharedQueue {
    /// For a cluster whose first `general` of `on_demand` servers run long tasks, too; all are
    /// idle.
    pub(crate) fn new(general: u32, on_demand: u32) -> Self {
        Self {
            tasks: BTreeMap::new(),
            next: 0,
            idle: [
                ServerPool::of(general..on_demand),
                ServerPool::of(0..general),
                ServerPool::default(),
            ],
        }
    }

    fn put(&mut self, job: u32, task: ShortTask) {
        self.tasks.insert(task.place, (job, task));
    }

    fn place(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn free_server(&self) -> Option<u32> {
        self.idle.iter().find_map(|pool| pool.get(0))
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self, job: u32) -> u32 {
        self.tasks.values().filter(|(one, _)| *one == job).count() as u32
    }

    #[cfg(test)]
    pub(crate) fn is_stuck(&self) -> bool {
        !self.tasks.is_empty() && self.free_server().is_some()
    }
}

impl ClusterSimulation<'_> {
    /// The tasks of a job that has come.
    pub(super) fn enqueue(&mut self, job: u32) {
        let progress = self.jobs.get_mut(job as usize);
        let tasks = progress.map(|progress| std::mem::take(&mut progress.left));
        if let Some(shared) = &mut self.shared {
            for task in tasks.into_iter().flatten().rev() {
                let place = shared.place();
                shared.put(job, ShortTask { place, ..task });
            }
        }
        self.hand_out();
    }

    /// A task that was lost.
    pub(super) fn put_back(&mut self, job: u32, mut task: ShortTask) {
        if let Some(shared) = &mut self.shared {
            if self.setup.cluster.recovery == Recovery::RequeueLast {
                task.place = shared.place();
            }
            shared.put(job, task);
        }
        self.hand_out();
    }

    /// Begins tasks on idle servers, as long as there are both.
    fn hand_out(&mut self) {
        while let Some(shared) = &self.shared
            && !shared.tasks.is_empty()
            && let Some(server) = shared.free_server()
            && self.take_shared(server)
        {}
    }

    /// A server without a task takes the first one; false if there is none for it, and then it
    /// waits, if it may run one.
    pub(super) fn take_shared(&mut self, number: u32) -> bool {
        let Some(server) = self.servers.get(number as usize) else {
            return false;
        };
        let place = server.place;
        if server.standing != Admission::Open || self.has_long(number) {
            return false;
        }
        let Some(shared) = &mut self.shared else {
            return false;
        };
        let Some((_, (job, task))) = shared.tasks.pop_first() else {
            let [reserved, general, transient] = &mut shared.idle;
            match place {
                ServerRole::ShortOnly => reserved.insert(number),
                ServerRole::General => general.insert(number),
                ServerRole::Transient => transient.insert(number),
            }
            return false;
        };
        let began_us = self.now_us + self.setup.cluster.network_us;
        self.begin_task(number, place, job, task, began_us);
        true
    }

    /// A server has got a task, or is not to get one.
    pub(super) fn no_longer_idle(&mut self, number: u32) {
        if let Some(shared) = &mut self.shared {
            shared.idle.iter_mut().for_each(|pool| pool.remove(number));
        }
    }
}
