//! MetricsFilter (`metrics_filter.py`).

use super::contract::{Context, Filter};
use crate::fault::NovaException;
use crate::model::{HostState, Options, RequestSpec};

/// The host reports every metric that `[metrics] weight_setting` names.
pub struct Metrics;

impl Filter for Metrics {
    fn name(&self) -> &'static str {
        "MetricsFilter"
    }

    fn starts(&self, options: &Options) -> Result<(), NovaException> {
        if options.metrics_weight_setting_null {
            return Err(NovaException::new(
                "TypeError",
                "[metrics] weight_setting is null",
            ));
        }
        Ok(())
    }

    fn passes(
        &self,
        host: &HostState,
        _: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let Some(metrics) = &host.metrics else {
            return Err(NovaException::new(
                "TypeError",
                format!("{} never reported metrics", host.host),
            ));
        };
        let names = &context.options.metrics_weight_setting;
        Ok(names
            .iter()
            .all(|(name, _)| metrics.iter().any(|metric| metric.name == *name)))
    }
}
