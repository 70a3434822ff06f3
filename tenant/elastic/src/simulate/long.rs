//! Long jobs: one scheduler for all of them, which knows where long tasks are.

use super::event::{PlacedTask, QueuedEvent};
use super::server::Activity;
use super::watch::{ServerRole, WatchEvent};
use super::world::ClusterSimulation;
use crate::error::ElasticError;

impl ClusterSimulation<'_> {
    /// Places all tasks of a long job.
    pub(super) fn place_long(&mut self, job: u32) {
        let estimate_us = self.estimate_us(job);
        let Some(progress) = self.jobs.get_mut(job as usize) else {
            return;
        };
        let tasks = std::mem::take(&mut progress.left);
        let mut placed = Vec::with_capacity(tasks.len());
        for task_us in tasks.into_iter().rev().map(|task| task.us) {
            // There are servers for long jobs, or the world would not have begun.
            let Some((server, was_free)) = self.central.place(self.now_us, estimate_us) else {
                return;
            };
            if was_free {
                self.clean.remove(server);
                self.no_longer_idle(server);
                self.load_changed = true;
            }
            placed.push(PlacedTask { server, task_us });
        }
        let at_us = self.now_us + self.setup.cluster.network_us;
        self.agenda.put(at_us, QueuedEvent::Tasks { job, placed });
    }

    pub(super) fn tasks_arrive(
        &mut self,
        job: u32,
        placed: &[PlacedTask],
    ) -> Result<(), ElasticError> {
        for PlacedTask { server, task_us } in placed {
            let Some(one) = self.servers.get_mut(*server as usize) else {
                continue;
            };
            one.longs.push_back((job, *task_us));
            if one.doing == Activity::Idle {
                self.next(*server)?;
            }
        }
        Ok(())
    }

    /// Begins the next long task of an idle server; false if there is none.
    pub(super) fn next_long(&mut self, number: u32) -> bool {
        let waits = self.servers.get_mut(number as usize);
        let Some((job, task_us)) = waits.and_then(|server| server.longs.pop_front()) else {
            return false;
        };
        self.central
            .began(self.now_us, number, self.estimate_us(job));
        self.record(WatchEvent::Began {
            job,
            server: number,
            place: ServerRole::General,
            at_us: self.now_us,
            task_us,
        });
        if let Some(known) = self.job(job) {
            self.tally.long.push(self.now_us - known.arrival_us);
        }
        self.begin(number, Activity::Long { job }, self.now_us + task_us);
        true
    }

    pub(super) fn long_ended(&mut self, server: u32) {
        if self.central.ended(self.now_us, server) {
            self.clean.insert(server);
            self.load_changed = true;
        }
    }
}
