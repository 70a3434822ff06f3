//! Handles an instance with notice: its jobs save their work and continue on other nodes.
//!
//! The controller drains the node. A job whose time limit ends before the instance does may finish
//! on the node. The controller signals all other jobs to save their work, and requeues them after
//! `checkpoint_seconds`, at the latest `margin_seconds` before the instance ends. A job that has
//! ended meanwhile is not requeued: the controller asks Slurm to requeue incomplete jobs only. When
//! no job is left, the controller returns the node before its deadline, so that the normal request
//! that needs the capacity gets it earlier.

use super::{BurstAction, ClusterSnapshot, Manager, PoolServer};
use crate::error::BurstError;
use crate::slurm::{JobState, Node, SlurmJob};
use ebbtide_elastic::{ControllerEvent, ServerState};

impl Manager {
    pub(super) fn leave(
        &mut self,
        now: i64,
        node: &Node,
        instance: &PoolServer,
        world: &ClusterSnapshot<'_>,
    ) -> Result<(), BurstError> {
        let Some(slot) = self.slots.get_mut(&node.name) else {
            return Ok(());
        };
        let server = slot.server;
        let fresh = slot.notice.is_none();
        let notice = slot.notice.get_or_insert_default();
        if fresh {
            notice.seen = now;
        }
        let (seen, signalled) = (notice.seen, notice.signalled.clone());
        if self.state(&node.name) != Some(ServerState::Leaving) {
            // Says to drain it, too.
            self.report_event(now, ControllerEvent::Notice(server), world)?;
        }
        let deadline = instance.deadline_ms.map(|at| at - self.margin_ms);
        let put_back = (seen + self.checkpoint_ms).min(deadline.unwrap_or(i64::MAX));
        let running = world.jobs_on(&node.name);
        let running = running.filter(|job| job.requeues && job.state == JobState::Running);
        for job in running {
            if deadline.is_some_and(|deadline| ends_by(job, deadline)) {
                continue;
            }
            if !signalled.contains(&job.id) {
                self.actions.push(BurstAction::Signal { job: job.id });
                let slot = self.slots.get_mut(&node.name);
                if let Some(notice) = slot.and_then(|slot| slot.notice.as_mut()) {
                    notice.signalled.insert(job.id);
                }
            }
            self.displace_job(job);
            if now >= put_back {
                self.send_once(now, super::SOON_MS, BurstAction::Requeue { job: job.id });
            }
        }
        let Some(slot) = self.slots.get(&node.name).cloned() else {
            return Ok(());
        };
        self.drains(now, node, &slot, world)
    }
}

/// Whether a job is over by then whatever it does.
fn ends_by(job: &SlurmJob, deadline: i64) -> bool {
    let limit = job
        .limit_minutes
        .and_then(|minutes| i64::try_from(minutes).ok());
    limit.is_some_and(|minutes| {
        job.start_ms.saturating_add(minutes.saturating_mul(60_000)) <= deadline
    })
}
