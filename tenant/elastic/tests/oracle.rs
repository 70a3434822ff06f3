//! Simple queues whose answer can be worked out without the simulator.

use crate::common;

use common::{CUTOFF, SECOND, cluster, job, traces};
use ebbtide_elastic::{Cluster, ElasticError, MeasuredTimes, NoWatch, Recovery, Trace, compare};
use proptest::prelude::*;

/// Reference for one server for short jobs, messages that take no time, and at least one probe for
/// each job: the delays of all tasks, computed task by task.
fn one_server(trace: &Trace, cap: u32, probes: impl Fn(usize) -> usize) -> Vec<u64> {
    let jobs = trace.jobs();
    let mut left: Vec<Vec<u64>> = jobs.iter().map(|job| job.tasks_us.clone()).collect();
    // Waiting probes in order of arrival: the job, and how many later probes have overtaken it.
    let mut waiting: Vec<(usize, u32)> = Vec::new();
    let (mut now, mut next, mut stuck) = (0, 0, None);
    let mut delays = Vec::new();
    loop {
        while next < jobs.len() && jobs[next].arrival_us <= now {
            let count = probes(jobs[next].tasks_us.len());
            waiting.extend(std::iter::repeat_n((next, 0), count));
            next += 1;
        }
        waiting.retain(|(job, _)| !left[*job].is_empty());
        let chosen = stuck.take().or_else(|| {
            let starved = waiting.iter().position(|(_, overtaken)| *overtaken >= cap);
            let end = starved.map_or(waiting.len(), |at| at + 1);
            let work = |job: usize| left[job].len() as u64 * jobs[job].estimate_us;
            let at = (0..end).min_by_key(|at| (work(waiting[*at].0), *at))?;
            waiting[..at].iter_mut().for_each(|probe| probe.1 += 1);
            Some(waiting.remove(at).0)
        });
        let Some(job) = chosen else {
            if next == jobs.len() {
                return delays;
            }
            now = jobs[next].arrival_us;
            continue;
        };
        delays.push(now - jobs[job].arrival_us);
        now += left[job].remove(0);
        stuck = (!left[job].is_empty()).then_some(job);
    }
}

/// No two jobs at one time, and no task that ends when a job comes: there the order is a matter of
/// taste.
fn apart(trace: &Trace) -> Trace {
    let mut jobs = trace.jobs().to_vec();
    for (at, job) in jobs.iter_mut().enumerate() {
        job.arrival_us += 1 + 2 * at as u64;
        job.tasks_us.iter_mut().for_each(|us| *us += SECOND);
    }
    let mut odd = 1_000;
    for us in jobs.iter_mut().flat_map(|job| &mut job.tasks_us) {
        *us += odd;
        odd += 1_000;
    }
    Trace::new(jobs).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn one_server_is_the_queue_that_pen_and_paper_give(
        trace in traces(20, false),
        cap in 0u32..6,
        probe_ratio in 1u32..3,
    ) {
        let trace = apart(&trace);
        let cluster = Cluster {
            servers: 1,
            short_only: 1,
            network_us: 0,
            srpt_cap: cap,
            probe_ratio,
            min_probes: 1,
            cutoff_us: CUTOFF * SECOND,
            whole_seconds: false,
            recovery: Recovery::Copies,
        };
        let fixed = compare::fixed(&trace, &cluster, 1, &mut NoWatch).unwrap();
        let delays = one_server(&trace, cap, |tasks| tasks * probe_ratio as usize);
        prop_assert_eq!(fixed.short, MeasuredTimes::new(delays));
    }

    #[test]
    fn one_server_is_never_idle_while_a_task_waits(trace in traces(20, false)) {
        // Work conservation: whatever the order, the server is done when the last of the work that
        // has come is done.
        let trace = apart(&trace);
        let cluster = Cluster { network_us: 0, ..cluster(1, 1) };
        let fixed = compare::fixed(&trace, &cluster, 1, &mut NoWatch).unwrap();
        let end = trace.jobs().iter().fold(0, |free: u64, job| {
            free.max(job.arrival_us) + job.tasks_us.iter().sum::<u64>()
        });
        prop_assert_eq!(fixed.end_us, end);
    }

    #[test]
    fn long_jobs_alone_are_a_queue_with_several_servers(
        lengths in prop::collection::vec((0u64..100, CUTOFF + 1..300), 1..30),
        servers in 1u32..5,
    ) {
        // Estimates are right here, so the server with least work ahead is the first that is free:
        // first come, first served.
        let mut now = 0;
        let jobs = lengths.iter().map(|(after, length)| {
            now += after;
            job(now, *length, &[*length])
        });
        let trace = Trace::new(jobs.collect()).unwrap();
        let cluster = Cluster { network_us: 0, ..cluster(servers + 1, 1) };
        let fixed = compare::fixed(&trace, &cluster, 1, &mut NoWatch).unwrap();
        let mut free = vec![0u64; servers as usize];
        let mut delays = Vec::new();
        for job in trace.jobs() {
            let first = free.iter_mut().min().unwrap();
            let begin = (*first).max(job.arrival_us);
            delays.push(begin - job.arrival_us);
            *first = begin + job.tasks_us[0];
        }
        prop_assert_eq!(fixed.long, MeasuredTimes::new(delays));
    }
}

#[test]
fn with_room_for_all_a_task_waits_for_its_messages_only() {
    // A probe on its way, the question for the task and the answer.
    let trace = Trace::new((0..50).map(|at| job(at * 100, 5, &[5])).collect()).unwrap();
    let fixed = compare::fixed(&trace, &cluster(200, 20), 7, &mut NoWatch).unwrap();
    assert_eq!(fixed.short, MeasuredTimes::new(vec![1_500; 50]));
    assert_eq!(fixed.short_jobs, MeasuredTimes::new(vec![5_001_500; 50]));
}

#[test]
fn long_jobs_without_servers_for_them_are_refused() {
    let trace = Trace::new(vec![job(0, CUTOFF + 1, &[60])]).unwrap();
    let refused = compare::fixed(&trace, &cluster(3, 3), 1, &mut NoWatch);
    let error = ElasticError::NoRoom {
        jobs: 1,
        servers: 3,
    };
    assert_eq!(refused, Err(error.clone()));
    assert_eq!(error.code(), "EB-ELASTIC-006");
}
