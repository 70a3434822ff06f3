//! Properties that hold for every trace, cluster and policy, checked through the events that an
//! observer receives.

use crate::common;

use common::{cluster, traces};
use ebbtide_elastic::{
    Elastic, ElasticPolicy, NoWatch, ServerRole, Setup, SimulationResult, Trace, Watch, WatchEvent,
    compare, simulate,
};
use ebbtide_lifetime::distributions::Exponential;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Writes down everything.
#[derive(Default)]
struct Diary(Vec<(u64, WatchEvent)>);

impl Watch for Diary {
    fn record(&mut self, at_us: u64, what: WatchEvent) {
        self.0.push((at_us, what));
    }
}

fn played(trace: &Trace, setup: &Setup) -> (SimulationResult, Vec<(u64, WatchEvent)>) {
    let mut diary = Diary::default();
    let outcome = simulate(trace, setup, &mut diary).unwrap();
    (outcome, diary.0)
}

prop_compose! {
    fn setups()(
        (general, short_only) in (1u32..10, 1u32..8),
        (ratio, share, threshold) in (1.0f64..4.0, 0.0f64..1.0, 0.2f64..1.0),
        provisioning in 1u64..200,
        life in prop_oneof![1 => Just(None), 3 => (0.001f64..0.1).prop_map(Some)],
        notice in prop_oneof![Just(0u64), Just(30)],
        seed in any::<u64>(),
    ) -> Setup {
        let policy = ElasticPolicy::new(short_only, ratio, share).unwrap().threshold(threshold).unwrap();
        let model = |hours: f64| Arc::new(Exponential::new(1.0 / hours, f64::INFINITY).unwrap()) as Arc<_>;
        let elastic = Elastic {
            provisioning_us: provisioning * common::SECOND,
            lifetime: life.map(model),
            notice_us: notice * common::SECOND,
            ..Elastic::new(policy)
        };
        Setup { cluster: cluster(general + short_only, short_only), elastic: Some(elastic), seed }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn no_task_is_lost_or_done_twice_and_each_runs_as_long_as_the_trace_says(
        trace in traces(25, true),
        setup in setups(),
    ) {
        let (outcome, diary) = played(&trace, &setup);
        // Of each server: job, end and length of its task. Of each job: lengths of the tasks that
        // are done.
        let mut running: BTreeMap<u32, (u32, u64, u64)> = BTreeMap::new();
        let mut done: Vec<Vec<u64>> = vec![Vec::new(); trace.jobs().len()];
        let mut lost = 0;
        for (at, what) in diary {
            match what {
                WatchEvent::Began { job, server, at_us, task_us, .. } => {
                    prop_assert!(at_us >= trace.jobs()[job as usize].arrival_us);
                    prop_assert_eq!(running.insert(server, (job, at_us + task_us, task_us)), None);
                }
                WatchEvent::Ended { job, server } => {
                    let (whose, end, task_us) = running.remove(&server).unwrap();
                    prop_assert_eq!((whose, end), (job, at));
                    done[job as usize].push(task_us);
                }
                WatchEvent::Lost { job, server } => {
                    let (whose, end, _) = running.remove(&server).unwrap();
                    prop_assert!(whose == job && end >= at);
                    lost += 1;
                }
                _ => {}
            }
        }
        prop_assert!(running.is_empty());
        prop_assert_eq!(outcome.lost, lost);
        for (job, mut done) in trace.jobs().iter().zip(done) {
            let mut wanted = job.tasks_us.clone();
            wanted.sort_unstable();
            done.sort_unstable();
            prop_assert_eq!(done, wanted);
        }
    }

    #[test]
    fn the_budget_holds_and_servers_drain_before_they_are_released(
        trace in traces(25, true),
        setup in setups(),
    ) {
        let budget = setup.elastic.as_ref().unwrap().policy.budget() as usize;
        let (outcome, diary) = played(&trace, &setup);
        let (mut alive, mut open, mut busy) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut most = 0;
        for (_, what) in diary {
            match what {
                WatchEvent::Launched { server } => {
                    prop_assert!(alive.insert(server));
                    prop_assert!(alive.len() <= budget);
                    most = most.max(alive.len());
                }
                WatchEvent::Up { server } | WatchEvent::Kept { server } => {
                    prop_assert!(alive.contains(&server) && open.insert(server));
                }
                WatchEvent::Draining { server } => prop_assert!(open.remove(&server)),
                WatchEvent::Released { server } => {
                    prop_assert!(!open.contains(&server) && !busy.contains(&server));
                    prop_assert!(alive.remove(&server));
                }
                WatchEvent::Interrupted { server } => {
                    open.remove(&server);
                    prop_assert!(alive.remove(&server));
                }
                WatchEvent::Began { server, place, .. } => {
                    busy.insert(server);
                    prop_assert!(place != ServerRole::Transient || alive.contains(&server));
                }
                WatchEvent::Ended { server, .. } | WatchEvent::Lost { server, .. } => {
                    busy.remove(&server);
                }
                WatchEvent::Arrived { .. } => {}
            }
        }
        prop_assert_eq!(outcome.transients.most as usize, most);
        prop_assert!(outcome.transients.mean_up <= budget as f64 + 1e-9);
    }

    #[test]
    fn a_task_that_was_lost_is_done_again_and_its_work_is_counted(
        trace in traces(25, true),
        setup in setups(),
    ) {
        let (outcome, diary) = played(&trace, &setup);
        let begun = diary.iter().filter(|(_, w)| matches!(w, WatchEvent::Began { .. })).count();
        prop_assert_eq!(begun as u64, trace.tasks() as u64 + outcome.lost);
        let interrupted = diary.iter().filter(|(_, w)| matches!(w, WatchEvent::Interrupted { .. })).count();
        prop_assert_eq!(interrupted as u64, outcome.transients.interrupted);
        prop_assert!(outcome.lost <= outcome.transients.interrupted);
    }

    #[test]
    fn waiting_is_what_jobs_spend_that_are_not_begun_littles_law(
        trace in traces(25, true),
        mut setup in setups(),
    ) {
        // Without interruptions a task waits once. The integral over time of the number of tasks
        // that wait is the sum of their delays.
        if let Some(elastic) = &mut setup.elastic {
            elastic.lifetime = None;
        }
        let (outcome, diary) = played(&trace, &setup);
        let mut changes: Vec<(u64, i64)> = Vec::new();
        for (at, what) in diary {
            match what {
                WatchEvent::Arrived { job, .. } => {
                    changes.push((at, trace.jobs()[job as usize].tasks_us.len() as i64));
                }
                WatchEvent::Began { at_us, .. } => changes.push((at_us, -1)),
                _ => {}
            }
        }
        changes.sort_unstable();
        let (mut waiting, mut since, mut integral) = (0i64, 0u64, 0u128);
        for (at, change) in changes {
            integral += waiting as u128 * u128::from(at - since);
            (waiting, since) = (waiting + change, at);
        }
        prop_assert_eq!(waiting, 0);
        prop_assert_eq!(integral, outcome.short.sum_us() + outcome.long.sum_us());
    }

    #[test]
    fn the_same_seed_gives_the_same_outcome(trace in traces(20, true), setup in setups()) {
        let (one, first) = played(&trace, &setup);
        let (two, second) = played(&trace, &setup);
        prop_assert_eq!(one, two);
        prop_assert_eq!(first, second);
    }

    #[test]
    fn an_elastic_partition_that_gives_nothing_up_is_the_static_one(
        trace in traces(25, true),
        (general, short_only, ratio, seed) in (1u32..10, 1u32..8, 1.0f64..4.0, any::<u64>()),
    ) {
        let cluster = cluster(general + short_only, short_only);
        let policy = ElasticPolicy::new(short_only, ratio, 0.0).unwrap();
        let fixed = compare::fixed(&trace, &cluster, seed, &mut NoWatch).unwrap();
        let elastic = compare::elastic(&trace, &cluster, Elastic::new(policy), seed, &mut NoWatch).unwrap();
        prop_assert_eq!(&fixed.short, &elastic.short);
        prop_assert_eq!(&fixed.long_jobs, &elastic.long_jobs);
        prop_assert_eq!(elastic.transients.launched, 0);
    }

    #[test]
    fn long_jobs_do_not_feel_short_ones_on_servers_of_their_own(
        trace in traces(25, true),
        setup in setups(),
    ) {
        // Tasks of long jobs never run on servers for short ones, and never on preemptible ones.
        let general = setup.cluster.servers - setup.cluster.short_only;
        let (_, diary) = played(&trace, &setup);
        let mut long = BTreeSet::new();
        for (_, what) in diary {
            match what {
                WatchEvent::Arrived { job, long: true } => { long.insert(job); }
                WatchEvent::Began { job, server, place, .. } if long.contains(&job) => {
                    prop_assert!(place == ServerRole::General && server < general);
                }
                _ => {}
            }
        }
    }
}
