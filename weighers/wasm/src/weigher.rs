//! A weigher that is a component.

use crate::bindings::{
    Amount, Column as Handed, Pair, Pairs, Request, Rows, WeigherDescription as Said,
};
use crate::call::Callee;
use crate::guest::Used;
use crate::load::Compiled;
use crate::{Grants, Limits, Settings, WasmError};
use ebbtide_plugin_contract::{self as contract, WeigherDescription};
use ebbtide_weigher_api::{Bounds, Column, Fact, HostBatch, RequestView, Weigher, WeigherError};
use std::fmt;

/// A weigher that is a component.
pub struct WasmWeigher {
    name: String,
    multiplier_key: String,
    described: WeigherDescription,
    callee: Callee,
}

impl fmt::Debug for WasmWeigher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WasmWeigher")
            .field("name", &self.name)
            .field("described", &self.described)
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
        let said: Said = callee.describe((callee.settings().as_slice(),))?;
        let bounds = Bounds {
            min: said.min,
            max: said.max,
        };
        let described = WeigherDescription::check(said.default_multiplier, &said.needs, bounds)?;
        Ok(Self {
            name: name.to_owned(),
            multiplier_key: format!("{name}_weight_multiplier"),
            described,
            callee,
        })
    }

    /// What it reads, by name, in its own order.
    #[must_use]
    pub fn reads(&self) -> Vec<String> {
        self.described.reads()
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
        let needs = &self.described.needs;
        let texts = contract::texts(needs, hosts)?;
        let handed = contract::hand_over(needs, hosts, &texts)?;
        let columns: Vec<Handed<'_>> = handed.into_iter().map(Handed::from).collect();
        let resources: Vec<Amount<'_>> = request
            .resources
            .iter()
            .map(|(class, amount)| Amount {
                resource_class: class.as_str(),
                amount,
            })
            .collect();
        let known = contract::properties(request);
        let properties: Vec<Pair<'_>> = known
            .iter()
            .map(|(key, value)| Pair { key, value })
            .collect();
        let asked = Request {
            project_id: request.project_id,
            preemptible: request.preemptible,
            resources: &resources,
            properties: &properties,
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

impl Weigher for WasmWeigher {
    fn name(&self) -> &str {
        &self.name
    }

    fn multiplier_key(&self) -> &str {
        &self.multiplier_key
    }

    fn default_multiplier(&self) -> f64 {
        self.described.default_multiplier
    }

    fn needs(&self) -> &[Column] {
        &self.described.columns
    }

    fn facts(&self) -> &[Fact] {
        &self.described.facts
    }

    fn needs_preemptibles(&self) -> bool {
        self.described.needs_preemptibles()
    }

    fn bounds(&self) -> Bounds {
        self.described.bounds
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
