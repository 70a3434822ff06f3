//! Checkpoint plans.

use super::{MINUTE, each, minutes, numbers, refit};
use ebbtide_lifetime::distributions::{Bathtub, Exponential, Uniform, Weibull};
use ebbtide_lifetime::plan::checkpoint::{
    CheckpointOptions, EquationReading, Planner, expected_makespan, without_checkpoints, young_daly,
};
use ebbtide_lifetime::plan::{
    RunningTime, average_failure, failure_probability, running_time, wasted_work,
};
use ebbtide_lifetime::{Lifetime, LifetimeError};

/// All cases of one reading, for every parameter set.
fn plans_are_those_of_the_vectors(key: &str, reading: EquationReading) {
    each(|name, model, vector| {
        let cases = vector["checkpoint_dp"][key].as_object().unwrap();
        assert_eq!(cases.len(), 11);
        for (case, expected) in cases {
            let (job, age) = case[1..].split_once("_age").unwrap();
            let (job, age): (f64, f64) = (job.parse().unwrap(), age.parse().unwrap());
            let options = CheckpointOptions {
                reading,
                ..CheckpointOptions::default()
            };
            let plan = Planner::new(model, job / 60.0, age / 60.0, &options)
                .unwrap()
                .schedule();
            let makespan = expected["makespan"].as_f64().unwrap();
            assert!(
                (plan.makespan * 60.0 - makespan).abs() < 1e-4,
                "{name} {case} {}",
                plan.makespan * 60.0
            );
            let overhead = expected["overhead_percent"].as_f64().unwrap();
            assert!(
                (plan.overhead * 100.0 - overhead).abs() < 1e-3,
                "{name} {case}"
            );
            let intervals: Vec<u64> =
                serde_json::from_value(expected["intervals"].clone()).unwrap();
            assert_eq!(minutes(&plan.intervals), intervals, "{name} {case}");
        }
    });
}

#[test]
fn corrected_plans_are_those_of_the_vectors() {
    let key =
        "corrected: conditional failure prob, lost work from interval start, restart on new VM";
    plans_are_those_of_the_vectors(key, EquationReading::Corrected);
}

#[test]
fn plans_of_the_papers_reading_are_those_of_the_vectors() {
    let key = "unconditional, lost=(i+d)/2, restart on new VM";
    plans_are_those_of_the_vectors(key, EquationReading::Paper);
}

#[test]
fn plans_of_the_papers_reading_with_exact_loss_are_those_of_the_vectors() {
    let key = "unconditional F(t+i+d)-F(t), lost work from interval start, restart on new VM";
    plans_are_those_of_the_vectors(key, EquationReading::PaperExactLoss);
}

#[test]
fn the_papers_reading_gives_the_papers_schedule_with_the_non_idle_refit() {
    let model = Bathtub::new(0.4139, 0.9059, 0.769, 24.45, 24.0).unwrap();
    let options = CheckpointOptions {
        reading: EquationReading::Paper,
        ..CheckpointOptions::default()
    };
    let plan = Planner::new(&model, 5.0, 0.0, &options).unwrap().schedule();
    assert_eq!(minutes(&plan.intervals), [15, 18, 22, 28, 38, 59, 120]);
}

#[test]
fn youngs_and_dalys_rule_costs_what_the_vectors_say() {
    each(|name, model, vector| {
        let vector = &vector["young_daly"];
        let tau = vector["tau_min_delta1_mttf60"].as_f64().unwrap();
        let options = CheckpointOptions::default();
        let plan = young_daly(4.0, MINUTE, 1.0).unwrap();
        assert!((plan[0] * 60.0 - tau).abs() < 1e-9);
        assert!((plan.iter().sum::<f64>() - 4.0).abs() < 1e-12);
        for (age, expected) in numbers(&vector["overhead_4h_percent"]) {
            let own = expected_makespan(model, &plan, age, &options).unwrap();
            assert!(
                ((own / 4.0 - 1.0) * 100.0 - expected).abs() < 0.0051,
                "{name} 4 h at {age} h: {own} {expected}"
            );
        }
        for (length, expected) in numbers(&vector["overhead_t0_percent"]) {
            let plan = young_daly(length, MINUTE, 1.0).unwrap();
            let own = expected_makespan(model, &plan, 0.0, &options).unwrap();
            assert!(
                ((own / length - 1.0) * 100.0 - expected).abs() < 0.0051,
                "{name} {length} h: {own} {expected}"
            );
        }
        let four = vec![4.0 * MINUTE; 60];
        let own = expected_makespan(model, &four, 0.0, &options).unwrap();
        let expected = vector["tau_4min_4h_t0"].as_f64().unwrap();
        assert!(
            ((own / 4.0 - 1.0) * 100.0 - expected).abs() < 0.0051,
            "{name}: {own} {expected}"
        );
    });
}

#[test]
fn simulated_lives_take_as_long_as_the_plan_expects() {
    let models: Vec<Box<dyn Lifetime>> = vec![
        Box::new(refit()),
        Box::new(Exponential::new(0.4, 24.0).unwrap()),
        Box::new(Weibull::new(0.3, 0.5, f64::INFINITY).unwrap()),
    ];
    for (model, (length, age, cost, restart, last)) in models.iter().flat_map(|model| {
        [
            (5.0, 0.0, 1.0, 0.0, true),
            (4.0, 19.0, 1.0, 5.0, true),
            (8.0, 1.0, 2.4, 3.0, false),
            (3.0, 0.0, 0.3, 0.0, true),
        ]
        .map(|case| (model, case))
    }) {
        let options = CheckpointOptions {
            cost: cost * MINUTE,
            restart: restart * MINUTE,
            final_checkpoint: last,
            ..CheckpointOptions::default()
        };
        let plan = Planner::new(model.as_ref(), length, age, &options).unwrap();
        let expected = plan.schedule().makespan;
        let seen = plan.simulate(model.as_ref(), 40_000, 5);
        assert!(
            (seen.mean - expected).abs() < 3.3 * seen.standard_error,
            "{} {length} h at {age} h: {} ± {} instead of {expected}",
            model.name(),
            seen.mean,
            seen.standard_error
        );
        assert!(seen.standard_error < 0.02 * expected);
    }
}

#[test]
fn no_fixed_schedule_is_better_than_the_plan() {
    let model = refit();
    for (length, age) in [(5.0, 0.0), (4.0, 19.0), (2.0, 1.0), (10.0, 6.0)] {
        let options = CheckpointOptions {
            restart: 2.0 * MINUTE,
            ..CheckpointOptions::default()
        };
        let plan = Planner::new(&model, length, age, &options)
            .unwrap()
            .schedule();
        let of = |intervals: &[f64]| expected_makespan(&model, intervals, age, &options).unwrap();
        // The plan may be made anew after a failure, the fixed schedule not.
        assert!(of(&plan.intervals) >= plan.makespan - 1e-9);
        assert!(of(&young_daly(length, MINUTE, 1.0).unwrap()) > plan.makespan);
        assert!(of(&[length]) >= plan.makespan - 1e-9);
        for parts in 1..40u32 {
            let even = vec![length / f64::from(parts); parts as usize];
            assert!(of(&even) > plan.makespan - 0.002, "{length} {age} {parts}");
        }
    }
}

#[test]
fn a_memoryless_instance_gets_equal_intervals_near_youngs_and_dalys() {
    let model = Exponential::new(1.0, f64::INFINITY).unwrap();
    let plan = Planner::new(&model, 4.0, 0.0, &CheckpointOptions::default())
        .unwrap()
        .schedule();
    let intervals = minutes(&plan.intervals);
    let (least, most) = (
        intervals.iter().min().unwrap(),
        intervals.iter().max().unwrap(),
    );
    assert!(
        most - least <= 1 && (10..=11).contains(least),
        "{intervals:?}"
    );
    let fixed =
        expected_makespan(&model, &plan.intervals, 0.0, &CheckpointOptions::default()).unwrap();
    assert!((fixed - plan.makespan).abs() < 1e-9);
}

#[test]
fn a_plan_can_be_resumed_on_a_new_instance_and_keeps_its_meaning_in_other_steps() {
    let model = refit();
    let plan = Planner::new(&model, 5.0, 2.0, &CheckpointOptions::default()).unwrap();
    let again = plan.resumed(3.0).unwrap();
    let fresh = Planner::new(&model, 3.0, 0.0, &CheckpointOptions::default())
        .unwrap()
        .schedule();
    assert_eq!(minutes(&again.intervals), minutes(&fresh.intervals));
    assert!((again.makespan - fresh.makespan).abs() < 1e-9);
    assert_eq!(plan.resumed(0.0).unwrap_err().code(), "EB-LIFETIME-006");
    // A checkpoint of a minute in steps of five is a fifth of a step.
    let coarse = CheckpointOptions {
        step: 5.0 * MINUTE,
        ..CheckpointOptions::default()
    };
    let coarse = Planner::new(&model, 5.0, 2.0, &coarse).unwrap().schedule();
    assert!((coarse.makespan - plan.schedule().makespan).abs() < 0.01);
    assert!((coarse.intervals.iter().sum::<f64>() - 5.0).abs() < 1e-9);
}

#[test]
fn jobs_longer_than_any_lifetime_end_with_checkpoints_and_never_without() {
    let model = refit();
    let coarse = CheckpointOptions {
        step: 5.0 * MINUTE,
        ..CheckpointOptions::default()
    };
    let plan = Planner::new(&model, 30.0, 0.0, &coarse).unwrap().schedule();
    assert!(
        plan.makespan > 30.0 && plan.makespan < 36.0,
        "{}",
        plan.makespan
    );
    assert_eq!(
        without_checkpoints(&model, 30.0, 0.0, &coarse).unwrap(),
        f64::INFINITY
    );
    let short = without_checkpoints(&model, 1.0, 0.0, &coarse).unwrap();
    assert!(
        short > 1.0
            && short < running_time(&model, 0.0, 1.0, RunningTime::Corrected).unwrap() + 0.1
    );
}

#[test]
fn a_plan_says_where_the_maximum_lifetime_makes_it_go_on_with_a_new_instance() {
    let model = refit();
    let coarse = CheckpointOptions {
        step: 5.0 * MINUTE,
        ..CheckpointOptions::default()
    };
    let plan = Planner::new(&model, 30.0, 3.0, &coarse).unwrap();
    let schedule = plan.schedule();
    let [at] = schedule.new_instances[..] else {
        panic!("{schedule:?}");
    };
    // 21 hours are left of the first life, and the last of them are too dangerous to begin anything
    // in.
    let before: f64 = schedule.intervals[..at].iter().sum();
    assert!((15.0..21.0).contains(&before), "{before}");
    assert!((schedule.intervals.iter().sum::<f64>() - 30.0).abs() < 1e-9);
    // On the new instance it begins as every plan for that much work does.
    let fresh = plan.resumed(30.0 - before).unwrap();
    assert_eq!(
        minutes(&schedule.intervals[at..]),
        minutes(&fresh.intervals)
    );
    assert!(fresh.new_instances.is_empty());
    let late = Planner::new(&model, 5.0, 23.99, &CheckpointOptions::default()).unwrap();
    assert_eq!(late.schedule().new_instances, [0]);
}

#[test]
fn a_simulation_with_lives_too_short_for_the_plan_ends_and_says_infinity() {
    let plan = Planner::new(&refit(), 5.0, 10.0, &CheckpointOptions::default()).unwrap();
    assert!(plan.schedule().intervals[0] > 1.0);
    let short = Uniform::new(0.05).unwrap();
    assert_eq!(plan.simulate(&short, 1, 3).mean, f64::INFINITY);
}

#[test]
fn impossible_questions_are_refused() {
    let model = refit();
    let options = CheckpointOptions::default();
    let code = |length, age, options: CheckpointOptions| {
        Planner::new(&model, length, age, &options)
            .unwrap_err()
            .code()
    };
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(code(bad, 0.0, options), "EB-LIFETIME-006");
        assert_eq!(code(5.0, bad, options), "EB-LIFETIME-006");
        assert_eq!(
            code(
                5.0,
                0.0,
                CheckpointOptions {
                    step: bad,
                    ..options
                }
            ),
            "EB-LIFETIME-006"
        );
        assert_eq!(
            code(
                5.0,
                0.0,
                CheckpointOptions {
                    cost: bad,
                    ..options
                }
            ),
            "EB-LIFETIME-006"
        );
        assert_eq!(
            code(
                5.0,
                0.0,
                CheckpointOptions {
                    restart: bad,
                    ..options
                }
            ),
            "EB-LIFETIME-006"
        );
        assert!(failure_probability(&model, bad, 6.0).is_err());
        assert!(wasted_work(&model, bad, RunningTime::Literal).is_err());
        assert!(young_daly(4.0, bad, 1.0).is_err());
        assert!(expected_makespan(&model, &[1.0, bad], 0.0, &options).is_err());
    }
    assert!(expected_makespan(&model, &[], 0.0, &options).is_err());
    assert_eq!(code(0.0, 0.0, options), "EB-LIFETIME-006");
    assert_eq!(code(5.0, 24.0, options), "EB-LIFETIME-006");
    assert_eq!(
        code(
            24.0,
            0.0,
            CheckpointOptions {
                step: 1.0 / 3600.0,
                ..options
            }
        ),
        "EB-LIFETIME-006"
    );
    assert_eq!(
        code(
            5.0,
            0.0,
            CheckpointOptions {
                cost: 25.0,
                ..options
            }
        ),
        "EB-LIFETIME-007"
    );
    let memoryless = Exponential::new(0.1, f64::INFINITY).unwrap();
    assert!(matches!(
        average_failure(&memoryless, 6.0, None),
        Err(LifetimeError::Question { .. })
    ));
}
