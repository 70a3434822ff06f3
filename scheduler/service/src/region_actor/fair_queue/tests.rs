use super::*;
use crate::region_actor::queued::Call;
use ebbtide_region::Tick;
use tokio::sync::oneshot;

fn ask(project: &str, instances: usize) -> Work {
    Work::Question(project.to_owned(), instances, Box::new(|_| {}))
}

fn tick() -> Work {
    let (answer, _) = oneshot::channel();
    Work::Input(Box::new(Call {
        input: Tick,
        answer,
        trace: None,
    }))
}

/// A batch as pairs of project and instances.
fn batch(fair: &mut FairQueue) -> Vec<(String, usize)> {
    fair.batch(256)
        .iter()
        .map(|work| match request(work) {
            Some((project, instances)) => (project.to_owned(), instances),
            None => ("-".to_owned(), 0),
        })
        .collect()
}

fn of(project: &str, instances: usize) -> (String, usize) {
    (project.to_owned(), instances)
}

#[test]
fn small_requests_of_others_pass_between_large_ones() {
    let mut fair = FairQueue::default();
    for _ in 0..26 {
        fair.push(ask("greedy", 1000));
    }
    fair.push(ask("modest", 1));
    assert_eq!(batch(&mut fair), [of("modest", 1)]);
    assert_eq!(batch(&mut fair), [of("greedy", 1000)]);
    fair.push(ask("modest", 2));
    fair.push(tick());
    assert_eq!(batch(&mut fair), [of("-", 0), of("modest", 2)]);
    let rest = (0..25).flat_map(|_| batch(&mut fair));
    assert_eq!(rest.collect::<Vec<_>>(), vec![of("greedy", 1000); 25]);
    assert!(fair.is_empty());
}

#[test]
fn a_large_request_is_not_starved_by_small_ones() {
    let mut fair = FairQueue::default();
    fair.push(ask("large", 1000));
    let before = (0..)
        .take_while(|_| {
            for _ in 0..300 {
                fair.push(ask("many", 1));
            }
            !batch(&mut fair).contains(&of("large", 1000))
        })
        .count();
    assert!(before <= 9, "{before} batches");
}

#[test]
fn projects_that_ask_much_have_the_same_share_and_one_alone_has_all() {
    let mut fair = FairQueue::default();
    for _ in 0..600 {
        fair.push(ask("one", 1));
    }
    assert_eq!(batch(&mut fair).len(), 256);
    for _ in 0..600 {
        fair.push(ask("two", 4));
    }
    let both = batch(&mut fair);
    let instances = |project: &str| -> usize {
        let own = both.iter().filter(|(name, _)| name == project);
        own.map(|(_, instances)| instances).sum()
    };
    assert_eq!((instances("one"), instances("two")), (128, 128));
}

#[test]
fn nothing_is_lost_and_the_order_within_a_project_stays() {
    let mut fair = FairQueue::default();
    let sizes = [1, 40, 3, 1000, 2, 500, 31, 33];
    for size in sizes {
        fair.push(ask("one", size));
        fair.push(ask("two", size));
        fair.push(tick());
    }
    let mut all = Vec::new();
    while !fair.is_empty() {
        let next = batch(&mut fair);
        assert!(!next.is_empty());
        all.extend(next);
    }
    assert_eq!(all.iter().filter(|(name, _)| name == "-").count(), 8);
    for project in ["one", "two"] {
        let own = all.iter().filter(|(name, _)| name == project);
        let own: Vec<usize> = own.map(|(_, size)| *size).collect();
        assert_eq!(own, sizes);
    }
}

#[test]
fn what_needs_no_decision_goes_before_the_next_large_request_and_starves_none() {
    let mut fair = FairQueue::default();
    for _ in 0..3 {
        fair.push(ask("greedy", 1000));
    }
    for _ in 0..3 {
        // Each time, one tick arrives while the others are handled.
        fair.push(tick());
        assert_eq!(batch(&mut fair), [of("-", 0)]);
        fair.push(tick());
        assert_eq!(batch(&mut fair), [of("-", 0), of("greedy", 1000)]);
    }
    assert!(fair.is_empty());
}

/// A caller that sends one request after the other, with a look after each: between two of its
/// answers, at most one large request is handled.
#[test]
fn each_step_of_a_modest_caller_waits_for_one_large_request_at_most() {
    let mut fair = FairQueue::default();
    for _ in 0..26 {
        fair.push(ask("greedy", 1000));
    }
    let mut large = 0;
    for step in 0..20 {
        let wanted = match step % 2 {
            0 => {
                fair.push(tick());
                of("-", 0)
            }
            _ => {
                fair.push(ask("modest", 1));
                of("modest", 1)
            }
        };
        let mut between = 0;
        loop {
            let now = batch(&mut fair);
            between += now
                .iter()
                .filter(|work| **work == of("greedy", 1000))
                .count();
            fair.push(ask("greedy", 1000));
            if now.contains(&wanted) {
                break;
            }
        }
        assert!(between <= 1, "{between} large ones before step {step}");
        large += between;
    }
    assert!(large > 0, "large ones are decided, too");
}
