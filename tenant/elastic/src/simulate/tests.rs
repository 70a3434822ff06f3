//! What holds in the world after every single event. What can be seen from outside is tested in
//! `tests/`.

use super::event::QueuedEvent;
use super::server::{Activity, Admission};
use super::setup::{Cluster, Elastic, Recovery, Setup};
use super::watch::{NoWatch, ServerRole};
use super::world::ClusterSimulation;
use crate::policy::ElasticPolicy;
use crate::trace::{Trace, TraceJob};
use ebbtide_lifetime::distributions::Exponential;
use proptest::prelude::*;
use std::sync::Arc;

const CUTOFF: u64 = 50;

fn jobs() -> impl Strategy<Value = Vec<TraceJob>> {
    let short = (1u64..CUTOFF, prop::collection::vec(0u64..60, 1..12));
    let long = (CUTOFF + 1..400, prop::collection::vec(1u64..500, 1..6));
    let one = (0u64..60, prop_oneof![3 => short, 2 => long]);
    prop::collection::vec(one, 1..25).prop_map(|jobs| {
        let mut now = 0;
        let each = jobs.into_iter().map(|(after, (estimate, tasks))| {
            now += after;
            TraceJob {
                arrival_us: now * 1_000_000,
                estimate_us: estimate * 1_000_000,
                tasks_us: tasks.iter().map(|s| s * 1_000_000).collect(),
            }
        });
        each.collect()
    })
}

prop_compose! {
    fn setups()(
        short_only in 1u32..8,
        general in 1u32..12,
        ratio in 1.0f64..4.0,
        share in prop_oneof![1 => Just(1.0), 6 => 0.0f64..1.0],
        threshold in 0.2f64..1.0,
        (cap, probe_ratio, min_probes) in (0u32..6, 1u32..4, 0u32..20),
        network_us in prop_oneof![Just(0u64), Just(500), Just(3_000_000)],
        provisioning_us in 1_000_000u64..200_000_000,
        pace in prop_oneof![Just(0u64), Just(30_000_000)],
        timeout in prop_oneof![3 => Just(None), 1 => Just(Some(50_000_000u64))],
        life in prop_oneof![1 => Just(None), 3 => (0.001f64..0.1).prop_map(Some)],
        (notice_us, outage_us) in (
            prop_oneof![Just(0u64), Just(30_000_000)],
            prop_oneof![2 => Just(0u64), 1 => 40_000_000u64..300_000_000],
        ),
        recovery in prop::sample::select(Recovery::ALL.to_vec()),
        seed in any::<u64>(),
    ) -> Setup {
        let policy = ElasticPolicy::new(short_only, ratio, share)
            .and_then(|p| p.threshold(threshold))
            .and_then(|p| p.release_interval(pace))
            .and_then(|p| timeout.map_or(Ok(p), |timeout| p.launch_timeout(timeout)));
        let elastic = Elastic {
            policy: policy.unwrap(),
            provisioning_us,
            lifetime: life.map(|hours| Arc::new(Exponential::new(1.0 / hours, f64::INFINITY).unwrap()) as Arc<_>),
            notice_us,
            life_scale: 1.0,
            outage_us,
        };
        let cluster = Cluster {
            servers: general + short_only,
            short_only,
            cutoff_us: CUTOFF * 1_000_000,
            probe_ratio,
            min_probes,
            network_us,
            srpt_cap: cap,
            whole_seconds: false,
            recovery,
        };
        Setup { cluster, elastic: Some(elastic), seed }
    }
}

impl ClusterSimulation<'_> {
    /// The first invariant that does not hold.
    fn flaw(&self) -> Option<String> {
        self.flaw_of_servers()
            .or_else(|| (0..self.jobs.len() as u32).find_map(|job| self.flaw_of_job(job)))
    }

    fn flaw_of_servers(&self) -> Option<String> {
        if self.shared.as_ref().is_some_and(|queue| queue.is_stuck()) {
            return Some("a task waits while a server is free".to_owned());
        }
        let mut transients = 0;
        for (number, server) in (0..).zip(&self.servers) {
            let waits = !server.shorts.is_empty() || !server.longs.is_empty();
            if waits && server.doing == Activity::Idle {
                return Some(format!("server {number} is idle while a task waits there"));
            }
            if server.standing == Admission::Gone && (waits || server.doing != Activity::Idle) {
                return Some(format!("server {number} is gone with work"));
            }
            if server.shorts.iter().any(|probe| probe.copy) && server.place == ServerRole::Transient
            {
                return Some(format!("a copy waits on the transient server {number}"));
            }
            let open = server.place == ServerRole::Transient && server.standing == Admission::Open;
            if self.transients.contains(number) != open {
                return Some(format!("server {number} is in the wrong pool"));
            }
            let general = server.place == ServerRole::General;
            if self.clean.contains(number) != (general && !self.central.is_long(number)) {
                return Some(format!("server {number} is long or not"));
            }
            let alive = server.place == ServerRole::Transient && server.standing != Admission::Gone;
            transients += u32::from(alive);
        }
        let controller = self.controller.as_ref().unwrap();
        let all = controller.census().all();
        if all != transients || all > controller.policy().budget() {
            let budget = controller.policy().budget();
            return Some(format!(
                "{transients} transients, {all} known, budget {budget}"
            ));
        }
        None
    }

    fn flaw_of_job(&self, number: u32) -> Option<String> {
        let (job, progress) = (self.job(number)?, self.jobs.get(number as usize)?);
        let coming = |at: &QueuedEvent| matches!(at, QueuedEvent::Job(next) if *next <= number);
        if self.agenda.iter().any(coming) || self.is_long_job(number) {
            return None;
        }
        let runs = |of: bool| {
            let here = self.servers.iter().filter(|server| {
                matches!(server.doing, Activity::Short { job, .. } if job == number)
                    && (server.place == ServerRole::Transient) == of
            });
            here.count() as u32
        };
        let (transient, on_demand) = (runs(true), runs(false));
        let shared = self
            .shared
            .as_ref()
            .map_or(0, |queue| queue.waiting(number));
        let left = progress.left.len() as u32 + shared;
        let all = left + transient + on_demand + progress.done;
        if all as usize != job.tasks_us.len() || transient != progress.on_transients {
            return Some(format!(
                "job {number}: {all} tasks of {}",
                job.tasks_us.len()
            ));
        }
        let recovery = self.setup.cluster.recovery;
        let counts = |copy: bool| copy || recovery == Recovery::Resend;
        let queued = self.servers.iter().flat_map(|server| server.shorts.iter());
        let queued = queued
            .filter(|probe| probe.job == number && counts(probe.copy))
            .count();
        let sent = self.agenda.iter().map(|coming| match coming {
            QueuedEvent::Probes { job, sent, .. } if *job == number => {
                sent.iter().filter(|probe| counts(probe.copy)).count()
            }
            _ => 0,
        });
        let copies = (queued + sent.sum::<usize>() + progress.parked.len()) as u32;
        if recovery != Recovery::Copies {
            // Without copies each task that waits has a probe somewhere, or a place in the queue.
            return (copies < progress.left.len() as u32 || progress.copies > 0).then(|| {
                format!(
                    "job {number}: {copies} probes for {} tasks",
                    progress.left.len()
                )
            });
        }
        if copies != progress.copies || copies < progress.uncovered() {
            let uncovered = progress.uncovered();
            return Some(format!(
                "job {number}: {copies} copies ({} known) for {uncovered} tasks that need one",
                progress.copies
            ));
        }
        // A task that waits has a copy that will ask for it: one in a queue or on its way, not a
        // parked one.
        if progress.left.len() > copies as usize - progress.parked.len() {
            return Some(format!(
                "job {number}: a parked copy sleeps while a task waits"
            ));
        }
        None
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn work_is_conserved_and_every_waiting_task_has_its_copy_on_demand(
        jobs in jobs(),
        setup in setups(),
    ) {
        let trace = Trace::new(jobs).unwrap();
        let mut unwatched = NoWatch;
        let mut world = ClusterSimulation::new(&trace, &setup, &mut unwatched).unwrap();
        while world.step().unwrap() {
            prop_assert_eq!(world.flaw(), None);
        }
        for (job, progress) in trace.jobs().iter().zip(&world.jobs) {
            prop_assert_eq!(progress.done as usize, job.tasks_us.len());
            prop_assert!(progress.parked.is_empty());
        }
        prop_assert!(world.servers.iter().all(|server| server.doing == Activity::Idle));
        // The load has fallen to zero, so no preemptible server remains.
        let census = world.controller.as_ref().unwrap().census();
        let paced = setup.elastic.as_ref().unwrap().policy.release_interval_us() > 0;
        prop_assert!(!paced || census.all() == 0, "{:?}", census);
    }
}
