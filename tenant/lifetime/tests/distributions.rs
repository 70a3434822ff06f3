//! What holds for every distribution, and the paper's own values.

use ebbtide_lifetime::distributions::{
    Bathtub, Empirical, Exponential, GompertzMakeham, Phase, Phases, Uniform, Weibull,
};
use ebbtide_lifetime::{Lifetime, LifetimeError};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde_json::Value;

fn bathtub() -> impl Strategy<Value = Box<dyn Lifetime>> {
    (0.05..0.9f64, 0.1..6.0f64, 0.1..3.0f64, 20.0..27.0f64)
        .prop_map(|(a, t1, t2, b)| Box::new(Bathtub::new(a, t1, t2, b, 24.0).unwrap()) as _)
}

fn end() -> impl Strategy<Value = f64> {
    prop_oneof![Just(f64::INFINITY), 1.0..48.0f64]
}

fn any_model() -> impl Strategy<Value = Box<dyn Lifetime>> {
    prop_oneof![
        bathtub(),
        (0.01..3.0f64, end()).prop_map(|(l, e)| Box::new(Exponential::new(l, e).unwrap()) as _),
        (0.01..3.0f64, 0.4..4.0f64, end())
            .prop_map(|(l, k, e)| Box::new(Weibull::new(l, k, e).unwrap()) as _),
        (0.0..1.0f64, 1e-6..0.1f64, 0.05..1.0f64, end())
            .prop_map(|(l, a, b, e)| Box::new(GompertzMakeham::new(l, a, b, e).unwrap()) as _),
        (0.5..48.0f64).prop_map(|e| Box::new(Uniform::new(e).unwrap()) as _),
        prop::collection::vec((0.1..8.0f64, 0.0..1.0f64), 1..6).prop_map(|parts| {
            let mut until = 0.0;
            let phases = parts
                .into_iter()
                .map(|(span, hazard)| {
                    until += span;
                    Phase { until, hazard }
                })
                .collect();
            Box::new(Phases::new(phases).unwrap()) as _
        }),
        prop::collection::vec((0.1..8.0f64, 0.0..0.15f64), 1..6).prop_map(|parts| {
            let (mut time, mut share) = (0.0, 0.0);
            let points: Vec<(f64, f64)> = parts
                .into_iter()
                .map(|(span, more)| {
                    time += span;
                    share += more;
                    (time, share)
                })
                .collect();
            Box::new(Empirical::new(&points).unwrap()) as _
        }),
    ]
}

/// The trapezoid rule, independent of the crate's own integrals.
fn trapezoids(f: impl Fn(f64) -> f64, from: f64, to: f64, steps: u32) -> f64 {
    let h = (to - from) / f64::from(steps);
    (0..steps)
        .map(|n| from + h * f64::from(n))
        .map(|t| 0.5 * h * (f(t + 1e-12) + f(t + h - 1e-12)))
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn the_cdf_rises_from_0_to_1(model in any_model()) {
        prop_assert_eq!(model.cdf(-1e-9), 0.0);
        let end = model.maximum().min(model.quantile(1.0 - 1e-12));
        let mut before = 0.0;
        for step in 0..=500 {
            let now = model.cdf(end * f64::from(step) / 500.0);
            prop_assert!((0.0..=1.0).contains(&now) && now >= before - 1e-15, "{} {before} {now}", model.name());
            before = now;
        }
        prop_assert!(model.cdf(end * 1.000001) > 1.0 - 1e-11);
        prop_assert!(model.atom() >= 0.0);
    }

    #[test]
    fn the_density_integrates_to_the_cdf(model in any_model(), share in 0.02..0.98f64) {
        let end = model.maximum().min(model.quantile(0.999));
        // Weibull's density has a pole at 0 for k < 1: begin behind it.
        let (from, to) = (end * 0.01, end * share.max(0.02));
        let area = trapezoids(|t| model.density(t), from, to, 20_000);
        let rise = model.continuous_cdf(to) - model.continuous_cdf(from);
        prop_assert!((area - rise).abs() < 2e-4, "{} {area} {rise}", model.name());
    }

    #[test]
    fn the_hazard_is_the_density_over_the_survival(model in any_model(), share in 0.01..0.95f64) {
        let t = model.quantile(share).min(model.maximum() * 0.99);
        let expected = model.density(t) / (1.0 - model.cdf(t));
        prop_assert!((model.hazard(t) - expected).abs() <= 1e-12 * expected.max(1.0));
    }

    #[test]
    fn the_quantile_inverts_the_cdf(model in any_model(), p in 0.001..0.999f64) {
        let t = model.quantile(p);
        let reached = model.cdf(t);
        if t < model.maximum() {
            prop_assert!((reached - p).abs() < 1e-9 || (t == 0.0 && reached >= p), "{} {p} {t} {reached}", model.name());
        } else {
            prop_assert!(model.continuous_cdf(t * (1.0 - 1e-12)) <= p + 1e-9);
        }
    }

    #[test]
    fn survival_over_two_spans_is_the_product_of_both(model in any_model(), a in 0.0..0.4f64, x in 0.0..0.3f64, y in 0.0..0.3f64) {
        let end = model.maximum().min(model.quantile(0.999));
        let (a, x, y) = (a * end, x * end, y * end);
        let whole = model.conditional_survival(a, x + y);
        let parts = model.conditional_survival(a, x) * model.conditional_survival(a + x, y);
        prop_assert!((whole - parts).abs() < 1e-9);
    }

    #[test]
    fn the_mean_is_the_integral_of_the_survival_and_keeps_the_atom(model in any_model()) {
        let end = model.maximum().min(model.quantile(1.0 - 1e-9));
        let area = trapezoids(|t| model.survival(t), 0.0, end, 40_000);
        let mean = model.mean();
        prop_assert!((mean - area).abs() < 1e-3 * mean.max(1.0), "{} {mean} {area}", model.name());
        if model.maximum().is_finite() {
            let both = model.mean_without_atom() + model.maximum() * model.atom();
            prop_assert!((both - mean).abs() < 1e-9 * mean.max(1.0));
        }
        prop_assert!((model.mean_residual(0.0) - mean).abs() < 1e-6 * mean.max(1.0) + mean * model.cdf(0.0));
    }

    #[test]
    fn the_integral_of_the_cdf_is_additive_and_right(model in any_model(), a in 0.0..1.0f64, b in 0.0..1.3f64) {
        let end = model.maximum().min(model.quantile(0.999));
        let (from, to) = (end * a.min(b), end * a.max(b));
        let own = model.cdf_integral(from, to);
        let summed = trapezoids(|t| model.cdf(t), from, to, 40_000);
        prop_assert!((own - summed).abs() < 2e-3 * end.max(1.0), "{} {own} {summed}", model.name());
        let middle = 0.5 * (from + to);
        let parts = model.cdf_integral(from, middle) + model.cdf_integral(middle, to);
        prop_assert!((own - parts).abs() < 1e-9 * end.max(1.0));
    }
}

/// Kolmogorov's distance of samples from the model, atoms regarded: both sides of every distinct
/// value.
fn distance(model: &dyn Lifetime, samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    let n = samples.len() as f64;
    let mut worst = 0.0f64;
    let mut at = 0;
    while at < samples.len() {
        let value = samples[at];
        let mut behind = at;
        while behind < samples.len() && samples[behind] == value {
            behind += 1;
        }
        worst = worst
            .max((model.cdf(value) - behind as f64 / n).abs())
            .max((model.cdf(value.next_down()) - at as f64 / n).abs());
        at = behind;
    }
    worst
}

#[test]
fn samples_of_every_model_pass_a_kolmogorov_smirnov_test() {
    let models: Vec<Box<dyn Lifetime>> = vec![
        Box::new(Bathtub::new(0.414, 0.94, 0.77, 24.45, 24.0).unwrap()),
        Box::new(Exponential::new(0.2, 24.0).unwrap()),
        Box::new(Exponential::new(0.2, f64::INFINITY).unwrap()),
        Box::new(Weibull::new(0.2, 0.5, f64::INFINITY).unwrap()),
        Box::new(GompertzMakeham::new(0.01, 1e-3, 0.3, f64::INFINITY).unwrap()),
        Box::new(Uniform::new(24.0).unwrap()),
        Box::new(
            Phases::new(vec![
                Phase {
                    until: 3.0,
                    hazard: 0.15,
                },
                Phase {
                    until: 22.0,
                    hazard: 0.0,
                },
                Phase {
                    until: 24.0,
                    hazard: 0.3,
                },
            ])
            .unwrap(),
        ),
        Box::new(Empirical::new(&[(3.0, 0.36), (22.0, 0.5), (24.0, 0.7)]).unwrap()),
    ];
    for model in models {
        let mut chance = Pcg64::seed_from_u64(7);
        let mut samples: Vec<f64> = (0..20_000).map(|_| model.sample(&mut chance)).collect();
        // The 1 % bound of the statistic; atoms only make it smaller.
        let bound = 1.63 / (samples.len() as f64).sqrt();
        let seen = distance(model.as_ref(), &mut samples);
        assert!(
            seen < bound,
            "{}: {seen} is not below {bound}",
            model.name()
        );
        let old: Vec<f64> = (0..1000)
            .map(|_| model.sample_from_age(2.0, &mut chance))
            .collect();
        assert!(old.iter().all(|&life| life >= 2.0), "{}", model.name());
    }
}

#[test]
fn the_bathtub_has_the_values_of_the_vectors() {
    let vectors: Value = serde_json::from_str(include_str!("vectors/001_model.json")).unwrap();
    let models = vectors["models"].as_object().unwrap();
    assert_eq!(models.len(), 5);
    for (name, vector) in models {
        let p = |key: &str| vector["params"][key].as_f64().unwrap();
        let model = Bathtub::new(p("A"), p("tau1"), p("tau2"), p("b"), 24.0).unwrap();
        for (curve, f) in [
            (
                "F",
                Box::new(|t| model.equation1(t)) as Box<dyn Fn(f64) -> f64>,
            ),
            ("f", Box::new(|t| model.equation2(t))),
        ] {
            for (t, value) in vector[curve].as_object().unwrap() {
                let (t, value) = (t.parse::<f64>().unwrap(), value.as_f64().unwrap());
                assert!(
                    (f(t) - value).abs() < 1e-12,
                    "{name} {curve}({t}) {} {value}",
                    f(t)
                );
            }
        }
        for (key, value) in [
            ("E_lifetime_eq3", model.mean_without_atom()),
            ("E_lifetime_quad", model.mean_without_atom()),
            ("E_lifetime_with_mass_at_L", model.mean()),
        ] {
            let expected = vector[key].as_f64().unwrap();
            assert!(
                (value - expected).abs() < 1e-9,
                "{name} {key} {value} {expected}"
            );
        }
    }
}

#[test]
fn a_bathtub_that_passes_1_early_ends_there() {
    let model = Bathtub::new(0.9, 1.0, 0.8, 23.0, 24.0).unwrap();
    assert!(model.maximum() < 24.0);
    assert!((model.equation1(model.maximum()) - 1.0).abs() < 1e-12);
    assert!(model.atom() < 1e-12);
}

#[test]
fn impossible_parameters_are_refused_with_their_names() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = Bathtub::new(0.4, bad, 0.8, 24.0, 24.0).unwrap_err();
        assert_eq!(error.code(), "EB-LIFETIME-001");
        assert!(error.to_string().contains("tau1"), "{error}");
        assert_eq!(
            Exponential::new(bad, 24.0).unwrap_err().code(),
            "EB-LIFETIME-001"
        );
        assert!(Weibull::new(0.1, bad, 24.0).is_err());
        assert!(GompertzMakeham::new(0.1, bad, 0.1, 24.0).is_err());
        assert!(Uniform::new(bad).is_err());
    }
    assert!(Exponential::new(0.1, f64::NAN).is_err());
    assert!(GompertzMakeham::new(-0.1, 0.1, 0.1, 24.0).is_err());
    assert!(matches!(
        Bathtub::new(5.0, 1.0, 100.0, 24.0, 24.0),
        Err(LifetimeError::Parameter { name: "A", .. })
    ));
}

#[test]
fn impossible_phases_and_points_are_refused() {
    let phase = |until, hazard| Phase { until, hazard };
    for phases in [
        vec![],
        vec![phase(2.0, 0.1), phase(1.0, 0.1)],
        vec![phase(2.0, -0.1)],
        vec![phase(2.0, f64::NAN)],
        vec![phase(f64::NAN, 0.1)],
        vec![phase(f64::INFINITY, 0.1), phase(f64::INFINITY, 0.1)],
        vec![phase(f64::INFINITY, 0.0)],
    ] {
        assert_eq!(Phases::new(phases).unwrap_err().code(), "EB-LIFETIME-002");
    }
    for points in [
        &[][..],
        &[(0.0, 0.1)],
        &[(2.0, 0.5), (1.0, 0.6)],
        &[(2.0, 0.5), (3.0, 0.4)],
        &[(2.0, 1.5)],
        &[(f64::NAN, 0.5)],
        &[(1.0, f64::NAN)],
    ] {
        assert_eq!(
            Empirical::new(points).unwrap_err().code(),
            "EB-LIFETIME-002"
        );
    }
}

#[test]
fn a_memoryless_instance_has_the_same_life_before_it_at_every_age() {
    let model = Exponential::new(0.5, f64::INFINITY).unwrap();
    for age in [0.0, 1.0, 10.0, 20.0] {
        assert!((model.mean_residual(age) - 2.0).abs() < 1e-4, "{age}");
    }
    let mut chance = Pcg64::seed_from_u64(1);
    for age in [30.0, 60.0, 200.0, 1e4] {
        assert!(model.mean_residual(age).is_finite());
        assert!((0..1000).all(|_| model.sample_from_age(age, &mut chance).is_finite()));
    }
}

#[test]
fn a_line_between_points_too_near_for_its_slope_still_gives_shares() {
    let model = Empirical::new(&[(1.2e-310, 0.09), (21.0, 0.18), (24.0, 0.18)]).unwrap();
    assert_eq!(model.cdf(0.0), 0.0);
    assert!(model.density(6e-311).is_finite());
    let shares: Vec<f64> = [0.0, 6e-311, 1.0, 21.0, 24.0]
        .map(|t| model.cdf(t))
        .to_vec();
    assert!(shares.is_sorted(), "{shares:?}");
    assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)));
}
