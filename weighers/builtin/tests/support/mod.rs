//! Builds batches of hosts and does with a weigher what the engine does.
#![allow(dead_code, reason = "each test program uses its part")]

use ebbtide_model::{GroupPolicy, LifeGroup, LifeTable, LifeTables, Resources};
use ebbtide_weigher_api::{
    Column, Details, Fact, FactColumn, HostBatch, PreemptibleRows, RequestDetails, RequestView,
    Texts, Weigher, WeigherError, WeigherForm, arithmetic,
};
use ebbtide_weighers::{WeigherOptions, by_name};
use std::sync::Arc;

/// Hosts as columns; what is not set is zero.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hosts {
    len: usize,
    columns: [Vec<f64>; Column::COUNT],
    offsets: Vec<u32>,
    ages: Vec<f64>,
    policy: Option<GroupPolicy>,
    preemptible: bool,
    extra_specs: Vec<(&'static str, &'static str)>,
    facts: Vec<(Fact, FactColumn)>,
}

impl Hosts {
    pub(crate) fn new(len: usize) -> Self {
        Self {
            len,
            columns: std::array::from_fn(|_| vec![0.0; len]),
            offsets: vec![0; len + 1],
            facts: vec![(Fact::AvailabilityZone, Fact::AvailabilityZone.unknown(len))],
            ..Self::default()
        }
    }

    pub(crate) fn with(mut self, column: Column, values: &[f64]) -> Self {
        assert_eq!(values.len(), self.len, "{column:?}");
        self.columns[column.index()] = values.to_vec();
        self
    }

    pub(crate) fn ages(mut self, ages: &[Vec<f64>]) -> Self {
        assert_eq!(ages.len(), self.len);
        self.ages = ages.concat();
        self.offsets = vec![0];
        for host in ages {
            let end = self.offsets[self.offsets.len() - 1] + u32::try_from(host.len()).unwrap();
            self.offsets.push(end);
        }
        let counts: Vec<f64> = ages.iter().map(|host| host.len() as f64).collect();
        self.with(Column::NumPreemptible, &counts)
    }

    pub(crate) fn group(mut self, policy: Option<GroupPolicy>) -> Self {
        self.policy = policy;
        self
    }

    /// A request for a preemptible instance.
    pub(crate) fn preemptible(mut self) -> Self {
        self.preemptible = true;
        self
    }

    pub(crate) fn spec(mut self, key: &'static str, value: &'static str) -> Self {
        self.extra_specs.push((key, value));
        self
    }

    /// Each host's zone; of hosts that are not named nothing is known.
    pub(crate) fn zones(mut self, zones: &[&str]) -> Self {
        let column = Texts {
            codes: (0..u32::try_from(self.len).unwrap()).collect(),
            texts: zones.iter().map(|&zone| zone.to_owned()).collect(),
        };
        self.facts = vec![(Fact::AvailabilityZone, FactColumn::Texts(column))];
        self
    }

    /// What the weigher says, as it says it. It sees only the columns that it declares.
    pub(crate) fn raw(&self, weigher: &dyn Weigher) -> Result<Vec<f64>, WeigherError> {
        let columns: [Vec<f64>; Column::COUNT] = std::array::from_fn(|i| {
            if weigher.needs().contains(&Column::ALL[i]) {
                self.columns[i].clone()
            } else {
                Vec::new()
            }
        });
        let batch = HostBatch {
            len: self.len,
            columns: &columns,
            preemptibles: weigher.needs_preemptibles().then_some(PreemptibleRows {
                offsets: &self.offsets,
                age_seconds: &self.ages,
            }),
            details: Details {
                facts: &self.facts,
                ..Details::default()
            },
        };
        let resources = Resources::new();
        let request = RequestView {
            project_id: "p",
            resources: &resources,
            preemptible: self.preemptible,
            group_policy: self.policy,
            details: RequestDetails {
                extra_specs: &self.extra_specs,
                ..RequestDetails::default()
            },
        };
        let mut out = vec![f64::NAN; self.len];
        weigher.weigh(&request, &batch, &mut out)?;
        Ok(out)
    }

    /// What the weigher's form says, where it has one.
    pub(crate) fn formed(&self, weigher: &dyn Weigher) -> Option<Vec<f64>> {
        let resources = Resources::new();
        let request = RequestView {
            project_id: "p",
            resources: &resources,
            preemptible: self.preemptible,
            group_policy: self.policy,
            details: RequestDetails::default(),
        };
        match weigher.form(&request) {
            WeigherForm::Opaque => None,
            WeigherForm::Column(column) => Some(self.columns[column.index()].clone()),
            WeigherForm::Negated(column) => {
                let column = self.columns[column.index()].iter();
                Some(column.map(|number| 0.0 - number).collect())
            }
            WeigherForm::Constant(number) => Some(vec![number; self.len]),
        }
    }

    pub(crate) fn normalised(&self, weigher: &dyn Weigher) -> Vec<f64> {
        let mut numbers = self.raw(weigher).unwrap();
        arithmetic::normalise(&mut numbers, weigher.bounds());
        numbers
    }

    /// Sum of the weighted weights, in the order of the names; without a multiplier the weigher's
    /// own.
    pub(crate) fn totals(&self, weighers: &[(&str, Option<f64>)]) -> Vec<f64> {
        let mut totals = vec![0.0; self.len];
        for (name, multiplier) in weighers {
            let weigher = named(name);
            let multiplier =
                weigher.multiplier_sign() * multiplier.unwrap_or(weigher.default_multiplier());
            for (total, x) in totals.iter_mut().zip(self.normalised(weigher.as_ref())) {
                *total += multiplier * x;
            }
        }
        totals
    }
}

pub(crate) fn named(name: &str) -> Arc<dyn Weigher> {
    by_name(name, &with_a_model(3600)).unwrap()
}

/// Instances that are interrupted evenly within two days, and others in the zone `calm` that nearly
/// never are.
pub(crate) fn with_a_model(risk_horizon_seconds: u32) -> WeigherOptions {
    let even = |seconds: f64| LifeTable::new(&[(0.0, 1.0), (seconds, 0.0)], 0.0).unwrap();
    let calm = LifeGroup {
        flavor: None,
        zone: Some("calm".to_owned()),
    };
    WeigherOptions {
        risk_horizon_seconds,
        interruptions: Some(LifeTables::new(
            even(2.0 * 86_400.0),
            vec![(calm, even(1e9))],
        )),
        ..WeigherOptions::default()
    }
}

/// Hosts by falling totals; equal ones keep their order.
pub(crate) fn order(totals: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..totals.len()).collect();
    order.sort_by(|&a, &b| totals[b].partial_cmp(&totals[a]).unwrap());
    order
}
