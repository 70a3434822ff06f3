//! A weigher that is a component.

use crate::bindings::{Amount, Column as Handed, Pair, Pairs, Request, Rows, WeigherDescription};
use crate::call::Callee;
use crate::guest::Used;
use crate::load::Compiled;
use crate::needs::{self, Need};
use crate::{Grants, Limits, Settings, WasmError};
use ebbtide_weigher_api::{Bounds, Column, Fact, HostBatch, RequestView, Weigher, WeigherError};
use std::fmt;

/// A weigher that is a component.
pub struct WasmWeigher {
    name: String,
    multiplier_key: String,
    default_multiplier: f64,
    bounds: Bounds,
    needs: Vec<Need>,
    columns: Vec<Column>,
    facts: Vec<Fact>,
    callee: Callee,
}

impl fmt::Debug for WasmWeigher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WasmWeigher")
            .field("name", &self.name)
            .field("needs", &self.needs)
            .finish_non_exhaustive()
    }
}

impl WasmWeigher {
    pub(crate) fn new(
        compiled: &Compiled,
        name: &str,
        settings: &Settings,
        limits: Limits,
        grants: Grants,
    ) -> Result<Self, WasmError> {
        let callee = Callee::new(
            compiled,
            compiled.interface(),
            "weigh",
            settings,
            limits,
            grants,
        )?;
        callee.check_types::<(Pairs<'_>, Request<'_>, Rows<'_>)>()?;
        let described: WeigherDescription = callee.describe((callee.settings().as_slice(),))?;
        let needs = Need::read_all(&described.needs)?;
        let bounds = bounds(&described)?;
        if !described.default_multiplier.is_finite() {
            let problem = format!("its default multiplier is {}", described.default_multiplier);
            return Err(WasmError::Description(problem));
        }
        let columns = needs.iter().filter_map(|need| match need {
            Need::Column(column) => Some(*column),
            _ => None,
        });
        let facts = needs.iter().filter_map(|need| match need {
            Need::Fact(fact) => Some(fact.clone()),
            _ => None,
        });
        Ok(Self {
            name: name.to_owned(),
            multiplier_key: format!("{name}_weight_multiplier"),
            default_multiplier: described.default_multiplier,
            bounds,
            columns: columns.collect(),
            facts: facts.collect(),
            needs,
            callee,
        })
    }

    /// What it reads, by name, in its own order.
    #[must_use]
    pub fn reads(&self) -> Vec<String> {
        self.needs.iter().map(Need::to_string).collect()
    }

    /// Weighs, and says what that took.
    ///
    /// # Errors
    /// As [`Weigher::weigh`].
    pub fn weigh_and_measure(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<(Vec<f64>, Used), WeigherError> {
        let texts = needs::texts(&self.needs, hosts)?;
        let handed = needs::hand_over(&self.needs, hosts, &texts)?;
        let columns: Vec<Handed<'_>> = handed.into_iter().map(Handed::from).collect();
        let resources: Vec<Amount<'_>> = request
            .resources
            .iter()
            .map(|(class, amount)| Amount {
                resource_class: class.as_str(),
                amount,
            })
            .collect();
        let specs: Vec<String> = request
            .details
            .extra_specs
            .iter()
            .map(|(key, _)| format!("extra_spec:{key}"))
            .collect();
        let asked = Request {
            project_id: request.project_id,
            preemptible: request.preemptible,
            resources: &resources,
            properties: &properties(request, &specs),
        };
        let rows = Rows {
            len: u32::try_from(hosts.len).unwrap_or(u32::MAX),
            columns: &columns,
        };
        let settings = self.callee.settings();
        let answered = self
            .callee
            .numbers((settings.as_slice(), asked, rows), hosts.len);
        answered.map_err(WeigherError::Other)
    }
}

fn properties<'a>(request: &RequestView<'a>, specs: &'a [String]) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    let details = &request.details;
    if !details.flavor.is_empty() {
        pairs.push(Pair {
            key: "flavor",
            value: details.flavor,
        });
    }
    if let Some(value) = details.image_id {
        pairs.push(Pair {
            key: "image_id",
            value,
        });
    }
    if let Some(policy) = request.group_policy {
        pairs.push(Pair {
            key: "group_policy",
            value: policy.as_str(),
        });
    }
    let values = details.extra_specs.iter().map(|(_, value)| *value);
    pairs.extend(
        specs
            .iter()
            .zip(values)
            .map(|(key, value)| Pair { key, value }),
    );
    pairs
}

/// The ends of its scale, if they are ends.
fn bounds(described: &WeigherDescription) -> Result<Bounds, WasmError> {
    let bounds = Bounds {
        min: described.min,
        max: described.max,
    };
    let finite = [bounds.min, bounds.max]
        .into_iter()
        .flatten()
        .all(f64::is_finite);
    let ordered = bounds
        .min
        .zip(bounds.max)
        .is_none_or(|(min, max)| min <= max);
    match finite && ordered {
        true => Ok(bounds),
        false => {
            let problem = format!(
                "its scale reaches from {:?} to {:?}",
                bounds.min, bounds.max
            );
            Err(WasmError::Description(problem))
        }
    }
}

impl Weigher for WasmWeigher {
    fn name(&self) -> &str {
        &self.name
    }

    fn multiplier_key(&self) -> &str {
        &self.multiplier_key
    }

    fn default_multiplier(&self) -> f64 {
        self.default_multiplier
    }

    fn needs(&self) -> &[Column] {
        &self.columns
    }

    fn facts(&self) -> &[Fact] {
        &self.facts
    }

    fn needs_preemptibles(&self) -> bool {
        self.needs.contains(&Need::PreemptibleAges)
    }

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn weigh(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        let (numbers, _) = self.weigh_and_measure(request, hosts)?;
        out.iter_mut()
            .zip(numbers)
            .for_each(|(place, number)| *place = number);
        Ok(())
    }
}
