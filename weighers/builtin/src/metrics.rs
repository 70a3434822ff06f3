//! Weighs by what monitors on the hosts report.
//!
//! - Raw number: the sum of value × ratio over the metrics of the setting, in its order. A metric
//!   named twice counts twice. If the host does not report one of them: an error where metrics are
//!   required; else, if ratio × multiplier is not 0, the configured number for unavailable hosts
//!   *instead of* the sum; else the metric is left out.
//! - Normalised: the smallest number becomes 0, the largest 1; hosts that are all alike get 0.
//! - Multiplier: `metrics_weight_multiplier`, default 1.0; aggregates may set the same key in their
//!   metadata. In Nova's configuration the option is `[metrics] weight_multiplier`.
//! - Without a setting all hosts are alike.
//!
//! Source: Nova, `nova/scheduler/weights/metrics.py` (`MetricsWeigher`, no bounds).

use ebbtide_weigher_api::{
    Column, HostBatch, MetricColumn, MetricValue, RequestView, Weigher, WeigherError,
};

/// See the module's text.
#[derive(Debug, Clone, PartialEq)]
pub struct Metrics {
    setting: Vec<(String, f64)>,
    required: bool,
    unavailable: Option<f64>,
}

impl Default for Metrics {
    /// No metrics at all: every host gets 0.
    fn default() -> Self {
        Self::new(Vec::new(), true, Some(-10_000.0))
    }
}

impl Metrics {
    /// Metrics with their ratios; whether they are required; the raw number of a host that lacks
    /// one that is not, without which such a host is an error.
    #[must_use]
    pub fn new(setting: Vec<(String, f64)>, required: bool, unavailable: Option<f64>) -> Self {
        Self {
            setting,
            required,
            unavailable,
        }
    }

    fn weigh_one(
        &self,
        index: usize,
        columns: &[Option<&MetricColumn>],
        multiplier: f64,
    ) -> Result<f64, WeigherError> {
        let mut sum = 0.0;
        for ((name, ratio), column) in self.setting.iter().zip(columns) {
            let value = column.and_then(|column| column.values.get(index));
            match value.copied().unwrap_or(MetricValue::Missing) {
                MetricValue::Known(value) => sum += value * ratio,
                MetricValue::Unset => {
                    let name = name.clone();
                    return Err(WeigherError::MetricUnset { index, name });
                }
                MetricValue::Missing if self.required => {
                    let name = name.clone();
                    return Err(WeigherError::MetricNotFound { index, name });
                }
                // NaN is not 0 either: then the host counts as unavailable.
                MetricValue::Missing if ratio * multiplier != 0.0 => {
                    return self.unavailable.ok_or_else(|| {
                        WeigherError::Other(format!("there is no number for hosts without {name}"))
                    });
                }
                MetricValue::Missing => {}
            }
        }
        Ok(sum)
    }
}

impl Weigher for Metrics {
    fn name(&self) -> &str {
        "metrics"
    }

    fn multiplier_key(&self) -> &str {
        "metrics_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        1.0
    }

    fn needs(&self) -> &[Column] {
        &[]
    }

    fn weigh(
        &self,
        _request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        hosts.check_room(out)?;
        let columns: Vec<Option<&MetricColumn>> = self
            .setting
            .iter()
            .map(|(name, _)| hosts.details.metrics.iter().find(|c| c.name == *name))
            .collect();
        for (index, out) in out.iter_mut().enumerate() {
            let multiplier = hosts.details.multipliers.get(index).copied();
            *out = self.weigh_one(index, &columns, multiplier.unwrap_or(1.0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_model::Resources;
    use ebbtide_weigher_api::Details;

    const GOOD: MetricValue = MetricValue::Known(50.0);

    fn weigh(
        weigher: &Metrics,
        values: &[MetricValue],
        multiplier: f64,
    ) -> Result<Vec<f64>, WeigherError> {
        let metrics = [MetricColumn {
            name: "cpu.percent".to_owned(),
            values: values.to_vec(),
        }];
        let multipliers = vec![multiplier; values.len()];
        let details = Details {
            metrics: &metrics,
            multipliers: &multipliers,
            facts: &[],
            ..Details::default()
        };
        let hosts = HostBatch {
            len: values.len(),
            columns: &Default::default(),
            preemptibles: None,
            details,
        };
        let resources = Resources::new();
        let request = RequestView {
            project_id: "p",
            resources: &resources,
            preemptible: false,
            group_policy: None,
            details: ebbtide_weigher_api::RequestDetails::default(),
        };
        let mut out = vec![f64::NAN; values.len()];
        weigher.weigh(&request, &hosts, &mut out).map(|()| out)
    }

    fn setting(names: &[&str], required: bool) -> Metrics {
        let setting = names
            .iter()
            .map(|name| ((*name).to_owned(), -0.5))
            .collect();
        Metrics::new(setting, required, Some(-10_000.0))
    }

    #[test]
    fn a_metric_named_twice_counts_twice() {
        let twice = setting(&["cpu.percent", "cpu.percent"], true);
        assert_eq!(weigh(&twice, &[GOOD], 1.0), Ok(vec![-50.0]));
        assert_eq!(weigh(&Metrics::default(), &[GOOD], 1.0), Ok(vec![0.0]));
    }

    #[test]
    fn a_missing_metric_is_an_error_where_required_and_a_bad_host_elsewhere() {
        let values = [GOOD, MetricValue::Missing];
        let error = weigh(&setting(&["cpu.percent"], true), &values, 1.0);
        assert!(
            matches!(error, Err(WeigherError::MetricNotFound { index: 1, .. })),
            "{error:?}"
        );
        let lenient = setting(&["cpu.percent"], false);
        assert_eq!(weigh(&lenient, &values, 1.0), Ok(vec![-25.0, -10_000.0]));
        assert_eq!(weigh(&lenient, &values, 0.0), Ok(vec![-25.0, 0.0]));
        let unset = weigh(&lenient, &[MetricValue::Unset], 1.0);
        assert!(
            matches!(unset, Err(WeigherError::MetricUnset { index: 0, .. })),
            "{unset:?}"
        );
    }
}
