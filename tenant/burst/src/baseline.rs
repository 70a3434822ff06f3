//! The same jobs on the nodes that stay, alone: what a report compares with when there is no record
//! of such a run.
//!
//! Jobs are placed in the order of their submission, each at the earliest moment at which enough
//! nodes have enough free processors for as long as it ran in the end, and none before it is moved
//! (conservative backfilling with run times that are known exactly). No cluster does better in this
//! order, since none knows how long jobs will run: what is reckoned flatters the cluster without
//! preemptible nodes. Nothing is ever cut on nodes that stay.

use std::collections::BTreeMap;

/// A job to be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobRequest {
    /// When it is submitted, milliseconds.
    pub submitted: i64,
    /// How long it runs, milliseconds.
    pub length: i64,
    /// Nodes that it wants at a time.
    pub nodes: u32,
    /// Processors on each of them.
    pub cpus: u32,
}

/// Free processors of a node, from each time on.
type Profile = BTreeMap<i64, u32>;

/// When each job would start, in the order given; none for a job that does not fit on the nodes at
/// all. `cpus` are those of each node.
#[must_use]
pub fn reckon(cpus: &[u32], jobs: &[JobRequest]) -> Vec<Option<i64>> {
    let mut profiles: Vec<Profile> = cpus
        .iter()
        .map(|cpus| Profile::from([(i64::MIN, *cpus)]))
        .collect();
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|at| (jobs[*at].submitted, *at));
    let mut starts = vec![None; jobs.len()];
    for at in order {
        let job = &jobs[at];
        starts[at] = place(&mut profiles, job);
    }
    starts
}

fn place(profiles: &mut [Profile], job: &JobRequest) -> Option<i64> {
    // Something may get free only where a profile changes.
    let mut times: Vec<i64> = profiles
        .iter()
        .flat_map(|profile| profile.range(job.submitted..).map(|(at, _)| *at))
        .chain([job.submitted])
        .collect();
    times.sort_unstable();
    times.dedup();
    let wanted = job.nodes.max(1) as usize;
    for start in times {
        let end = start.saturating_add(job.length.max(1));
        let fits = |profile: &Profile| free(profile, start, end) >= job.cpus;
        let found: Vec<usize> = (0..profiles.len())
            .filter(|at| fits(&profiles[*at]))
            .take(wanted)
            .collect();
        if found.len() == wanted {
            for at in found {
                take(&mut profiles[at], start, end, job.cpus);
            }
            return Some(start);
        }
    }
    None
}

/// The least that is free between two times.
fn free(profile: &Profile, start: i64, end: i64) -> u32 {
    let before = profile.range(..=start).next_back().map(|(_, free)| *free);
    let during = profile.range(start..end).map(|(_, free)| *free);
    during.chain(before).min().unwrap_or(0)
}

fn take(profile: &mut Profile, start: i64, end: i64, cpus: u32) {
    for at in [start, end] {
        let now = profile
            .range(..=at)
            .next_back()
            .map_or(0, |(_, free)| *free);
        profile.entry(at).or_insert(now);
    }
    for free in profile.range_mut(start..end).map(|(_, free)| free) {
        *free = free.saturating_sub(cpus);
    }
}
