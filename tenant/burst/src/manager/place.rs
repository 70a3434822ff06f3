//! A job whose node was taken keeps its place in the queue.
//!
//! With Slurm's multifactor priority a job that goes back into the queue is as old as if it had
//! just been submitted, and all that were submitted while it ran are before it. The controller
//! lowers its `nice` by what its age was worth, so that its priority is the one that a copy of it
//! would have that had waited all the time. Fair share, QOS and partition keep their effect.

use super::{AGAIN_MS, BurstAction, ClusterSnapshot, Manager};
use crate::slurm::{Ageing, JobState, SlurmJob};

/// What a job had when it lost its node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Since when it aged.
    since_ms: i64,
    nice: i32,
    /// What it is to get, once that is reckoned.
    wanted: Option<i32>,
    /// True when Slurm has it: a later change is meant by its author.
    kept: bool,
}

impl Place {
    fn of(job: &SlurmJob) -> Self {
        Self {
            since_ms: job.accrue_ms,
            nice: job.nice,
            wanted: None,
            kept: false,
        }
    }

    /// The job lost its node again, or its launch failed, before it ran for long.
    fn lose_again(&mut self, job: &SlurmJob) {
        if self.kept && self.wanted != Some(job.nice) {
            // Its user has changed it since: that change counts, from now.
            *self = Self::of(job);
        } else {
            (self.wanted, self.kept) = (None, false);
        }
    }
}

impl Manager {
    /// How Slurm's priorities grow with age; none if they do not, and then Slurm lets jobs keep
    /// their places.
    pub fn set_ageing(&mut self, ageing: Option<Ageing>) {
        self.ageing = ageing;
    }

    /// A job that has a node is going to lose it.
    pub(super) fn displace_job(&mut self, job: &SlurmJob) {
        // What is seen first counts: later the job may age anew already.
        match self.displaced.entry(job.id).or_default() {
            Some(place) => place.lose_again(job),
            unknown => *unknown = Some(Place::of(job)),
        }
    }

    /// Slurm gives a job back that waits for its node if the node does not come up in time. The
    /// controller sees that only afterwards, so that it notes the place of each job that waits for
    /// an instance.
    pub(super) fn note_places(&mut self, world: &ClusterSnapshot<'_>) {
        for job in world.jobs {
            let waits = job.state == JobState::Configuring && job.requeues && job.accrue_ms != 0;
            if waits && job.nodes.iter().any(|node| self.is_leaving(node)) {
                self.displaced.insert(job.id, Some(Place::of(job)));
            }
        }
    }

    /// Slurm holds a job because its launch failed.
    pub(super) fn launch_failed(&mut self, job: &SlurmJob) {
        if let Some(Some(place)) = self.displaced.get_mut(&job.id) {
            place.lose_again(job);
        }
    }

    /// A job that lost its node waits.
    pub(super) fn keep_place(&mut self, now: i64, job: &SlurmJob) {
        let Some(ageing) = self.ageing else {
            return;
        };
        let Some(Some(place)) = self.displaced.get_mut(&job.id) else {
            return;
        };
        if place.kept || place.since_ms == 0 {
            return;
        }
        let reckon = || ageing.nice(place.nice, place.since_ms, now);
        let nice = *place.wanted.get_or_insert_with(reckon);
        if job.nice == nice {
            place.kept = true;
            return;
        }
        let job = job.reference();
        self.send_once(now, AGAIN_MS, BurstAction::KeepPlace { job, nice });
    }
}
