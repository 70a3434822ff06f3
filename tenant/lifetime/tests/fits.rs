//! Fits: on samples of known models, on the public data set of the paper, and on what cannot be
//! fitted.

use ebbtide_lifetime::distributions::{Bathtub, Exponential, Weibull};
use ebbtide_lifetime::fit::{Curve, Estimator, Family, Fit, fit, kaplan_meier, verdict};
use ebbtide_lifetime::{Lifetime, Observation, Observations};
use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde_json::Value;

use crate::data;

const PAPER: Estimator = Estimator::LeastSquares(Curve::EndedOnly);

struct Row {
    zone: String,
    kind: String,
    idle: bool,
    seen: Observation,
}

fn rows() -> Vec<Row> {
    let mut reader = csv::Reader::from_path(data::file().path).unwrap();
    let names = reader.headers().unwrap().clone();
    let at = |name: &str| names.iter().position(|n| n == name).unwrap();
    let (zone, kind, preemptible) = (at("zone"), at("machine_type"), at("preemptible"));
    let (event, seconds, idle) = (at("end_event"), at("time_in_sec"), at("idle"));
    reader
        .records()
        .map(Result::unwrap)
        .filter(|row| &row[preemptible] == "true")
        .map(|row| Row {
            zone: row[zone].to_owned(),
            kind: row[kind].to_owned(),
            idle: &row[idle] == "idle",
            seen: Observation {
                hours: row[seconds].parse::<f64>().unwrap() / 3600.0,
                ended: &row[event] == "preempted",
            },
        })
        .collect()
}

fn group(rows: &[Row], name: &str) -> Observations {
    let wanted = |row: &&Row| match name {
        "ALL" => true,
        "idle" => row.idle,
        "non-idle" => !row.idle,
        _ => {
            let (kind, zone) = name.split_once(' ').unwrap();
            row.kind == kind && (zone == "all-zones" || row.zone == zone)
        }
    };
    Observations::new(rows.iter().filter(wanted).map(|row| row.seen), 24.0).unwrap()
}

fn vectors() -> Vec<Value> {
    serde_json::from_str(include_str!("vectors/001_refit.json")).unwrap()
}

fn near(fit: &Fit, expected: &Value, tolerance: f64) -> Vec<String> {
    ["A", "tau1", "tau2", "b"]
        .iter()
        .zip(&fit.parameters)
        .filter_map(|(name, own)| {
            let value = expected[name].as_f64().unwrap();
            ((own / value - 1.0).abs() > tolerance)
                .then(|| format!("{name} {own} instead of {value}"))
        })
        .collect()
}

/// The rows of the refit table: pooled, without idle ones, by type, and figure 1's.
const TABLE: [&str; 8] = [
    "ALL",
    "non-idle",
    "n1-highcpu-2 all-zones",
    "n1-highcpu-4 all-zones",
    "n1-highcpu-8 all-zones",
    "n1-highcpu-16 all-zones",
    "n1-highcpu-16 us-east1-b",
    "n1-highcpu-32 all-zones",
];

#[test]
fn least_squares_reproduces_the_refit_table_within_two_percent() {
    let rows = rows();
    if data::file().reduced {
        // Of the model by which they were made, though half of them were stopped.
        let seen = group(&rows, "ALL");
        let method = Estimator::LeastSquares(Curve::KaplanMeier);
        let fit = fit(Family::Bathtub, method, &seen).unwrap();
        let made_of = serde_json::json!({"A": 0.45, "tau1": 1.0, "tau2": 0.8, "b": 24.0});
        let wrong = near(&fit, &made_of, 0.35);
        assert!(wrong.is_empty() && fit.r2 > 0.95, "{wrong:?} {}", fit.r2);
        return;
    }
    let vectors = vectors();
    for name in TABLE {
        let vector = vectors.iter().find(|v| v["group"] == name).unwrap();
        let seen = group(&rows, name);
        assert_eq!(
            seen.ended() as u64,
            vector["n_preempted"].as_u64().unwrap(),
            "{name}"
        );
        assert_eq!(
            seen.all().len() as u64,
            vector["n_total"].as_u64().unwrap(),
            "{name}"
        );
        for (method, key) in [
            (PAPER, "preempted_ecdf"),
            (Estimator::LeastSquares(Curve::KaplanMeier), "kaplan_meier"),
        ] {
            let fit = fit(Family::Bathtub, method, &seen).unwrap();
            let expected = &vector[key];
            let wrong = near(&fit, expected, 0.02);
            println!(
                "{name} {key} {:?} R2 {:.4} ± {:?}",
                fit.parameters, fit.r2, fit.standard_errors
            );
            assert!(wrong.is_empty(), "{name} {key}: {wrong:?}");
            assert!(
                (fit.r2 - expected["r2"].as_f64().unwrap()).abs() < 0.003,
                "{name} {key} {}",
                fit.r2
            );
            assert!(fit.standard_errors.is_some(), "{name} {key}");
        }
    }
}

#[test]
fn the_classic_models_fit_at_least_as_well_as_the_vectors_say() {
    let rows = rows();
    if data::file().reduced {
        let seen = group(&rows, "ALL");
        let r2 = |family| fit(family, PAPER, &seen).unwrap().r2;
        for family in [
            Family::Exponential,
            Family::Weibull,
            Family::GompertzMakeham,
        ] {
            assert!(
                r2(family) > 0.4 && r2(family) < r2(Family::Bathtub),
                "{family:?}"
            );
        }
        return;
    }
    let vectors = vectors();
    for name in TABLE {
        let vector = &vectors.iter().find(|v| v["group"] == name).unwrap()["alternatives"];
        let seen = group(&rows, name);
        let r2 = |family| fit(family, PAPER, &seen).unwrap().r2;
        // The vectors' search stayed where it began in some groups (Weibull for two CPUs); ours may
        // find better, never worse.
        for (family, key) in [
            (Family::Exponential, "exp_r2"),
            (Family::Weibull, "weibull_r2"),
            (Family::GompertzMakeham, "gm_r2"),
        ] {
            let (own, expected) = (r2(family), vector[key].as_f64().unwrap());
            assert!(own > expected - 0.003, "{name} {key} {own} {expected}");
            if name == "ALL" && family != Family::GompertzMakeham {
                assert!(
                    (own - expected).abs() < 0.003,
                    "{name} {key} {own} {expected}"
                );
            }
        }
    }
}

#[test]
fn the_likelihood_says_that_stopped_instances_would_have_lived_longer() {
    let seen = group(&rows(), "ALL");
    let paper = fit(Family::Bathtub, PAPER, &seen).unwrap();
    let likely = fit(Family::Bathtub, Estimator::MaximumLikelihood, &seen).unwrap();
    println!(
        "{:?} ± {:?} KS {} AIC {}",
        likely.parameters, likely.standard_errors, likely.ks, likely.aic
    );
    assert!(likely.parameters[0] < paper.parameters[0] - 0.05);
    assert!(likely.model.mean() > paper.model.mean() + 1.0);
    assert!(likely.aic < paper.aic);
}

#[test]
fn with_the_cap_as_an_atom_and_stops_censored_the_public_data_prefer_weibull_to_the_bathtub() {
    let seen = group(&rows(), "ALL");
    let fits: Vec<Fit> = Family::ALL
        .into_iter()
        .map(|family| fit(family, Estimator::MaximumLikelihood, &seen).unwrap())
        .collect();
    for fit in &fits {
        println!(
            "{} KS {:.3} AIC {:.1} {:?}",
            fit.family.name(),
            fit.ks,
            fit.aic,
            fit.parameters
        );
    }
    let verdict = verdict(&fits, &seen).unwrap();
    println!("{}", verdict.words);
    let paper = |family| fit(family, PAPER, &seen).unwrap().r2;
    assert!(paper(Family::Bathtub) > paper(Family::Weibull) + 0.05);
    if data::file().reduced {
        // They were made by a bathtub, whose wall is before the cap.
        return;
    }
    // The wall of the bathtub at 24 h is the provider's limit, which every model has as its atom
    // here; what is left is a hazard that falls with age, and two parameters say that better than
    // four. Without the atom, as the paper fits, the bathtub wins.
    assert_eq!(fits[verdict.best].family, Family::Weibull);
    assert_eq!(fits[0].family, Family::Bathtub);
    assert!(fits[0].aic < fits[1].aic - 100.0 && fits[0].ks < fits[verdict.best].ks);
    assert!(
        verdict
            .words
            .starts_with("weibull is clearly better than bathtub"),
        "{}",
        verdict.words
    );
    assert!(paper(Family::Bathtub) > paper(Family::Weibull) + 0.1);
}

/// Lifetimes of a model, stopped by users after exponential times with this mean.
fn sampled(model: &dyn Lifetime, count: usize, stop: f64, seed: u64) -> Observations {
    let mut chance = Pcg64::seed_from_u64(seed);
    let user = Exponential::new(1.0 / stop, f64::INFINITY).unwrap();
    let seen = (0..count).map(|_| {
        let (life, stopped) = (model.sample(&mut chance), user.sample(&mut chance));
        Observation {
            hours: life.min(stopped),
            ended: life <= stopped,
        }
    });
    Observations::new(seen.collect::<Vec<_>>(), model.maximum()).unwrap()
}

#[test]
fn the_likelihood_finds_the_true_parameters_within_four_standard_errors_though_half_are_censored() {
    let models: Vec<(Family, Box<dyn Lifetime>)> = vec![
        (
            Family::Bathtub,
            Box::new(Bathtub::new(0.4, 1.0, 0.8, 24.2, 24.0).unwrap()),
        ),
        (
            Family::Exponential,
            Box::new(Exponential::new(0.1, 24.0).unwrap()),
        ),
        (
            Family::Weibull,
            Box::new(Weibull::new(0.1, 0.6, f64::INFINITY).unwrap()),
        ),
    ];
    for (family, model) in models {
        let seen = sampled(model.as_ref(), 6000, 12.0, 11);
        let likely = fit(family, Estimator::MaximumLikelihood, &seen).unwrap();
        let errors = likely.standard_errors.clone().unwrap();
        for (((name, truth), own), error) in model
            .parameters()
            .iter()
            .zip(&likely.parameters)
            .zip(&errors)
        {
            assert!(
                (own - truth).abs() < 4.0 * error,
                "{name} {own} ± {error} instead of {truth}"
            );
            assert!(*error < 0.25 * truth, "{name} ± {error}");
        }
        assert!(likely.ks < 0.06, "{}", likely.ks);
        let empirical = kaplan_meier(&seen).unwrap();
        let end = model.maximum().min(24.0);
        for step in 1..20 {
            let t = end * f64::from(step) / 20.0;
            assert!(
                (empirical.cdf(t) - model.cdf(t)).abs() < 0.05,
                "{} at {t}",
                family.name()
            );
        }
    }
}

#[test]
fn each_kind_of_sample_is_known_by_its_verdict() {
    let weibull = Weibull::new(0.3, 2.5, f64::INFINITY).unwrap();
    let seen = sampled(&weibull, 2000, 20.0, 3);
    let fits: Vec<Fit> = [Family::Exponential, Family::Weibull]
        .into_iter()
        .map(|family| fit(family, Estimator::MaximumLikelihood, &seen).unwrap())
        .collect();
    let verdict = verdict(&fits, &seen).unwrap();
    assert_eq!(fits[verdict.best].family, Family::Weibull);
    assert!(
        verdict.fits && verdict.words.contains("clearly better than exponential"),
        "{}",
        verdict.words
    );
    assert!(verdict.words.ends_with("use weibull."), "{}", verdict.words);
}

fn observed(lives: &[(f64, bool)]) -> Result<Observations, ebbtide_lifetime::LifetimeError> {
    let seen = lives
        .iter()
        .map(|&(hours, ended)| Observation { hours, ended });
    Observations::new(seen.collect::<Vec<_>>(), 24.0)
}

#[test]
fn what_cannot_be_fitted_is_refused_with_its_reason() {
    for lives in [
        &[][..],
        &[(3.0, true)],
        &[(3.0, false), (4.0, false)],
        &[(3.0, true); 50],
    ] {
        let seen = observed(lives).unwrap();
        for family in Family::ALL
            .into_iter()
            .filter(|family| *family != Family::Uniform || lives.len() < 3)
        {
            for method in [PAPER, Estimator::MaximumLikelihood] {
                assert_eq!(
                    fit(family, method, &seen).unwrap_err().code(),
                    "EB-LIFETIME-004"
                );
            }
        }
    }
    assert_eq!(
        kaplan_meier(&observed(&[(3.0, false)]).unwrap())
            .unwrap_err()
            .code(),
        "EB-LIFETIME-004"
    );
    assert!(verdict(&[], &observed(&[]).unwrap()).is_none());
    for bad in [-1.0, f64::NAN, f64::INFINITY, 5400.0] {
        let error = observed(&[(1.0, true), (bad, true)]).unwrap_err();
        assert_eq!(error.code(), "EB-LIFETIME-003");
        assert!(error.to_string().starts_with("lifetime 2 is "), "{error}");
    }
    assert!(
        observed(&[(5400.0, true)])
            .unwrap_err()
            .to_string()
            .contains("another unit")
    );
}

#[test]
fn the_likelihood_of_a_bathtub_is_not_fooled_by_slopes_beyond_the_last_end() {
    // Ends evenly spread over 13 h, and no longer life: a wall before that age would have an
    // infinite slope at the later ends.
    let lives: Vec<(f64, bool)> = (1..60)
        .map(|row| (0.23 * f64::from(row), row % 5 != 0))
        .collect();
    let seen = observed(&lives).unwrap();
    let likely = fit(Family::Bathtub, Estimator::MaximumLikelihood, &seen).unwrap();
    assert!(
        likely.ks < 0.15 && likely.log_likelihood.is_finite(),
        "{likely:?}"
    );
    assert!(likely.model.cdf(13.0) > 0.8, "{likely:?}");
}

#[test]
fn kaplan_and_meier_have_the_textbook_values() {
    // Ends at 1, 3 and 4, stops at 2 and at 3 (after the end there): S = 4/5, 4/5 · 2/3, 0.
    let seen = observed(&[
        (3.0, false),
        (1.0, true),
        (2.0, false),
        (3.0, true),
        (4.0, true),
    ])
    .unwrap();
    let model = kaplan_meier(&seen).unwrap();
    for (t, alive) in [(1.0, 0.8), (3.0, 0.8 * 2.0 / 3.0), (4.0, 0.0)] {
        assert!((model.survival(t) - alive).abs() < 1e-12, "{t}");
    }
}
