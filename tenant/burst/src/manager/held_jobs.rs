//! Releases jobs that Slurm holds because their launch failed.
//!
//! Slurm 22.05 gives a job that is allocated a cloud node the list of addresses `TBD` until that
//! node is up. A job that goes back into the queue before that keeps the list. If its next node is
//! no cloud node, slurmstepd ends with `set_nodes_alias failed: TBD`, and Slurm holds the job. The
//! next launch on another node succeeds; on the same node it fails once more, because the script of
//! the failed launch is still there.

use super::{AGAIN_MS, BurstAction, ClusterSnapshot, Manager};
use crate::error::BurstError;
use crate::slurm::JobState;

/// How often a job is released: the two failures above, and one more.
const RELEASES: u32 = 3;
/// A job whose launch failed was in the queue again before the launch (once), and is now (twice).
/// With fewer restarts the cause is another one, and the operator decides.
const RESTARTS: u32 = 2;
/// A job that has run so long was launched well: its releases are forgotten.
pub(super) const LAUNCHED_MS: i64 = 60_000;

impl Manager {
    /// Releases each such job, unless it has been released too often. A hold by a user or an
    /// operator is never touched.
    pub(super) fn release(&mut self, now: i64, world: &ClusterSnapshot<'_>) {
        self.released.retain(|id, _| {
            let job = world.jobs.iter().find(|job| job.id == *id);
            job.is_some_and(|job| {
                let launched = job.state == JobState::Running && now - job.start_ms >= LAUNCHED_MS;
                !job.is_over() && !launched
            })
        });
        let held = world.jobs.iter().filter(|job| job.launch_failed);
        for job in held.filter(|job| job.restarts >= RESTARTS) {
            let releases = self.released.get(&job.id).copied().unwrap_or(0);
            let action = BurstAction::Release { job: job.id };
            if releases < RELEASES {
                if self.is_due(now, AGAIN_MS, &action) {
                    self.released.insert(job.id, releases + 1);
                }
                self.send_once(now, AGAIN_MS, action);
                self.displaced.entry(job.id).or_default();
            } else if self.is_due(now, AGAIN_MS, &action) {
                self.troubles.push(BurstError::Held {
                    job: job.id,
                    times: releases + 1,
                });
            }
        }
    }
}
