//! Decorators pass on everything that a weigher or a cost module says of itself. Clippy's
//! `missing_trait_methods` finds a method that `WeigherDecorator` or the decorator of a cost module
//! forgets; these tests find one that is passed on wrongly.

use crate::Health;
use crate::health_counter::{MonitoredCostModule, MonitoredWeigher};
use crate::standalone::LenientWeigher;
use ebbtide_cost_api::{CostError, CostForm, CostModule, SetCost, VictimBatch};
use ebbtide_model::Resources;
use ebbtide_weigher_api::{
    Bounds, Column, Details, Fact, HostBatch, RequestDetails, RequestView, Weigher, WeigherError,
    WeigherForm,
};
use std::sync::Arc;

/// Says something else than the contract's defaults everywhere.
struct Odd {
    facts: Vec<Fact>,
}

impl Odd {
    fn new() -> Self {
        Self {
            facts: vec![Fact::HostName],
        }
    }
}

impl Weigher for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    fn multiplier_key(&self) -> &str {
        "odd_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        7.0
    }

    fn multiplier_sign(&self) -> f64 {
        -1.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::NumIoOps]
    }

    fn facts(&self) -> &[Fact] {
        &self.facts
    }

    fn needs_preemptibles(&self) -> bool {
        true
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            min: Some(2.0),
            max: Some(3.0),
        }
    }

    fn weigh(
        &self,
        _: &RequestView<'_>,
        _: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        out.fill(2.5);
        Ok(())
    }

    fn form(&self, _: &RequestView<'_>) -> WeigherForm {
        WeigherForm::Constant(2.5)
    }
}

impl CostModule for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    fn unit(&self) -> &str {
        "oddities"
    }

    fn facts(&self) -> &[Fact] {
        &self.facts
    }

    fn reads_flavors(&self) -> bool {
        true
    }

    fn cost(&self, _: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        out.fill(2.5);
        Ok(())
    }

    fn set_cost(&self) -> SetCost {
        SetCost::PerProject
    }

    fn nth_of_a_project(&self, n: u32) -> f64 {
        f64::from(n) + 0.5
    }

    fn surcharge(&self, _: &VictimBatch<'_>, set: &[usize]) -> Result<f64, CostError> {
        Ok(set.len() as f64 + 0.25)
    }

    fn form(&self) -> CostForm {
        CostForm::UsedOfPeriod { period_seconds: 60 }
    }
}

/// All that a weigher says, as text.
fn description_text(weigher: &dyn Weigher, form: bool) -> String {
    let resources = Resources::new();
    let request = RequestView {
        project_id: "p",
        resources: &resources,
        preemptible: false,
        group_policy: None,
        details: RequestDetails::default(),
    };
    let columns: [Vec<f64>; Column::COUNT] = std::array::from_fn(|_| Vec::new());
    let hosts = HostBatch {
        len: 2,
        columns: &columns,
        preemptibles: None,
        details: Details::default(),
    };
    let mut out = [0.0; 2];
    let weighed = weigher.weigh(&request, &hosts, &mut out);
    format!(
        "{:?}",
        (
            (weigher.name(), weigher.multiplier_key()),
            (weigher.default_multiplier(), weigher.multiplier_sign()),
            (weigher.needs(), weigher.facts()),
            (weigher.needs_preemptibles(), weigher.bounds()),
            (weighed, out),
            form.then(|| weigher.form(&request)),
        )
    )
}

#[test]
fn every_decorator_of_a_weigher_passes_on_what_the_weigher_says() {
    let odd = || -> Arc<dyn Weigher> { Arc::new(Odd::new()) };
    let health = || Arc::new(Health::default());
    let watched = MonitoredWeigher {
        inner: odd(),
        health: health(),
    };
    assert_eq!(
        description_text(&LenientWeigher(odd()), true),
        description_text(&Odd::new(), true)
    );
    // A watched weigher is always called, so that its failures are counted: it has no form.
    assert_eq!(
        description_text(&watched, false),
        description_text(&Odd::new(), false)
    );
    assert!(description_text(&watched, true).ends_with("Some(Opaque))"));
}

#[test]
fn the_decorator_of_a_cost_module_passes_on_what_the_module_says() {
    let watched = MonitoredCostModule {
        inner: Arc::new(Odd::new()),
        health: Arc::new(Health::default()),
    };
    let batch = VictimBatch {
        len: 2,
        age_seconds: &[0.0; 2],
        vcpus: &[0.0; 2],
        memory_mb: &[0.0; 2],
        price_per_hour: &[0.0; 2],
        max_price: &[0.0; 2],
        priority: &[0; 2],
        project: &[0; 2],
        ends_in_seconds: &[0.0; 2],
        flavors: None,
        facts: &[],
    };
    let cost_text = |module: &dyn CostModule| {
        let mut out = [0.0; 2];
        let cost = module.cost(&batch, &mut out);
        let facts = module.facts().to_vec();
        format!(
            "{:?}",
            (
                (module.name(), module.unit(), facts),
                (
                    module.reads_flavors(),
                    module.set_cost(),
                    module.nth_of_a_project(4)
                ),
                (cost, out, module.surcharge(&batch, &[0, 1])),
            )
        )
    };
    assert_eq!(cost_text(&watched), cost_text(&Odd::new()));
    assert_eq!(CostModule::form(&watched), CostForm::Opaque);
}
