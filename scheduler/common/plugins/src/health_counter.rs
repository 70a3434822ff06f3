//! Plugins with a health counter. The engine sees them as the plugins themselves.

use crate::Health;
use ebbtide_cost_api::{CostError, CostForm, CostModule, MAX_COST, SetCost, VictimBatch};
use ebbtide_weigher_api::{
    Column, Fact, FilterError, FilterVerdicts, HostBatch, HostFilter, RequestView, Weigher,
    WeigherDecorator, WeigherError, WeigherForm,
};
use std::sync::Arc;

/// A weigher whose calls and failures are counted.
pub(crate) struct MonitoredWeigher {
    pub(crate) inner: Arc<dyn Weigher>,
    pub(crate) health: Arc<Health>,
}

impl WeigherDecorator for MonitoredWeigher {
    fn inner(&self) -> &dyn Weigher {
        self.inner.as_ref()
    }

    /// Unknown, whatever the plugin says: with a known form it would not be called, and failures
    /// could not be counted.
    fn form(&self, _: &RequestView<'_>) -> WeigherForm {
        WeigherForm::Opaque
    }

    fn weigh(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        self.health.start_call().map_err(WeigherError::Other)?;
        let done = self.inner.weigh(request, hosts, out).and_then(|()| {
            match out.iter().position(|number| !number.is_finite()) {
                None => Ok(()),
                Some(index) => Err(WeigherError::NotFinite {
                    index,
                    value: out[index],
                }),
            }
        });
        match &done {
            Ok(()) => self.health.succeeded(),
            Err(error) => {
                tracing::warn!(plugin = self.name(), "failed: {error}");
                self.health.failed(&error.to_string());
            }
        }
        done
    }
}

/// A filter whose calls, failures and refusals are counted.
pub(crate) struct MonitoredFilter {
    pub(crate) inner: Arc<dyn HostFilter>,
    pub(crate) health: Arc<Health>,
}

#[warn(
    clippy::missing_trait_methods,
    reason = "what a decorator forgets comes from the trait's defaults and not from the filter"
)]
impl HostFilter for MonitoredFilter {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn needs(&self) -> &[Column] {
        self.inner.needs()
    }

    fn facts(&self) -> &[Fact] {
        self.inner.facts()
    }

    fn needs_preemptibles(&self) -> bool {
        self.inner.needs_preemptibles()
    }

    fn filter(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<FilterVerdicts, FilterError> {
        self.health.start_call().map_err(FilterError::Other)?;
        let done = self.inner.filter(request, hosts);
        let done = done.and_then(|verdicts| verdicts.check(hosts.len).map(|()| verdicts));
        match &done {
            Ok(verdicts) => {
                self.health.succeeded();
                self.health.answered(hosts.len, verdicts.refused());
            }
            Err(error) => {
                tracing::warn!(plugin = self.name(), "EB-ENGINE-008: failed: {error}");
                self.health.failed(&error.to_string());
            }
        }
        done
    }
}

/// A cost module that is watched.
pub(crate) struct MonitoredCostModule {
    pub(crate) inner: Arc<dyn CostModule>,
    pub(crate) health: Arc<Health>,
}

#[warn(
    clippy::missing_trait_methods,
    reason = "what a decorator forgets comes from the trait's defaults and not from the module"
)]
impl CostModule for MonitoredCostModule {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn unit(&self) -> &str {
        self.inner.unit()
    }

    fn facts(&self) -> &[Fact] {
        self.inner.facts()
    }

    fn reads_flavors(&self) -> bool {
        self.inner.reads_flavors()
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        self.health.start_call().map_err(CostError::Other)?;
        let is_cost = |cost: &f64| (0.0..=MAX_COST).contains(cost);
        let done = self.inner.cost(victims, out).and_then(|()| {
            match out.iter().position(|cost| !is_cost(cost)) {
                None => Ok(()),
                Some(index) => Err(CostError::NotACost {
                    index,
                    value: out[index],
                }),
            }
        });
        match &done {
            Ok(()) => self.health.succeeded(),
            Err(error) => {
                tracing::warn!(plugin = self.name(), "failed: {error}");
                self.health.failed(&error.to_string());
            }
        }
        done
    }

    fn set_cost(&self) -> SetCost {
        self.inner.set_cost()
    }

    fn nth_of_a_project(&self, n: u32) -> f64 {
        self.inner.nth_of_a_project(n)
    }

    fn surcharge(&self, victims: &VictimBatch<'_>, set: &[usize]) -> Result<f64, CostError> {
        self.inner.surcharge(victims, set)
    }

    /// Unknown, whatever the plugin says: with a known form it would not be called, and failures
    /// could not be counted.
    fn form(&self) -> CostForm {
        CostForm::Opaque
    }
}
