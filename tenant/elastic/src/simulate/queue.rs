//! Queue of the probes at one server: the job with the least remaining work comes first, and each
//! probe is overtaken a limited number of times.

use std::collections::VecDeque;

/// A place in a server's queue for any task of a short job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) job: u32,
    /// It counts as a copy on an on-demand server.
    pub(crate) copy: bool,
    /// How often another one was taken that came later.
    overtaken: u32,
}

impl Probe {
    pub(crate) fn new(job: u32, copy: bool) -> Self {
        Self {
            job,
            copy,
            overtaken: 0,
        }
    }
}

/// Shortest remaining time first, with a cap.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShortQueue {
    /// In the order of their arrival.
    probes: VecDeque<Probe>,
}

impl ShortQueue {
    pub(crate) fn push(&mut self, probe: Probe) {
        self.probes.push_back(probe);
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.probes.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.probes.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Probe> {
        self.probes.iter()
    }

    /// Removes the next probe: that of the job with the least remaining work, the earliest among
    /// equals. A probe that was overtaken `cap` times is not overtaken again. A probe whose job has
    /// nothing left (`remaining` of 0) is removed at once and does not count as overtaking, because
    /// it starts no task.
    pub(crate) fn pop(&mut self, cap: u32, remaining: impl Fn(u32) -> u64) -> Option<Probe> {
        let mut best: Option<(u64, usize)> = None;
        for (at, probe) in self.probes.iter().enumerate() {
            let left = remaining(probe.job);
            if best.is_none_or(|(least, _)| left < least) {
                best = Some((left, at));
            }
            if left == 0 || probe.overtaken >= cap {
                break;
            }
        }
        let (left, at) = best?;
        if left > 0 {
            let before = self.probes.iter_mut().take(at);
            before.for_each(|probe| probe.overtaken += 1);
        }
        self.probes.remove(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(queue: &mut ShortQueue, cap: u32, left: &[u64]) -> Vec<u32> {
        let mut jobs = Vec::new();
        while let Some(probe) = queue.pop(cap, |job| left[job as usize]) {
            jobs.push(probe.job);
        }
        jobs
    }

    #[test]
    fn the_job_with_least_left_comes_first_and_among_equals_the_first() {
        let mut queue = ShortQueue::default();
        (0..4).for_each(|job| queue.push(Probe::new(job, false)));
        assert_eq!(order(&mut queue, 5, &[9, 3, 5, 3]), [1, 3, 2, 0]);
    }

    #[test]
    fn no_probe_is_overtaken_more_often_than_the_cap() {
        let mut queue = ShortQueue::default();
        queue.push(Probe::new(0, false));
        (1..5).for_each(|_| queue.push(Probe::new(1, false)));
        assert_eq!(order(&mut queue, 2, &[100, 1]), [1, 1, 0, 1, 1]);
        // A cap of zero is first come, first served.
        (0..3).for_each(|job| queue.push(Probe::new(job, false)));
        assert_eq!(order(&mut queue, 0, &[3, 2, 1]), [0, 1, 2]);
    }

    #[test]
    fn probes_without_tasks_overtake_no_other() {
        let mut queue = ShortQueue::default();
        queue.push(Probe::new(0, false));
        (0..9).for_each(|_| queue.push(Probe::new(1, false)));
        queue.push(Probe::new(2, false));
        let jobs = order(&mut queue, 1, &[5, 0, 3]);
        assert_eq!(jobs, [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0]);
    }
}
