//! Running times, reuse and checkpoint plans against the paper's vectors, and against lives lived through.

#![allow(clippy::unwrap_used, clippy::expect_used)] // All of this file is tests; helpers too may fail loudly.

use ebbtide_lifetime::distributions::{Bathtub, Exponential, Uniform, Weibull};
use ebbtide_lifetime::plan::checkpoint::{
    Options, Planner, Reading, expected_makespan, without_checkpoints, young_daly,
};
use ebbtide_lifetime::plan::{
    RunningTime, as_likely_to_last, average_failure, curves, failure_probability, keeps,
    running_time, switch_age, switch_age_by_risk, switch_length, wasted_if_one_failure,
    wasted_work,
};
use ebbtide_lifetime::{Lifetime, LifetimeError};
use serde_json::Value;

/// Every parameter set of the vectors with its model.
fn each(check: impl Fn(&str, &Bathtub, &Value)) {
    let vectors: Value = serde_json::from_str(include_str!("vectors/001_model.json")).unwrap();
    for (name, vector) in vectors["models"].as_object().unwrap() {
        let p = |key: &str| vector["params"][key].as_f64().unwrap();
        let model = Bathtub::new(p("A"), p("tau1"), p("tau2"), p("b"), 24.0).unwrap();
        check(name, &model, vector);
    }
}

fn numbers(value: &Value) -> Vec<(f64, f64)> {
    let pairs = value.as_object().unwrap().iter();
    pairs
        .map(|(k, v)| (k.parse().unwrap(), v.as_f64().unwrap()))
        .collect()
}

fn refit() -> Bathtub {
    Bathtub::new(0.414, 0.94, 0.77, 24.45, 24.0).unwrap()
}

const MINUTE: f64 = 1.0 / 60.0;

fn minutes(intervals: &[f64]) -> Vec<u64> {
    intervals
        .iter()
        .map(|hours| (hours * 60.0).round() as u64)
        .collect()
}

#[test]
fn wasted_work_and_failure_probabilities_are_those_of_the_vectors() {
    each(|name, model, vector| {
        for (t, value) in numbers(&vector["E_W1_eq5"]) {
            let own = wasted_if_one_failure(model, t, RunningTime::Literal).unwrap();
            assert!(
                (own - value).abs() < 1e-9,
                "{name} eq 5 at {t}: {own} {value}"
            );
        }
        for (t, value) in numbers(&vector["increase_hours_eq7"]) {
            let own = wasted_work(model, t, RunningTime::Literal).unwrap();
            assert!(
                (own - value).abs() < 1e-9,
                "{name} eq 7 at {t}: {own} {value}"
            );
        }
        for (s, value) in numbers(&vector["fail_prob_6h_at_start"]) {
            let own = failure_probability(model, s, 6.0).unwrap();
            assert!(
                (own - value).abs() < 1e-9,
                "{name} at age {s}: {own} {value}"
            );
        }
        let ten = wasted_work(model, 10.0, RunningTime::Literal).unwrap();
        assert!((ten * 60.0 - vector["increase_10h_minutes"].as_f64().unwrap()).abs() < 1e-7);
        assert!((ten * 10.0 - vector["increase_10h_percent"].as_f64().unwrap()).abs() < 1e-7);
        let crossover = vector["crossover_with_uniform_h"].as_f64().unwrap();
        let uniform = Uniform::new(24.0).unwrap();
        let gap = |t: f64| {
            wasted_work(model, t, RunningTime::Literal).unwrap()
                - wasted_work(&uniform, t, RunningTime::Literal).unwrap()
        };
        // The vectors' crossover is read off a grid; it is within a few seconds of ours.
        assert!(gap(crossover).abs() < 1e-3, "{name} {}", gap(crossover));
        assert!(gap(crossover - 0.1) > 0.0, "{name}");
    });
}

#[test]
fn the_corrected_equations_5_and_7_differ_from_the_printed_ones_by_the_atom_at_the_maximum_only() {
    each(|name, model, _| {
        for t in [1.0, 10.0, 23.9] {
            for of in [wasted_work, wasted_if_one_failure] {
                let (literal, corrected) = (
                    of(model, t, RunningTime::Literal).unwrap(),
                    of(model, t, RunningTime::Corrected).unwrap(),
                );
                assert_eq!(literal, corrected, "{name} {t}");
            }
        }
        // A job as long as any life loses the whole life, whenever it ends: equation 3 with the atom.
        let lost = wasted_work(model, 24.0, RunningTime::Corrected).unwrap();
        assert!(
            (lost - model.mean()).abs() < 1e-6,
            "{name} {lost} {}",
            model.mean()
        );
        let literal = wasted_work(model, 24.0, RunningTime::Literal).unwrap();
        assert!(
            (literal - model.mean_without_atom()).abs() < 1e-6,
            "{name} {literal}"
        );
        let certain = wasted_if_one_failure(model, 24.0, RunningTime::Corrected).unwrap();
        assert!((certain - lost).abs() < 1e-12, "{name}");
    });
}

#[test]
fn the_curves_of_figures_4_to_7_say_what_the_text_says() {
    let model = refit();
    let uniform = Uniform::new(24.0).unwrap();
    // Figure 4: bathtub and uniform cross between 4 and 5 h; a uniform job of 10 h gets 2 h longer.
    let (bathtub, even) = (
        curves::wasted_by_length(&model, 20.0, 40).unwrap(),
        curves::wasted_by_length(&uniform, 20.0, 40).unwrap(),
    );
    let crossing = bathtub.iter().zip(&even).find(|(b, e)| b.1 < e.1).unwrap();
    assert!((4.0..=5.0).contains(&crossing.0.0), "{crossing:?}");
    assert!((even[19].1 - 2.08).abs() < 0.01 && (bathtub[19].1 - 0.39).abs() < 0.01);
    // Figure 5: 6 h: at age 0 0.4; beyond 18 h a kept instance certainly fails, the policy stays at 0.4.
    let keep = curves::failure_by_age(&model, 6.0, 24.0, 48, None).unwrap();
    let policy =
        curves::failure_by_age(&model, 6.0, 24.0, 48, Some(RunningTime::UntilDone)).unwrap();
    for ((age, kept), (_, chosen)) in keep.iter().zip(&policy) {
        if (18.0..24.0).contains(age) {
            assert!(
                *kept > 0.999 && (chosen - 0.413).abs() < 0.01,
                "{age} {kept} {chosen}"
            );
        }
        // Two hours before the switch, expected work lost and chance to fail disagree; nowhere else.
        assert!(
            chosen <= kept || (16.0..18.1).contains(age),
            "{age} {kept} {chosen}"
        );
    }
    // Figure 6: averaged over ages the policy fails half as often.
    let average = |believed: &dyn Lifetime, policy| {
        curves::failure_by_length(&model, believed, 20.0, 5, policy).unwrap()
    };
    let (memoryless, own) = (
        average(&model, None),
        average(&model, Some(RunningTime::Corrected)),
    );
    for (without, with) in memoryless.iter().zip(&own) {
        let ratio = without.1 / with.1;
        assert!((1.6..2.1).contains(&ratio), "{} h: {ratio}", with.0);
    }
    // Figure 7: decisions by the parameters of another type cost little.
    let other = Bathtub::new(0.27, 1.64, 0.76, 24.06, 24.0).unwrap();
    for (right, wrong) in own
        .iter()
        .zip(&average(&other, Some(RunningTime::Corrected)))
    {
        assert!(
            (wrong.1 - right.1).abs() < 0.02,
            "{} h: {} {}",
            right.0,
            right.1,
            wrong.1
        );
    }
}

#[test]
fn until_it_is_done_an_instance_that_certainly_fails_is_never_kept() {
    let model = refit();
    // Equation 8 counts what is lost: a quarter of an hour before the maximum that is next to nothing.
    assert!(keeps(&model, 23.8, 6.0, RunningTime::Corrected).unwrap());
    let done = RunningTime::UntilDone;
    for age in [18.0, 20.0, 23.0, 23.8, 23.99] {
        assert!(!keeps(&model, age, 6.0, done).unwrap(), "{age}");
    }
    for age in [0.0, 0.1, 1.0, 10.0, 16.0] {
        assert!(keeps(&model, age, 6.0, done).unwrap(), "{age}");
    }
    let equation = switch_age(&model, 6.0, RunningTime::Corrected)
        .unwrap()
        .unwrap();
    let switch = switch_age(&model, 6.0, done).unwrap().unwrap();
    assert!(switch > equation && switch < 18.0, "{switch} {equation}");
    // On a new instance: T + waste / (1 - F(T)).
    let waste = wasted_work(&model, 6.0, RunningTime::Corrected).unwrap();
    let expected = 6.0 + waste / model.survival(6.0);
    let own = running_time(&model, 0.0, 6.0, done).unwrap();
    assert!((own - expected).abs() < 1e-9, "{own} {expected}");
    assert_eq!(
        running_time(&model, 0.0, 24.0, done).unwrap(),
        f64::INFINITY
    );
}

#[test]
fn by_equal_risk_a_job_of_six_hours_changes_to_a_new_instance_at_eighteen() {
    each(|name, model, vector| {
        let expected = &vector["reuse_6h_switch_age_h"]["equal_failure_probability"];
        let own = switch_age_by_risk(model, 6.0).unwrap().unwrap();
        assert!(
            (own - expected.as_f64().unwrap()).abs() < 0.0151,
            "{name} {own} {expected}"
        );
        assert!(as_likely_to_last(model, own - 0.01, 6.0).unwrap());
        assert!(!as_likely_to_last(model, own + 0.01, 6.0).unwrap());
    });
}

#[test]
fn a_uniform_lifetime_wastes_the_square_of_the_job() {
    let uniform = Uniform::new(24.0).unwrap();
    for t in [1.0, 6.0, 20.0] {
        assert!(
            (wasted_work(&uniform, t, RunningTime::Literal).unwrap() - t * t / 48.0).abs() < 1e-12
        );
        assert!(
            (wasted_if_one_failure(&uniform, t, RunningTime::Literal).unwrap() - t / 2.0).abs()
                < 1e-12
        );
    }
}

#[test]
fn the_switch_ages_are_those_of_the_vectors() {
    each(|name, model, vector| {
        let switch = &vector["reuse_6h_switch_age_h"];
        for (key, reading) in [
            ("literal_eq8", RunningTime::Literal),
            ("corrected_conditional", RunningTime::Corrected),
        ] {
            let own = switch_age(model, 6.0, reading).unwrap().unwrap();
            let expected = switch[key].as_f64().unwrap();
            // The vectors have the next hundredth of an hour.
            assert!(
                (own - expected).abs() < 0.0151,
                "{name} {key} {own} {expected}"
            );
        }
        // By equal failure probability alone.
        let new = failure_probability(model, 0.0, 6.0).unwrap();
        let worse = |s: f64| failure_probability(model, s, 6.0).unwrap() > new;
        let expected = switch["equal_failure_probability"].as_f64().unwrap();
        assert!(
            worse(expected + 0.005) && !worse(expected - 0.015),
            "{name}"
        );
        // Equation 8 as printed sends jobs away from instances that are half a minute old.
        let early = &vector["reuse_6h_prefers_new_early"];
        assert!(
            !keeps(
                model,
                early["literal_eq8"][0].as_f64().unwrap(),
                6.0,
                RunningTime::Literal
            )
            .unwrap()
        );
        assert!(early["corrected_conditional"].is_null());
        for age in [0.01, 0.02, 0.1, 1.0] {
            assert!(
                keeps(model, age, 6.0, RunningTime::Corrected).unwrap(),
                "{name} {age}"
            );
        }
    });
}

#[test]
fn average_failures_are_those_of_the_vectors() {
    each(|name, model, vector| {
        for (length, row) in vector["avg_failure_by_job_length"].as_object().unwrap() {
            let length: f64 = length.parse().unwrap();
            for (key, policy) in [
                ("memoryless", None),
                ("policy_corrected", Some(RunningTime::Corrected)),
                ("policy_literal", Some(RunningTime::Literal)),
            ] {
                let own = average_failure(model, length, policy).unwrap();
                let expected = row[key].as_f64().unwrap();
                // The vectors' averages are over the ages 0, 0.1, … 23.9 h; the crate's grid is finer, which matters close to the
                // end of life, where policies change their mind within minutes.
                let chances = (0..240).map(|tenth| {
                    let age = f64::from(tenth) * 0.1;
                    let kept =
                        policy.is_none_or(|reading| keeps(model, age, length, reading).unwrap());
                    failure_probability(model, if kept { age } else { 0.0 }, length).unwrap()
                });
                // Where a job of 23 h cannot end before the maximum, equation 8 as printed goes on beyond it, and the vectors always take a
                // new instance; here the density ends at the maximum. The only difference in all vectors.
                let allowed = if length == 23.0 && policy == Some(RunningTime::Literal) {
                    0.007
                } else {
                    1e-4
                };
                let same = chances.sum::<f64>() / 240.0;
                assert!(
                    (same - expected).abs() < allowed,
                    "{name} {length} h {key}: {same} {expected}"
                );
                assert!(
                    (own - same).abs() < 0.007,
                    "{name} {length} h {key}: {own} {same}"
                );
            }
        }
    });
}

#[test]
fn the_switch_length_and_the_switch_age_are_each_others_inverse() {
    let model = refit();
    for length in [2.0, 6.0, 10.0] {
        let age = switch_age(&model, length, RunningTime::Corrected)
            .unwrap()
            .unwrap();
        let back = switch_length(&model, age, RunningTime::Corrected)
            .unwrap()
            .unwrap();
        assert!((back - length).abs() < 0.02, "{length} {age} {back}");
    }
    // A memoryless instance is as good as new for ever.
    let memoryless = Exponential::new(0.1, f64::INFINITY).unwrap();
    assert_eq!(
        switch_age(&memoryless, 6.0, RunningTime::Corrected).unwrap(),
        None
    );
    assert_eq!(
        switch_length(&memoryless, 3.0, RunningTime::Corrected).unwrap(),
        Some(f64::INFINITY)
    );
}

/// All cases of one reading, for every parameter set.
fn plans_are_those_of_the_vectors(key: &str, reading: Reading) {
    each(|name, model, vector| {
        let cases = vector["checkpoint_dp"][key].as_object().unwrap();
        assert_eq!(cases.len(), 11);
        for (case, expected) in cases {
            let (job, age) = case[1..].split_once("_age").unwrap();
            let (job, age): (f64, f64) = (job.parse().unwrap(), age.parse().unwrap());
            let options = Options {
                reading,
                ..Options::default()
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
    plans_are_those_of_the_vectors(key, Reading::Corrected);
}

#[test]
fn plans_of_the_papers_reading_are_those_of_the_vectors() {
    let key = "unconditional, lost=(i+d)/2, restart on new VM";
    plans_are_those_of_the_vectors(key, Reading::Paper);
}

#[test]
fn plans_of_the_papers_reading_with_exact_loss_are_those_of_the_vectors() {
    let key = "unconditional F(t+i+d)-F(t), lost work from interval start, restart on new VM";
    plans_are_those_of_the_vectors(key, Reading::PaperExactLoss);
}

#[test]
fn the_papers_reading_gives_the_papers_schedule_with_the_non_idle_refit() {
    let model = Bathtub::new(0.4139, 0.9059, 0.769, 24.45, 24.0).unwrap();
    let options = Options {
        reading: Reading::Paper,
        ..Options::default()
    };
    let plan = Planner::new(&model, 5.0, 0.0, &options).unwrap().schedule();
    assert_eq!(minutes(&plan.intervals), [15, 18, 22, 28, 38, 59, 120]);
}

#[test]
fn youngs_and_dalys_rule_costs_what_the_vectors_say() {
    each(|name, model, vector| {
        let vector = &vector["young_daly"];
        let tau = vector["tau_min_delta1_mttf60"].as_f64().unwrap();
        let options = Options::default();
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
        let options = Options {
            cost: cost * MINUTE,
            restart: restart * MINUTE,
            final_checkpoint: last,
            ..Options::default()
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
        let options = Options {
            restart: 2.0 * MINUTE,
            ..Options::default()
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
    let plan = Planner::new(&model, 4.0, 0.0, &Options::default())
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
    let fixed = expected_makespan(&model, &plan.intervals, 0.0, &Options::default()).unwrap();
    assert!((fixed - plan.makespan).abs() < 1e-9);
}

#[test]
fn a_plan_can_be_resumed_on_a_new_instance_and_keeps_its_meaning_in_other_steps() {
    let model = refit();
    let plan = Planner::new(&model, 5.0, 2.0, &Options::default()).unwrap();
    let again = plan.resumed(3.0).unwrap();
    let fresh = Planner::new(&model, 3.0, 0.0, &Options::default())
        .unwrap()
        .schedule();
    assert_eq!(minutes(&again.intervals), minutes(&fresh.intervals));
    assert!((again.makespan - fresh.makespan).abs() < 1e-9);
    assert_eq!(plan.resumed(0.0).unwrap_err().code(), "EB-LIFETIME-006");
    // A checkpoint of a minute in steps of five is a fifth of a step.
    let coarse = Options {
        step: 5.0 * MINUTE,
        ..Options::default()
    };
    let coarse = Planner::new(&model, 5.0, 2.0, &coarse).unwrap().schedule();
    assert!((coarse.makespan - plan.schedule().makespan).abs() < 0.01);
    assert!((coarse.intervals.iter().sum::<f64>() - 5.0).abs() < 1e-9);
}

#[test]
fn jobs_longer_than_any_lifetime_end_with_checkpoints_and_never_without() {
    let model = refit();
    let coarse = Options {
        step: 5.0 * MINUTE,
        ..Options::default()
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
    let coarse = Options {
        step: 5.0 * MINUTE,
        ..Options::default()
    };
    let plan = Planner::new(&model, 30.0, 3.0, &coarse).unwrap();
    let schedule = plan.schedule();
    let [at] = schedule.new_instances[..] else {
        panic!("{schedule:?}");
    };
    // 21 hours are left of the first life, and the last of them are too dangerous to begin anything in.
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
    let late = Planner::new(&model, 5.0, 23.99, &Options::default()).unwrap();
    assert_eq!(late.schedule().new_instances, [0]);
}

#[test]
fn a_simulation_with_lives_too_short_for_the_plan_ends_and_says_infinity() {
    let plan = Planner::new(&refit(), 5.0, 10.0, &Options::default()).unwrap();
    assert!(plan.schedule().intervals[0] > 1.0);
    let short = Uniform::new(0.05).unwrap();
    assert_eq!(plan.simulate(&short, 1, 3).mean, f64::INFINITY);
}

#[test]
fn impossible_questions_are_refused() {
    let model = refit();
    let options = Options::default();
    let code = |length, age, options: Options| {
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
                Options {
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
                Options {
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
                Options {
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
            Options {
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
            Options {
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
