//! What a tenant learns of others: whole batches of several tenants, or nothing.

use crate::world::{KEPT, at, knowledge, lives, model, preempted, tenant};
use ebbtide_advice::{Advice, AdviceQuery, LifeOwners, LifePool, LifeRecord, Retention, Viewer};
use ebbtide_model::{LifeEnd, Seconds};
use proptest::prelude::*;

fn asked(all: &[LifeRecord], now: f64) -> Advice {
    knowledge(all, &tenant("mine"), now, 24.0)
        .advice(&AdviceQuery {
            job: Some(4.0),
            ..AdviceQuery::default()
        })
        .unwrap()
}

/// Twelve lives of the asker, and 60 of five others over the first hundred hours.
fn region() -> Vec<LifeRecord> {
    let mut all: Vec<LifeRecord> = (0..12)
        .map(|n| preempted("mine", 7.0 * f64::from(n), 0.5 + 1.3 * f64::from(n)))
        .collect();
    all.extend((0..60).map(|n| {
        preempted(
            &format!("other-{}", n % 5),
            1.5 * f64::from(n),
            0.3 + f64::from(n * 7 % 23),
        )
    }));
    all
}

#[test]
fn others_are_not_used_before_there_is_a_batch_of_several_of_them() {
    let own: Vec<LifeRecord> = region()
        .into_iter()
        .filter(|life| life.project == "mine")
        .collect();
    let alone = asked(&own, 200.0);
    assert_eq!(
        (alone.owners, alone.lives, alone.own),
        (LifeOwners::Own, 12, 12)
    );
    let with = |others: Vec<LifeRecord>| {
        let mut all = own.clone();
        all.extend(others);
        asked(&all, 200.0)
    };
    let of = |count: u32, projects: u32| -> Vec<LifeRecord> {
        let name = |n: u32| format!("other-{}", n % projects);
        (0..count)
            .map(|n| preempted(&name(n), f64::from(n), 3.0))
            .collect()
    };
    // Nine lives, or two projects, or one project with almost all lives: the answer is the same as
    // without other tenants.
    assert_eq!(with(of(9, 5)), alone);
    assert_eq!(with(of(500, 2)), alone);
    let mut large = of(4, 2);
    large.extend((0..500).map(|n| preempted("large", f64::from(n) / 10.0, 3.0)));
    assert_eq!(with(large), alone);
    let enough = with(of(12, 3));
    assert_eq!((enough.owners, enough.own), (LifeOwners::OwnAndOthers, 12));
    assert_ne!(enough.figures, alone.figures);
}

#[test]
fn no_life_of_another_tenant_changes_an_answer_before_its_batch_is_full() {
    let mut more = region();
    let before = asked(&more, 200.0);
    assert_eq!(before.owners, LifeOwners::OwnAndOthers);
    for n in 0..9 {
        // Ends one after another, of three tenants, as short as can be told apart most easily.
        more.push(preempted(
            &format!("other-{}", n % 3),
            190.0 + f64::from(n) / 10.0,
            0.01,
        ));
        assert_eq!(asked(&more, 200.0), before, "life {n}");
    }
    more.push(preempted("other-4", 191.0, 0.01));
    assert_ne!(asked(&more, 200.0), before, "a whole batch counts");
}

#[test]
fn servers_of_others_that_run_are_not_seen_to_start_live_or_stop() {
    let mut all = region();
    let runs = |launched: f64, ended| LifeRecord {
        project: "other-1".to_owned(),
        launched: at(launched),
        ended,
        limit: 24.0,
    };
    let before = asked(&all, 200.0);
    // The server started after the last batch, so no answer contains its start or its end.
    all.push(runs(198.0, None));
    assert_eq!(asked(&all, 200.0), before);
    all.pop();
    for end in LifeEnd::ALL {
        all.push(runs(198.0, Some((at(199.5), end))));
        assert_eq!(asked(&all, 200.0), before, "{end}");
        all.pop();
    }
    // And time alone changes nothing either.
    assert_eq!(asked(&all, 203.7), before);
}

#[test]
fn batches_close_on_whole_hours() {
    let all = region();
    let mut more = all.clone();
    more.extend((0..12).map(|n| preempted(&format!("other-{}", n % 4), 199.0, 1.25)));
    // All of them ended at 200.25; the answer at 200.9 excludes them, the answer at 201 includes
    // them.
    let before = asked(&all, 200.0);
    assert_eq!(asked(&more, 200.9), before);
    assert_ne!(asked(&more, 201.0), before);
}

#[test]
fn ones_own_lives_count_at_once() {
    let mut all = region();
    let before = asked(&all, 200.0);
    all.push(preempted("mine", 199.0, 0.4));
    let after = asked(&all, 200.0);
    assert_eq!((before.own, after.own), (12, 13));
    // For those who see everything, so do all.
    let everything = LifePool::of(&all, &Viewer::Everything, at(200.0), 24.0, KEPT);
    assert_eq!(
        (everything.observed_lives.len(), everything.owners),
        (73, LifeOwners::Everybody)
    );
}

#[test]
fn lives_of_others_that_are_deleted_are_not_seen_to_go() {
    // Kept for 600 h: each hour one more is over.
    let kept = Retention(Seconds(600 * 3600));
    let projects = ["a", "b", "c", "d"];
    let all: Vec<LifeRecord> = (0..1500)
        .map(|n| {
            preempted(
                projects[n as usize % 4],
                f64::from(n) * 1.3,
                f64::from(n % 17),
            )
        })
        .collect();
    for hour in 0..40 {
        let now = at(1700.0 + f64::from(hour));
        let gone = at(1100.0 + f64::from(hour));
        let left: Vec<LifeRecord> = all
            .iter()
            .filter(|life| life.ended.is_none_or(|(end, _)| end >= gone))
            .cloned()
            .collect();
        assert!(left.len() + 500 < all.len());
        let pool = |lives: &[LifeRecord]| LifePool::of(lives, &tenant("mine"), now, 24.0, kept);
        assert_eq!(pool(&left), pool(&all), "hour {hour}");
        assert_eq!(pool(&left).owners, LifeOwners::OwnAndOthers);
    }
}

#[test]
fn what_is_told_is_coarse() {
    let truth = model("bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.45");
    let all = lives(truth.as_ref(), 700, 1400.0, 6, 0.2, 21);
    let known = knowledge(&all, &tenant("project-0"), 1400.0, 24.0);
    let advice = known.advice(&AdviceQuery::default()).unwrap();
    assert_eq!(advice.owners, LifeOwners::OwnAndOthers);
    assert_eq!((advice.lives - advice.own) % 10, 0);
    assert_eq!(advice.interruptions % 10, 0);
    let forecast = advice.figures.unwrap();
    let whole = |share: f64| (share * 100.0 - (share * 100.0).round()).abs() < 1e-9;
    for chance in &forecast.chances {
        let (share, low, high) = chance.seen.unwrap();
        assert!(whole(share) && whole(low) && whole(high), "{chance:?}");
    }
    assert!(
        forecast
            .curve
            .iter()
            .filter_map(|point| point.seen)
            .all(whole)
    );
    for row in forecast
        .calibration
        .rows
        .iter()
        .chain(&forecast.calibration.overall)
    {
        assert!(
            whole(row.forecast) && whole(row.observed.0) && row.lives % 10 == 0,
            "{row:?}"
        );
    }
    // Parameters of three digits, and no age of anybody's end.
    for (_, value) in forecast
        .model
        .split_once(':')
        .unwrap()
        .1
        .split(',')
        .map(|pair| pair.split_once('=').unwrap())
    {
        let digits = value
            .trim_start_matches(['0', '.'])
            .chars()
            .filter(char::is_ascii_digit)
            .count();
        assert!(digits <= 3, "{}", forecast.model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// The promise itself, on the pool: a server of another tenant runs, then it ends, then an hour
    /// is over. Nothing has changed, or a batch is full.
    #[test]
    fn a_pool_changes_by_batches_or_not_at_all(
        ends in prop::collection::vec((0.0..50.0f64, 0..4u32), 0..60), launched in 0.0..50.0f64, project in 0..4u32
    ) {
        let name = |project: u32| format!("other-{project}");
        let mut all: Vec<LifeRecord> = ends
            .iter()
            .map(|&(end, project)| preempted(&name(project), end / 2.0, end / 2.0))
            .collect();
        let now = ends.iter().map(|end| end.0).fold(launched, f64::max);
        let pool = |all: &[LifeRecord], now: f64| LifePool::of(all, &tenant("mine"), at(now), f64::INFINITY, KEPT);
        let without = pool(&all, now);
        all.push(LifeRecord { ended: None, ..preempted(&name(project), launched, 0.0) });
        let running = pool(&all, now);
        // What is not in a batch yet is no more than nine, or of few tenants: so one that runs adds
        // itself at most, as long as it had lived when the last batch closed.
        prop_assert!(running.observed_lives.len() - without.observed_lives.len() <= 1);
        if let Some(last) = all.last_mut() {
            last.ended = Some((at(now), LifeEnd::Preempted));
        }
        // Its hour is not over: that it ended is not known.
        if (0.001..0.999).contains(&now.fract()) {
            prop_assert!(pool(&all, now) == running);
        }
        // An hour later a batch is full with it, and ten ends at least have become known at once;
        // or nothing has changed.
        let later = pool(&all, now.floor() + 1.0);
        let known = |pool: &LifePool| pool.observed_lives.iter().filter(|one| one.seen.ended).count();
        prop_assert!(later == running || known(&later) >= known(&running) + 10);
    }
}
