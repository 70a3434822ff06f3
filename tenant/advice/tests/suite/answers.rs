//! What advice says of lives whose distribution is known.

use crate::world::{knowledge, lives, model, preempted, tenant};
use ebbtide_advice::{AdviceError, AdviceQuery, LifeOwners, Viewer};
use ebbtide_lifetime::description::Description;

const BATHTUB: &str = "bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.45";

#[test]
fn chances_and_expectation_are_those_of_the_distribution() {
    let truth = model(BATHTUB);
    let all = lives(truth.as_ref(), 1200, 2400.0, 6, 0.3, 11);
    let known = knowledge(&all, &Viewer::Everything, 2400.0, 24.0);
    for age in [0.0, 5.0, 20.0] {
        let advice = known
            .advice(&AdviceQuery {
                age,
                ..AdviceQuery::default()
            })
            .unwrap();
        assert_eq!(
            (advice.owners, advice.lives, advice.maximum),
            (LifeOwners::Everybody, 1200, 24.0)
        );
        let forecast = advice.figures.unwrap();
        assert!(
            (forecast.expected - truth.mean_residual(age)).abs() < 0.12 * truth.mean_residual(age),
            "{age}: {}",
            forecast.expected
        );
        for chance in &forecast.chances {
            let real = 1.0 - truth.conditional_survival(age, chance.within);
            assert!(
                (chance.chance - real).abs() < 0.06,
                "age {age}: {chance:?} against {real}"
            );
            let (share, low, high) = chance.seen.unwrap();
            assert!(low <= share && share <= high, "{chance:?}");
        }
        // The answer also contains the model as text, and the text describes the same model.
        let again = Description::parse(&forecast.model)
            .unwrap()
            .model()
            .unwrap();
        assert!((again.mean_residual(age) - forecast.expected).abs() < 1e-12);
        let last = forecast.curve.last().unwrap();
        assert!((last.hours - (24.0 - age)).abs() < 1e-9 && last.model > 0.999);
    }
}

#[test]
fn a_job_gets_a_schedule_that_is_no_worse_than_hourly_checkpoints_or_none() {
    let truth = model(BATHTUB);
    let all = lives(truth.as_ref(), 900, 2400.0, 6, 0.2, 12);
    let known = knowledge(&all, &Viewer::Everything, 2400.0, 24.0);
    for (age, job) in [
        (0.0, 8.0),
        (3.0, 2.5),
        (10.0, 30.0),
        (0.0, 0.01),
        (0.0, 168.0),
    ] {
        let question = AdviceQuery {
            age,
            job: Some(job),
            restart: 0.05,
            ..AdviceQuery::default()
        };
        let forecast = known.advice(&question).unwrap().figures.unwrap();
        let plan = forecast.schedule.unwrap();
        let work: f64 = plan.intervals.iter().sum();
        assert!(
            (work - plan.job).abs() < 1e-9 && (work - job).abs() <= plan.step,
            "{plan:?}"
        );
        assert!(plan.makespan >= work);
        // Every hour is a multiple of the grain, so the best plan knows that one, too; a checkpoint
        // that is no multiple of it is planned as a mixture.
        assert!(
            plan.makespan <= plan.hourly * 1.001,
            "job {job} at {age}: {} {}",
            plan.makespan,
            plan.hourly
        );
        if job < 24.0 && age + job < 24.0 {
            assert!(
                plan.makespan <= plan.none * 1.001,
                "job {job} at {age}: {} {}",
                plan.makespan,
                plan.none
            );
        } else if job >= 24.0 {
            assert!(plan.none.is_infinite());
        }
    }
}

#[test]
fn nine_interruptions_are_too_few_and_ten_are_not() {
    let few: Vec<_> = (0..9)
        .map(|n| preempted("a", f64::from(n), 1.5 + f64::from(n)))
        .collect();
    let advice = knowledge(&few, &tenant("a"), 100.0, f64::INFINITY)
        .advice(&AdviceQuery::default())
        .unwrap();
    assert_eq!((advice.lives, advice.own, advice.interruptions), (9, 9, 9));
    assert!(
        (advice.total_hours - 50.0).abs() < 1e-9,
        "{}",
        advice.total_hours
    );
    let why = advice.figures.unwrap_err();
    assert!(why.contains("at least 10"), "{why}");
    let enough: Vec<_> = (0..10)
        .map(|n| preempted("a", f64::from(n), 1.5 + f64::from(n)))
        .collect();
    let advice = knowledge(&enough, &tenant("a"), 100.0, f64::INFINITY)
        .advice(&AdviceQuery::default())
        .unwrap();
    assert!(advice.figures.is_ok(), "{:?}", advice.figures);
}

#[test]
fn lives_that_are_all_alike_are_too_little_to_know() {
    let alike: Vec<_> = (0..30).map(|n| preempted("a", f64::from(n), 2.0)).collect();
    for maximum in [24.0, f64::INFINITY] {
        let known = knowledge(&alike, &tenant("a"), 100.0, maximum);
        let advice = known.advice(&AdviceQuery::default()).unwrap();
        assert_eq!(advice.interruptions, 30);
        let why = advice.figures.unwrap_err();
        assert!(why.contains("too alike"), "{why}");
    }
}

#[test]
fn lives_of_no_length_and_lives_beyond_the_limit_do_no_harm() {
    let mut odd: Vec<_> = (0..40)
        .map(|n| preempted("a", f64::from(n), f64::from(n % 4) * 20.0))
        .collect();
    odd.push(preempted("a", 500.0, 1.0));
    let advice = knowledge(&odd, &tenant("a"), 200.0, 24.0)
        .advice(&AdviceQuery::default())
        .unwrap();
    // What begins later is not known yet.
    assert_eq!(advice.lives, 40);
    let forecast = advice.figures.unwrap();
    assert!(forecast.expected > 0.0 && forecast.expected <= 24.0);
}

#[test]
fn numbers_that_cannot_be_are_refused_by_the_name_of_their_field() {
    let all: Vec<_> = (0..30)
        .map(|n| preempted("a", f64::from(n), 1.0 + f64::from(n) / 3.0))
        .collect();
    let known = knowledge(&all, &tenant("a"), 100.0, 24.0);
    let good = AdviceQuery {
        job: Some(1.0),
        ..AdviceQuery::default()
    };
    let bad = [
        ("age_hours", AdviceQuery { age: -1.0, ..good }),
        (
            "age_hours",
            AdviceQuery {
                age: f64::NAN,
                ..good
            },
        ),
        (
            "age_hours",
            AdviceQuery {
                age: f64::INFINITY,
                ..good
            },
        ),
        ("age_hours", AdviceQuery { age: 24.0, ..good }),
        (
            "job_hours",
            AdviceQuery {
                job: Some(-2.0),
                ..good
            },
        ),
        (
            "job_hours",
            AdviceQuery {
                job: Some(1e-9),
                ..good
            },
        ),
        (
            "job_hours",
            AdviceQuery {
                job: Some(169.0),
                ..good
            },
        ),
        (
            "checkpoint_hours",
            AdviceQuery {
                checkpoint: 25.0,
                ..good
            },
        ),
        (
            "restart_hours",
            AdviceQuery {
                restart: -0.1,
                ..good
            },
        ),
    ];
    for (expected, question) in bad {
        let error = known.advice(&question).unwrap_err();
        assert_eq!(error.code(), "EB-ADVICE-001");
        assert!(
            matches!(&error, AdviceError::Query { field, .. } if *field == expected),
            "{error}"
        );
        assert!(error.to_string().contains(expected), "{error}");
    }
    // No server lives for a checkpoint of 24 h and a step. A job that is shorter than a life goes
    // without one; of a longer one it is said that it never ends.
    let long = AdviceQuery {
        checkpoint: 24.0,
        ..good
    };
    let plan = known.advice(&long).unwrap().figures.unwrap().schedule;
    assert_eq!(plan.unwrap().intervals.len(), 1);
    let error = known
        .advice(&AdviceQuery {
            job: Some(30.0),
            ..long
        })
        .unwrap_err();
    assert_eq!(error.code(), "EB-LIFETIME-007", "{error}");
}

#[test]
fn an_age_that_no_server_reaches_is_refused_in_words_that_make_sense_without_a_limit() {
    // Lives of minutes, and no maximum lifetime: at 5000 h the model's survival is zero.
    let all: Vec<_> = (0..40)
        .map(|n| preempted("a", f64::from(n), 0.01 + f64::from(n) / 400.0))
        .collect();
    let known = knowledge(&all, &Viewer::Everything, 100.0, f64::INFINITY);
    let question = AdviceQuery {
        age: 5_000.0,
        ..AdviceQuery::default()
    };
    let text = known.advice(&question).unwrap_err().to_string();
    assert!(
        text.contains("5000 h is so old that by the model"),
        "{text}"
    );
    assert!(!text.contains("inf"), "{text}");
}

#[test]
fn a_short_job_on_an_old_server_or_with_a_long_checkpoint_gets_a_plan_of_its_own_length() {
    // Servers that live for months: no grid has both their age and a job of seconds.
    let truth = model("exponential:lambda=0.0005,max=none");
    let all = lives(truth.as_ref(), 400, 40_000.0, 6, 0.2, 13);
    let known = knowledge(&all, &Viewer::Everything, 40_000.0, f64::INFINITY);
    for (age, job, checkpoint) in [
        (8_000.0, 0.01, 1.0 / 60.0),
        (8_000.0, 1.0, 1.0 / 60.0),
        (2_000.0, 0.5, 0.0),
        (0.0, 1.0 / 3600.0, 24.0),
        (400.0, 0.2, 24.0),
    ] {
        let question = AdviceQuery {
            age,
            job: Some(job),
            checkpoint,
            restart: 0.1,
        };
        let plan = known.advice(&question).unwrap().figures.unwrap().schedule;
        let plan = plan.unwrap();
        let work: f64 = plan.intervals.iter().sum();
        assert!(
            (work - job).abs() < 1e-9 && (plan.job - job).abs() < 1e-9,
            "{question:?}: {plan:?}"
        );
        assert!(plan.makespan >= work, "{question:?}: {plan:?}");
        assert!(
            plan.makespan <= plan.hourly * 1.001 && plan.makespan <= plan.none * 1.001,
            "{question:?}: {plan:?}"
        );
    }
}

#[test]
fn the_same_lives_give_the_same_advice_in_whatever_order_they_come() {
    let truth = model(BATHTUB);
    let mut all = lives(truth.as_ref(), 300, 600.0, 6, 0.2, 13);
    let question = AdviceQuery {
        job: Some(5.0),
        age: 1.0,
        ..AdviceQuery::default()
    };
    let one = knowledge(&all, &tenant("project-1"), 600.0, 24.0)
        .advice(&question)
        .unwrap();
    all.reverse();
    let other = knowledge(&all, &tenant("project-1"), 600.0, 24.0)
        .advice(&question)
        .unwrap();
    assert_eq!(one, other);
}
