//! The test for changes: its rate of false alarms, its delay, and the public data.

use ebbtide_lifetime::change::{Detector, check};
use ebbtide_lifetime::distributions::{Bathtub, Exponential, Phase, Phases, Uniform, Weibull};
use ebbtide_lifetime::fit::{Curve, Estimator, Family, fit, kaplan_meier};
use ebbtide_lifetime::table::Table;
use ebbtide_lifetime::{Lifetime, Observation, Observations};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::data;

fn bathtub() -> Bathtub {
    Bathtub::new(0.414, 0.94, 0.77, 24.45, 24.0).unwrap()
}

/// Lifetimes of a model, stopped by their users after exponential times with a mean of `stop`
/// hours.
fn lives(model: &dyn Lifetime, count: usize, stop: f64, chance: &mut Pcg64) -> Vec<Observation> {
    let user = Exponential::new(1.0 / stop, f64::INFINITY).unwrap();
    (0..count)
        .map(|_| {
            let (life, stopped) = (model.sample(chance), user.sample(chance));
            Observation {
                hours: life.min(stopped),
                ended: life <= stopped,
            }
        })
        .collect()
}

/// Models of every kind: with and without atom, formulas and points.
fn models() -> Vec<Box<dyn Lifetime>> {
    let mut chance = Pcg64::seed_from_u64(1);
    let sample = Observations::new(lives(&bathtub(), 700, 20.0, &mut chance), 24.0).unwrap();
    vec![
        Box::new(bathtub()),
        Box::new(Exponential::new(0.1, 24.0).unwrap()),
        Box::new(Weibull::new(0.07, 0.5, f64::INFINITY).unwrap()),
        Box::new(Uniform::new(24.0).unwrap()),
        Box::new(kaplan_meier(&sample).unwrap()),
        Box::new(
            Phases::new(vec![
                Phase {
                    until: 3.0,
                    hazard: 0.2,
                },
                Phase {
                    until: 24.0,
                    hazard: 0.0,
                },
            ])
            .unwrap(),
        ),
    ]
}

#[test]
fn while_the_model_holds_the_statistic_grows_by_one_a_lifetime() {
    let mut chance = Pcg64::seed_from_u64(2);
    let model = bathtub();
    for stop in [3.0, 30.0] {
        let runs = 20_000;
        let values: Vec<f64> = (0..runs)
            .map(|_| {
                let mut detector = Detector::new(&model);
                let seen = lives(&model, 4, stop, &mut chance);
                seen.into_iter()
                    .map(|one| detector.take(one))
                    .last()
                    .unwrap()
            })
            .collect();
        let mean = values.iter().sum::<f64>() / f64::from(runs);
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / f64::from(runs);
        let error = (variance / f64::from(runs)).sqrt();
        assert!((mean - 4.0).abs() < 3.3 * error, "{mean} ± {error}");
        assert!(error < 0.1, "{error}");
    }
}

#[test]
fn false_alarms_are_not_more_than_was_said_however_users_stop_their_instances() {
    for model in models() {
        for stop in [2.0, 15.0, 1e6] {
            let (worlds, alarms) = (200, 0.1);
            let false_alarms = (0..worlds)
                .filter(|&seed| {
                    let mut chance = Pcg64::seed_from_u64(seed);
                    let seen = lives(model.as_ref(), 200, stop, &mut chance);
                    check(model.as_ref(), &seen, alarms)
                        .unwrap()
                        .alarm
                        .is_some()
                })
                .count();
            println!(
                "{} stopped after {stop} h: {false_alarms} of {worlds}",
                model.name()
            );
            // 20 are allowed on average; the bound is Doob's, and real rates are a fraction of it.
            assert!(
                false_alarms <= 20,
                "{} {stop}: {false_alarms}",
                model.name()
            );
        }
    }
}

/// How many lifetimes after a change at the hundredth the alarm comes, on average over seeds, and
/// at least how many of `worlds` saw it.
fn delay(before: &dyn Lifetime, after: &dyn Lifetime, worlds: u64) -> (f64, usize) {
    let (mut sum, mut found) = (0.0, 0);
    for seed in 0..worlds {
        let mut chance = Pcg64::seed_from_u64(seed);
        let mut seen = lives(before, 100, 15.0, &mut chance);
        seen.extend(lives(after, 900, 15.0, &mut chance));
        let report = check(before, &seen, 0.05).unwrap();
        let Some(alarm) = report.alarm else { continue };
        if alarm.at <= 100 {
            continue;
        }
        assert!(alarm.since <= alarm.at);
        found += 1;
        sum += (alarm.at - 100) as f64;
    }
    (sum / found as f64, found)
}

#[test]
fn changes_are_found_after_this_many_lifetimes() {
    let before = bathtub();
    let changes: [(&str, Box<dyn Lifetime>, f64); 5] = [
        (
            "early ends doubled",
            Box::new(Bathtub::new(0.75, 0.94, 0.77, 24.9, 24.0).unwrap()),
            110.0,
        ),
        (
            "early ends halved",
            Box::new(Bathtub::new(0.207, 0.94, 0.77, 23.91, 24.0).unwrap()),
            150.0,
        ),
        (
            "early ends three times as fast",
            Box::new(Bathtub::new(0.414, 0.31, 0.77, 24.45, 24.0).unwrap()),
            150.0,
        ),
        (
            "no early ends at all",
            Box::new(Uniform::new(24.0).unwrap()),
            70.0,
        ),
        (
            "memoryless, 6 h",
            Box::new(Exponential::new(1.0 / 6.0, 24.0).unwrap()),
            70.0,
        ),
    ];
    for (name, after, most) in changes {
        let (mean, found) = delay(&before, after.as_ref(), 40);
        println!("{name}: {mean:.0} lifetimes, found by {found} of 40");
        assert!(found == 40 && mean < most, "{name}: {mean}, {found} of 40");
    }
}

#[test]
fn the_report_says_what_changed_and_since_when() {
    let before = bathtub();
    let after = Bathtub::new(0.75, 0.94, 0.77, 24.9, 24.0).unwrap();
    let mut chance = Pcg64::seed_from_u64(7);
    let mut seen = lives(&before, 300, 15.0, &mut chance);
    seen.extend(lives(&after, 300, 15.0, &mut chance));
    let report = check(&before, &seen, 0.01).unwrap();
    let alarm = report.alarm.unwrap();
    assert!((260..=340).contains(&alarm.since), "{alarm:?}");
    assert!(alarm.change.factor > 1.0 && alarm.at > 300, "{alarm:?}");
    assert_eq!(report.statistic.len(), 600);
    assert!(report.statistic[alarm.at - 1] >= report.bound);
    assert!(
        report.statistic[..alarm.at - 1]
            .iter()
            .all(|value| *value < report.bound)
    );
    let first = &report.phases[0];
    assert!(
        first.factor.1 > 1.2 && first.factor.0 < first.factor.2,
        "{first:?}"
    );
    assert_eq!((report.phases[0].from, report.phases[3].to), (0.0, 24.0));
}

#[test]
fn a_model_fitted_to_some_hundred_lifetimes_is_not_taken_for_a_change() {
    let truth = bathtub();
    let alarms = (0..40u64)
        .filter(|&seed| {
            let mut chance = Pcg64::seed_from_u64(1000 + seed);
            let first = Observations::new(lives(&truth, 700, 15.0, &mut chance), 24.0).unwrap();
            let model = fit(Family::Bathtub, Estimator::MaximumLikelihood, &first)
                .unwrap()
                .model;
            let next = lives(&truth, 700, 15.0, &mut chance);
            check(model.as_ref(), &next, 0.05).unwrap().alarm.is_some()
        })
        .count();
    println!("{alarms} of 40");
    assert!(alarms <= 2, "{alarms}");
}

#[test]
fn hazards_that_are_off_by_a_tenth_are_seldom_taken_for_a_change_and_doubled_ones_always() {
    let with = |times: f64| {
        let phases = [(3.0, 0.1), (22.0, 0.012), (24.0, 0.006)];
        let phases = phases.map(|(until, hazard)| Phase {
            until,
            hazard: hazard * times,
        });
        Phases::new(phases.to_vec()).unwrap()
    };
    let model = with(1.0);
    for (times, least, most) in [(1.1, 0, 5), (0.9, 0, 5), (2.0, 40, 40), (0.5, 40, 40)] {
        let alarms = (0..40u64)
            .filter(|&seed| {
                let mut chance = Pcg64::seed_from_u64(seed);
                let seen = lives(&with(times), 700, 15.0, &mut chance);
                check(&model, &seen, 0.05).unwrap().alarm.is_some()
            })
            .count();
        println!("{times} times: {alarms} of 40");
        assert!((least..=most).contains(&alarms), "{times}: {alarms}");
    }
}

#[test]
fn the_public_data_do_not_fit_the_papers_way_which_forgets_stopped_instances() {
    let mut rows = Table::parse(&data::preemptions()).unwrap().rows;
    let count = if data::file().reduced { 984 } else { 1426 };
    assert_eq!(rows.len(), count);
    rows.sort_by_key(|row| row.launched);
    let seen: Vec<Observation> = rows.iter().map(|row| row.observation).collect();
    let all = Observations::new(seen.iter().copied(), 24.0).unwrap();
    let paper = fit(
        Family::Bathtub,
        Estimator::LeastSquares(Curve::EndedOnly),
        &all,
    )
    .unwrap();
    let report = check(paper.model.as_ref(), &seen, 0.01).unwrap();
    println!("{:?} {:?}", report.alarm, report.phases);
    assert!(report.alarm.is_some());
    let own = kaplan_meier(&all).unwrap();
    let report = check(&own, &seen, 0.01).unwrap();
    println!("{:?} {:?}", report.alarm, report.phases);
}

#[test]
fn questions_without_an_answer_are_refused() {
    let model = bathtub();
    let one = [Observation {
        hours: 3.0,
        ended: true,
    }];
    for bad in [0.0, 1.0, -0.5, f64::NAN] {
        assert_eq!(
            check(&model, &one, bad).unwrap_err().code(),
            "EB-LIFETIME-006"
        );
    }
    assert_eq!(
        check(&model, &[], 0.01).unwrap_err().code(),
        "EB-LIFETIME-004"
    );
    assert!(check(&model, &one, 0.01).unwrap().alarm.is_none());
    // What the model calls impossible is an alarm at once.
    let short = Uniform::new(2.0).unwrap();
    let long = [Observation {
        hours: 3.0,
        ended: true,
    }; 3];
    assert!(check(&short, &long, 0.01).unwrap().alarm.is_some());
}
