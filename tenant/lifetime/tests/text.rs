//! Tables, groups and descriptions of models as text, and the fit of phases.

use ebbtide_lifetime::description::{Description, pick};
use ebbtide_lifetime::distributions::{Phase, Phases};
use ebbtide_lifetime::fit::{default_phases, distance_from, phases};
use ebbtide_lifetime::labelled_life::groups;
use ebbtide_lifetime::table::Table;
use ebbtide_lifetime::{Lifetime, Observation, Observations};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::data;

fn table(text: &str) -> Table {
    Table::parse(text.as_bytes()).unwrap()
}

#[test]
fn the_public_data_are_read_as_they_are() {
    let table = Table::parse(&data::preemptions()).unwrap();
    if data::file().reduced {
        assert_eq!((table.rows.len(), table.left_out), (984, 16));
        let flavors = table.rows.iter().filter_map(|row| row.label("flavor"));
        assert!(
            flavors.clone().count() == 984 && flavors.clone().all(|f| f.starts_with("n1-highcpu-"))
        );
        let ended = table
            .rows
            .iter()
            .filter(|row| row.observation.ended)
            .count();
        assert!((400..800).contains(&ended), "{ended}");
        return;
    }
    assert_eq!((table.rows.len(), table.left_out), (1426, 16));
    let ended = table
        .rows
        .iter()
        .filter(|row| row.observation.ended)
        .count();
    assert_eq!(ended, 717);
    let first = &table.rows[0];
    assert_eq!(first.label("flavor").as_deref(), Some("n1-standard-2"));
    assert_eq!(
        first.label("hour").as_deref(),
        Some("08"),
        "of the launch, in its own zone"
    );
    assert_eq!(
        first.label("hr_of_day").as_deref(),
        Some("10"),
        "of the end"
    );
    assert!((first.observation.hours - 4648.701 / 3600.0).abs() < 1e-12);
    assert_eq!((first.line, first.label("name")), (2, None));
}

#[test]
fn groups_with_numbers_in_their_names_come_in_the_order_of_the_numbers() {
    let table = table(
        "lifetime_hours,ended,flavor,zone\n1,preempted,c-16,b\n2,stopped,c-2,b\n3,preempted,c-2,a\n4,preempted,c-02x,a\n5,stopped,c,a\n",
    );
    let names = |by: &[&str]| -> Vec<String> {
        let by: Vec<String> = by.iter().map(|b| (*b).to_owned()).collect();
        let found = groups(&table.rows, &by).unwrap();
        found.into_iter().map(|group| group.name).collect()
    };
    assert_eq!(names(&[]), ["all"]);
    assert_eq!(
        names(&["flavor"]),
        [
            "all",
            "flavor=c",
            "flavor=c-2",
            "flavor=c-02x",
            "flavor=c-16"
        ]
    );
    assert_eq!(
        names(&["zone", "flavor"])[1..3],
        ["zone=a,flavor=c", "zone=a,flavor=c-2"]
    );
    let error = groups(&table.rows, &["hour".to_owned()]).unwrap_err();
    assert!(
        error.to_string().ends_with("there are flavor, zone"),
        "{error}"
    );
}

#[test]
fn a_description_gives_the_model_that_it_describes() {
    for (text, maximum, at_six) in [
        ("bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.45", 24.0, 0.413),
        ("exponential:lambda=0.1,max=none", f64::INFINITY, 0.4512),
        ("weibull: lambda=0.1, k=1", 24.0, 0.4512),
        (
            "gompertz-makeham:lambda=0.1,alpha=0.000001,beta=0.01",
            24.0,
            0.4512,
        ),
        ("uniform:max=12", 12.0, 0.5),
        ("phases:3=0.2,22=0.01,24=0.5", 24.0, 0.4674),
    ] {
        let model = Description::parse(text).unwrap().model().unwrap();
        assert_eq!(model.maximum(), maximum, "{text}");
        assert!(
            (model.cdf(6.0) - at_six).abs() < 1e-3,
            "{text} {}",
            model.cdf(6.0)
        );
        // The same as JSON.
        let parameters: Vec<String> = model
            .parameters()
            .iter()
            .map(|(name, value)| format!("\"{name}\": {value}"))
            .collect();
        if model.name() != "phases" {
            let maximum = if maximum.is_finite() {
                maximum.to_string()
            } else {
                "null".to_owned()
            };
            let json = format!(
                "{{\"model\": \"{}\", \"parameters\": {{{}}}, \"maximum_hours\": {maximum}}}",
                model.name(),
                parameters.join(",")
            );
            let again = pick(&json, None).unwrap().description.model().unwrap();
            assert_eq!(again.cdf(6.0), model.cdf(6.0), "{json}");
        }
    }
}

#[test]
fn phases_are_found_again_though_half_of_the_instances_are_stopped() {
    let hazards = [0.2, 0.01, 0.4];
    let truth = Phases::new(
        [3.0, 22.0, 24.0]
            .into_iter()
            .zip(hazards)
            .map(|(until, hazard)| Phase { until, hazard })
            .collect(),
    )
    .unwrap();
    let mut chance = Pcg64::seed_from_u64(9);
    let seen: Vec<Observation> = (0..6000)
        .map(|number| {
            let (life, stop) = (truth.sample(&mut chance), f64::from(number % 30) + 0.5);
            Observation {
                hours: life.min(stop),
                ended: life <= stop,
            }
        })
        .collect();
    let seen = Observations::new(seen, 24.0).unwrap();
    let fit = phases(&default_phases(&seen), &seen).unwrap();
    for ((phase, truth), error) in fit
        .model
        .phases()
        .iter()
        .zip(hazards)
        .zip(&fit.standard_errors)
    {
        assert!(
            (phase.hazard - truth).abs() < 3.5 * error,
            "{phase:?} ± {error} {truth}"
        );
        assert!(*error < 0.1 * truth, "{phase:?} ± {error}");
    }
    assert!(distance_from(&fit.model, &seen) < 0.03);
    // More phases than the truth has are not worth their parameters.
    let more = phases(&[1.0, 2.0, 3.0, 10.0, 22.0, 23.0, 24.0], &seen).unwrap();
    assert!(more.aic > fit.aic && more.log_likelihood >= fit.log_likelihood);
    assert_eq!(
        phases(&[3.0, 2.0], &seen).unwrap_err().code(),
        "EB-LIFETIME-002"
    );
}
