//! What becomes of a short task whose preemptible server is taken: what a copy on an on-demand
//! server promises, what a place in the queue promises, and that it is the same.

use crate::common;

use common::{CUTOFF, SECOND, shared, traces};
use ebbtide_elastic::{
    Cluster, Elastic, ElasticPolicy, MeasuredTimes, NoWatch, Recovery, ServerRole, Setup, Trace,
    Watch, WatchEvent, compare, simulate,
};
use ebbtide_lifetime::distributions::{Bathtub, Exponential};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A task: when it comes and how long it takes.
type Task = (u32, u32);
/// A preemptible server: from when until when it is there.
type Visit = (u32, u32);

/// How a task whose server is taken goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rule {
    /// It returns to its place in the one queue of all servers.
    Requeue,
    /// A copy of it has a place in the queue of the on-demand servers; the copy sleeps while the
    /// task runs, is dropped when either has ended, and stands for the task when it was lost.
    Copy,
    /// The same, but the copy runs although the task does: either ends the other.
    Both,
}

/// When each task began the last time and when it ended, on so many on-demand servers and these
/// visits, second by second. Tasks are in the order of arrival.
fn play(rule: Rule, tasks: &[Task], on_demand: usize, visits: &[Visit]) -> Vec<(u32, u32)> {
    let servers: Vec<Visit> = std::iter::repeat_n((0, u32::MAX), on_demand)
        .chain(visits.iter().copied())
        .collect();
    // What each server runs, and until when.
    let mut runs: Vec<Option<(usize, u32)>> = vec![None; servers.len()];
    let mut begun = vec![0; tasks.len()];
    let mut ended: Vec<Option<u32>> = vec![None; tasks.len()];
    // The queues: of tasks, and of copies on demand.
    let (mut waits, mut copies) = (BTreeSet::new(), BTreeSet::new());
    for now in 0.. {
        for run in &mut runs {
            if let Some((task, _)) = run.filter(|(_, end)| *end == now) {
                (*run, ended[task]) = (None, Some(now));
                waits.remove(&task);
                copies.remove(&task);
            }
        }
        // With `Both` the other one is ended, too.
        for run in &mut runs {
            *run = run.filter(|(task, _)| ended[*task].is_none());
        }
        for (run, (_, until)) in runs.iter_mut().zip(&servers) {
            if let Some((task, _)) = run.filter(|_| *until == now) {
                *run = None;
                waits.insert(task);
            }
        }
        for (task, _) in tasks.iter().enumerate().filter(|(_, one)| one.0 == now) {
            waits.insert(task);
            copies.insert(task);
        }
        for (server, (from, until)) in servers.iter().enumerate() {
            if runs[server].is_some() || !(*from..*until).contains(&now) {
                continue;
            }
            let asleep = |task: &usize| !waits.contains(task);
            let first = match rule {
                Rule::Copy if server < on_demand => copies.iter().find(|one| !asleep(one)),
                Rule::Both if server < on_demand => copies.first(),
                _ => waits.first(),
            };
            if let Some(task) = first.copied() {
                waits.remove(&task);
                if rule == Rule::Both && server < on_demand {
                    copies.remove(&task);
                }
                begun[task] = now;
                runs[server] = Some((task, now + tasks[task].1));
            }
        }
        if ended.iter().all(Option::is_some) {
            break;
        }
    }
    let ended = ended.into_iter().map(Option::unwrap);
    begun.into_iter().zip(ended).collect()
}

fn ends(played: &[(u32, u32)]) -> Vec<u32> {
    played.iter().map(|(_, end)| *end).collect()
}

prop_compose! {
    fn small()(
        steps in prop::collection::vec((0u32..4, 1u32..7), 1..9),
        on_demand in 1usize..3,
        visits in prop::collection::vec((0u32..12, 1u32..9), 0..5),
    ) -> (Vec<Task>, usize, Vec<Visit>) {
        let mut now = 0;
        let tasks = steps.into_iter().map(|(after, lasts)| {
            now += after;
            (now, lasts)
        });
        let visits = visits.into_iter().map(|(from, stays)| (from, from + stays));
        (tasks.collect(), on_demand, visits.collect())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_place_in_the_queue_is_what_a_copy_is((tasks, on_demand, visits) in small()) {
        let requeued = play(Rule::Requeue, &tasks, on_demand, &visits);
        let copied = play(Rule::Copy, &tasks, on_demand, &visits);
        prop_assert_eq!(requeued, copied);
    }

    #[test]
    fn without_a_loss_no_task_begins_later_than_on_demand_alone(
        (tasks, on_demand, visits) in small(),
    ) {
        // Servers that come and stay: one more never makes a first-come-first-served queue slower.
        let stay: Vec<Visit> = visits.iter().map(|(from, _)| (*from, u32::MAX)).collect();
        let alone = play(Rule::Requeue, &tasks, on_demand, &[]);
        let more = play(Rule::Requeue, &tasks, on_demand, &stay);
        for (more, alone) in more.iter().zip(&alone) {
            prop_assert!(more.0 <= alone.0, "{more:?} {alone:?}");
        }
    }

    #[test]
    fn only_tasks_that_run_twice_are_never_later_than_on_demand_alone(
        (tasks, on_demand, visits) in small(),
    ) {
        // On-demand servers take the tasks in the order that they would have had; some are done
        // already, and a task fewer never makes such a queue slower.
        let alone = ends(&play(Rule::Both, &tasks, on_demand, &[]));
        let both = ends(&play(Rule::Both, &tasks, on_demand, &visits));
        prop_assert!(both.iter().zip(&alone).all(|(both, alone)| both <= alone), "{both:?} {alone:?}");
    }
}

#[test]
fn a_task_that_runs_when_its_server_is_taken_may_be_later_than_on_demand_alone() {
    // The on-demand server is busy until 10, so B begins on a preemptible one, and at 10 C finds
    // the on-demand server free. At 11 B is lost: alone it would run since 10.
    let tasks = [(0, 10), (1, 20), (2, 30)];
    let visits = [(0, 11)];
    let alone = play(Rule::Requeue, &tasks, 1, &[]);
    assert_eq!(alone, [(0, 10), (10, 30), (30, 60)]);
    for rule in [Rule::Requeue, Rule::Copy] {
        let with = play(rule, &tasks, 1, &visits);
        assert_eq!(with, [(0, 10), (40, 60), (10, 40)]);
    }
    // A copy that runs as well is not later, and B is run one and a half times.
    assert_eq!(ends(&play(Rule::Both, &tasks, 1, &visits)), [10, 30, 60]);
}

#[derive(Default)]
struct Diary(Vec<(u64, WatchEvent)>);

impl Watch for Diary {
    fn record(&mut self, at_us: u64, what: WatchEvent) {
        self.0.push((at_us, what));
    }
}

prop_compose! {
    /// Clusters whose servers share a queue, with servers for short jobs only that stay.
    fn queues()(
        (general, short_only) in (1u32..6, 2u32..8),
        (ratio, share, threshold) in (1.0f64..4.0, 0.1f64..0.7, 0.2f64..0.9),
        provisioning in 1u64..60,
        life in 0.001f64..0.05,
        outage in prop_oneof![Just(0u64), 60u64..300],
        seed in any::<u64>(),
    ) -> Setup {
        let policy = ElasticPolicy::new(short_only, ratio, share).unwrap().threshold(threshold).unwrap();
        let elastic = Elastic {
            provisioning_us: provisioning * SECOND,
            lifetime: Some(Arc::new(Exponential::new(1.0 / life, f64::INFINITY).unwrap())),
            outage_us: outage * SECOND,
            ..Elastic::new(policy)
        };
        let cluster = Cluster {
            network_us: 0,
            recovery: Recovery::Requeue,
            ..common::cluster(general + short_only, short_only)
        };
        Setup { cluster, elastic: Some(elastic), seed }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn between_the_loss_of_a_task_and_its_next_begin_no_later_job_begins(
        trace in traces(25, true),
        setup in queues(),
    ) {
        let mut diary = Diary::default();
        let outcome = simulate(&trace, &setup, &mut diary).unwrap();
        prop_assert_eq!(outcome.again.count() as u64, outcome.lost);
        // Jobs with tasks that were lost and wait, and how many.
        let mut lost: BTreeMap<u32, u32> = BTreeMap::new();
        for (at, what) in diary.0 {
            match what {
                WatchEvent::Lost { job, .. } => *lost.entry(job).or_default() += 1,
                WatchEvent::Began { job, place, .. } => {
                    if trace.jobs()[job as usize].estimate_us > CUTOFF * SECOND {
                        continue;
                    }
                    // General servers take long tasks first, others the queue in its order.
                    if let Some((first, _)) = lost.first_key_value() {
                        prop_assert!(job <= *first, "{at}: job {job} on {place:?} before {first}");
                    }
                    if let Some(count) = lost.get_mut(&job) {
                        *count -= 1;
                        if *count == 0 {
                            lost.remove(&job);
                        }
                    }
                }
                _ => {}
            }
        }
        prop_assert!(lost.is_empty());
    }
}

#[test]
fn one_queue_without_losses_is_first_come_first_served() {
    // Two servers for short jobs; the third task waits for the first that ends.
    let trace = Trace::new(vec![
        common::job(0, 10, &[10, 20]),
        common::job(1, 10, &[5]),
        common::job(2, 10, &[5]),
    ])
    .unwrap();
    let cluster = Cluster {
        network_us: 0,
        recovery: Recovery::Requeue,
        ..common::cluster(2, 2)
    };
    let fixed = compare::fixed(&trace, &cluster, 1, &mut NoWatch).unwrap();
    let waits = [0, 0, 9, 13].map(|seconds| seconds * SECOND);
    assert_eq!(fixed.short, MeasuredTimes::new(waits.to_vec()));
}

#[test]
fn on_demand_servers_are_used_first() {
    let trace = Trace::new(vec![common::job(0, 10, &[10, 10, 10])]).unwrap();
    let cluster = Cluster {
        recovery: Recovery::Requeue,
        ..common::cluster(4, 2)
    };
    let mut diary = Diary::default();
    compare::fixed(&trace, &cluster, 1, &mut diary).unwrap();
    let places: Vec<ServerRole> = diary
        .0
        .iter()
        .filter_map(|(_, what)| match what {
            WatchEvent::Began { place, .. } => Some(*place),
            _ => None,
        })
        .collect();
    let expected = [
        ServerRole::ShortOnly,
        ServerRole::ShortOnly,
        ServerRole::General,
    ];
    assert_eq!(places, expected);
}

/// Tasks lost, mean wait, and the mean and the longest time from a loss to the next begin, on
/// Yahoo's cut with a hundred times the interruptions; over three seeds, as the lab has it.
#[test]
fn yahoos_cut_has_the_figures_that_the_page_quotes() {
    let (text, reduced) = shared("YH1_sub.tr.zst");
    let trace = Trace::read(&text).unwrap();
    let rows = [Recovery::Copies, Recovery::Requeue, Recovery::RequeueLast].map(|recovery| {
        let cluster = Cluster {
            recovery,
            ..Cluster::default()
        };
        let (mut row, mut longest) = ([0.0; 3], 0.0_f64);
        for seed in 1..=3 {
            let policy = ElasticPolicy::new(80, 3.0, 0.5).unwrap();
            let model = Bathtub::new(0.414, 0.94, 0.77, 24.45, 24.0).unwrap();
            let elastic = Elastic {
                lifetime: Some(Arc::new(model)),
                life_scale: 0.01,
                ..Elastic::new(policy)
            };
            let run = compare::elastic(&trace, &cluster, elastic, seed, &mut NoWatch).unwrap();
            let each = [run.lost as f64, run.short.mean(), run.again.mean()];
            row.iter_mut()
                .zip(each)
                .for_each(|(sum, one)| *sum += one / 3.0);
            longest = longest.max(run.again.max());
        }
        let [lost, wait, again] = row;
        let tenths = |value: f64| (value * 10.0).round() / 10.0;
        (lost.round(), tenths(wait), tenths(again), longest.round())
    });
    if reduced {
        return;
    }
    let expected = [
        (638.0, 17.8, 4.5, 593.0),
        (759.0, 26.6, 0.3, 20.0),
        (754.0, 25.7, 85.3, 601.0),
    ];
    assert_eq!(rows, expected);
}
