//! Prefers newer hypervisors.
//!
//! - Raw number: the version as a number (8.2.0 is 8002000), 0 if unknown.
//! - Normalised: the oldest becomes 0, the newest 1; hosts that are all alike get 0.
//! - Multiplier: `hypervisor_version_weight_multiplier`, default 1.0; aggregates may set the same
//!   key in their metadata.
//! - To prefer older ones, make the multiplier negative.
//!
//! Source: Nova, `nova/scheduler/weights/hypervisor_version.py` (`HypervisorVersionWeigher`, no
//! bounds).

use crate::columns;
use ebbtide_weigher_api::{Column, HostBatch, RequestView, Weigher, WeigherError, WeigherForm};

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct HypervisorVersion;

impl Weigher for HypervisorVersion {
    fn name(&self) -> &str {
        "hypervisor_version"
    }

    fn multiplier_key(&self) -> &str {
        "hypervisor_version_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        1.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::HypervisorVersion]
    }

    fn weigh(
        &self,
        _request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        columns::map(hosts, Column::HypervisorVersion, out, |version| version)
    }

    fn form(&self, _request: &RequestView<'_>) -> WeigherForm {
        WeigherForm::Column(Column::HypervisorVersion)
    }
}
