//! Settings and ages.

use crate::common;

use common::settings;
use ebbtide_burst::AgeSettings;
use ebbtide_burst::reuse_policy::ReusePolicy;

#[test]
fn prices_give_the_ratio_and_the_budget_of_nodes() {
    assert_eq!(settings().ratio(), 3.0);
    assert_eq!(settings().policy().unwrap().budget(), 6);
}

#[test]
fn an_instance_near_its_end_fits_no_long_job_any_more() {
    let settings = AgeSettings {
        model: Some("bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.45".to_owned()),
        job_hours: vec![6.0, 1.0],
        features: vec!["spot".to_owned()],
        weight: 100,
    };
    let ages = ReusePolicy::new(&settings).unwrap();
    assert_eq!(ages.all_features(), ["spot", "fits_1h", "fits_6h"]);
    let of = |age: f64| ages.label(age, String::new()).unwrap();
    assert_eq!(of(0.0).features, ["spot", "fits_1h", "fits_6h"]);
    // Past infancy it is better than a new one.
    assert!(of(5.0).weight < of(0.0).weight);
    // The paper's figure 5: after about 18 h a new instance is better for six hours.
    assert_eq!(of(20.0).features, ["spot", "fits_1h"]);
    assert_eq!(of(23.5).features, ["spot"]);
}

#[test]
fn lengths_without_a_model_and_models_that_are_none_are_refused() {
    let lengths = AgeSettings {
        job_hours: vec![1.0],
        ..AgeSettings::default()
    };
    assert!(
        ReusePolicy::new(&lengths)
            .unwrap_err()
            .to_string()
            .contains("age.job_hours")
    );
    let model = AgeSettings {
        model: Some("marble:a=1".to_owned()),
        ..AgeSettings::default()
    };
    assert!(
        ReusePolicy::new(&model)
            .unwrap_err()
            .to_string()
            .contains("marble")
    );
}
