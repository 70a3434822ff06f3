//! Short jobs: probes to servers, a task for each probe whose turn comes (Eagle, sections 3 and 4).
//!
//! Two probes a task go to random servers. Servers with long tasks reject them and answer with what
//! they know of the others (succinct state sharing), so the second round goes to servers without,
//! and the third to the partition for short jobs only. A server whose task is done asks the same
//! job for another one (sticky batch probing).
//!
//! With an elastic partition, as many probes as the job has tasks go to on-demand servers only: its
//! *copies*. A copy whose turn comes when all tasks have begun is parked as long as a task runs on
//! a transient server that has no other one, and wakes up if that server is interrupted. With
//! [`Recovery::Resend`] there are no copies: what was lost, and the probes that waited there, are
//! sent to other servers.

use super::event::{QueuedEvent, SentProbe};
use super::queue::{Probe, ShortQueue};
use super::server::{Activity, Admission, ShortTask};
use super::setup::Recovery;
use super::watch::{ServerRole, WatchEvent};
use super::world::ClusterSimulation;
use crate::error::ElasticError;
use rand::RngExt;

/// The round in which probes go to servers without long tasks.
const INFORMED: u8 = 2;
/// The round in which they go to the partition for short jobs only.
const RESERVED: u8 = 3;

impl ClusterSimulation<'_> {
    /// Sends the first probes of a job.
    pub(super) fn send_probes(&mut self, job: u32) {
        let Some(progress) = self.jobs.get_mut(job as usize) else {
            return;
        };
        let cluster = &self.setup.cluster;
        let tasks = progress.left.len() as u32;
        let copies = match cluster.recovery {
            Recovery::Copies => tasks,
            _ => 0,
        };
        progress.copies = copies;
        let probes = tasks
            .saturating_mul(cluster.probe_ratio)
            .max(cluster.min_probes);
        let at_us = self.now_us + cluster.network_us;
        let sent = (0..probes)
            .map(|number| self.aim(number < copies, 1))
            .collect();
        let round = 1;
        self.agenda
            .put(at_us, QueuedEvent::Probes { job, round, sent });
    }

    /// A random server for a probe of this round.
    fn aim(&mut self, copy: bool, round: u8) -> SentProbe {
        let general = self.setup.general();
        let short_only = self.setup.short_on_demand();
        let transients = if copy { 0 } else { self.transients.len() };
        // Where a partition for short jobs is empty (p = 1, and nothing has come up), all servers
        // are as good.
        let among = match round {
            1 => general,
            INFORMED => self.clean.len(),
            _ if short_only + transients > 0 => 0,
            _ => general,
        };
        let all = among + short_only + transients;
        let at = if all == 0 {
            // Only then: no clean server, and p = 1. The cluster has general servers then.
            self.probing.random_range(0..general.max(1))
        } else {
            self.probing.random_range(0..all)
        };
        let server = if at >= among + short_only && all > 0 {
            self.transients.get(at - among - short_only)
        } else if at >= among && all > 0 {
            Some(general + (at - among))
        } else if round == INFORMED && all > 0 {
            self.clean.get(at)
        } else {
            Some(at)
        };
        SentProbe {
            server: server.unwrap_or(0),
            copy,
        }
    }

    /// Probes reach their servers; those that are rejected go on to others.
    pub(super) fn probes_arrive(
        &mut self,
        job: u32,
        round: u8,
        sent: &[SentProbe],
    ) -> Result<(), ElasticError> {
        let mut rejected = Vec::new();
        for probe in sent {
            if !self.accepts(probe.server, round) {
                rejected.push(probe.copy);
                continue;
            }
            let Some(server) = self.servers.get_mut(probe.server as usize) else {
                continue;
            };
            server.shorts.push(Probe::new(job, probe.copy));
            if server.doing == Activity::Idle {
                self.next(probe.server)?;
            }
        }
        if !rejected.is_empty() {
            let round = (round + 1).min(RESERVED);
            let sent = rejected.iter().map(|copy| self.aim(*copy, round)).collect();
            // The answer, and the way to the next server.
            let at_us = self.now_us + 2 * self.setup.cluster.network_us;
            self.agenda
                .put(at_us, QueuedEvent::Probes { job, round, sent });
        }
        Ok(())
    }

    fn accepts(&self, server: u32, round: u8) -> bool {
        let standing = self.servers.get(server as usize).map(|one| one.standing);
        standing == Some(Admission::Open) && (round >= RESERVED || !self.has_long(server))
    }

    /// The next probe of an idle server asks for its task; false if there is no probe.
    pub(super) fn next_short(&mut self, number: u32) -> bool {
        if self.shared.is_some() {
            return self.take_shared(number);
        }
        let Some(server) = self.servers.get_mut(number as usize) else {
            return false;
        };
        let (jobs, trace) = (&self.jobs, self.trace);
        let remaining = |job: u32| {
            let left = jobs.get(job as usize).map_or(0, |job| job.left.len());
            let estimate = trace.jobs().get(job as usize);
            // A job whose tasks take no time has less left than any other, and not nothing.
            left as u64 * estimate.map_or(0, |job| job.estimate_us.max(1))
        };
        let Some(probe) = server.shorts.pop(self.setup.cluster.srpt_cap, remaining) else {
            return false;
        };
        if self.begin_short(number, probe.job) {
            if !probe.copy {
                self.drop_surplus_copy(number, probe.job);
            } else if let Some(progress) = self.jobs.get_mut(probe.job as usize) {
                progress.copies -= 1;
            }
            return true;
        }
        if probe.copy {
            self.dismiss(number, probe.job);
        }
        let until_us = self.now_us + 2 * self.setup.cluster.network_us;
        self.begin(number, Activity::Asking, until_us);
        true
    }

    /// A copy for which there is no task now: parked if a task on a transient server has no other
    /// one.
    fn dismiss(&mut self, server: u32, job: u32) {
        if let Some(progress) = self.jobs.get_mut(job as usize) {
            if progress.copies > progress.uncovered() {
                progress.copies -= 1;
            } else {
                progress.parked.push(server);
            }
        }
    }

    /// Begins a task of this job; false if none is left. The server asks for it, and hears which
    /// one it is.
    fn begin_short(&mut self, number: u32, job: u32) -> bool {
        let progress = self.jobs.get_mut(job as usize);
        let place = self.servers.get(number as usize).map(|one| one.place);
        let (Some(progress), Some(place)) = (progress, place) else {
            return false;
        };
        let Some(task) = progress.left.pop() else {
            return false;
        };
        // The question for the task and the answer.
        let began_us = self.now_us + 2 * self.setup.cluster.network_us;
        self.begin_task(number, place, job, task, began_us);
        true
    }

    /// Begins this task there, at this time.
    pub(super) fn begin_task(
        &mut self,
        number: u32,
        place: ServerRole,
        job: u32,
        task: ShortTask,
        began_us: u64,
    ) {
        if place == ServerRole::Transient
            && let Some(progress) = self.jobs.get_mut(job as usize)
        {
            progress.on_transients += 1;
        }
        if task.losses > 0 {
            self.tally.again.push(began_us - task.lost_us);
        }
        let task_us = task.us;
        self.record(WatchEvent::Began {
            job,
            server: number,
            place,
            at_us: began_us,
            task_us,
        });
        let doing = Activity::Short {
            job,
            began_us,
            task,
        };
        self.begin(number, doing, began_us + task_us);
    }

    /// A task of a short job is done: another one of the same job. Not where a long task waits,
    /// since it would reject a probe, too; nor on a server that is to go.
    pub(super) fn stick(&mut self, number: u32, job: u32) -> bool {
        let open = self
            .servers
            .get(number as usize)
            .is_some_and(|server| server.standing == Admission::Open);
        if !open || self.has_long(number) {
            return false;
        }
        if !self.begin_short(number, job) {
            return false;
        }
        self.drop_surplus_copy(number, job);
        true
    }

    /// A task began without a copy. If it runs on demand, a parked copy may have become one too
    /// many.
    fn drop_surplus_copy(&mut self, number: u32, job: u32) {
        let on_demand = number < self.on_demand_servers();
        if on_demand
            && let Some(progress) = self.jobs.get_mut(job as usize)
            && progress.copies > progress.uncovered()
            && progress.parked.pop().is_some()
        {
            progress.copies -= 1;
        }
    }

    /// A transient server took a task with it: it waits again, and a parked copy wakes up.
    pub(super) fn lose(&mut self, number: u32, job: u32, began_us: u64, task: ShortTask) {
        self.record(WatchEvent::Lost {
            job,
            server: number,
        });
        self.tally.lost += 1;
        self.tally.lost_us += self.now_us.saturating_sub(began_us).min(task.us);
        let task = ShortTask {
            losses: task.losses + 1,
            lost_us: self.now_us,
            ..task
        };
        self.tally.most_losses = self.tally.most_losses.max(task.losses);
        if self.shared.is_some() {
            if let Some(progress) = self.jobs.get_mut(job as usize) {
                progress.on_transients -= 1;
            }
            self.put_back(job, task);
            return;
        }
        let Some(progress) = self.jobs.get_mut(job as usize) else {
            return;
        };
        progress.left.push(task);
        progress.on_transients -= 1;
        let parked = progress.parked.pop();
        let again = match self.setup.cluster.recovery {
            Recovery::Resend => Some(self.aim(false, INFORMED)),
            _ => parked.map(|server| SentProbe { server, copy: true }),
        };
        if let Some(probe) = again {
            let sent = vec![probe];
            let at_us = self.now_us + self.setup.cluster.network_us;
            let round = INFORMED;
            self.agenda
                .put(at_us, QueuedEvent::Probes { job, round, sent });
        }
    }

    /// Without copies, the probes that waited on a server that was taken go to others. With copies
    /// there are enough elsewhere.
    pub(super) fn send_elsewhere(&mut self, waited: &ShortQueue) {
        if self.setup.cluster.recovery != Recovery::Resend {
            return;
        }
        let at_us = self.now_us + self.setup.cluster.network_us;
        let round = INFORMED;
        for job in waited.iter().map(|probe| probe.job) {
            let sent = vec![self.aim(false, round)];
            self.agenda
                .put(at_us, QueuedEvent::Probes { job, round, sent });
        }
    }
}
