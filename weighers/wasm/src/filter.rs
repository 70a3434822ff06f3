//! A filter that is a component.

use crate::bindings::{FilterDescription as GuestDescription, Pairs, Request, Rows, Verdicts};
use crate::call::Callee;
use crate::guest::CallUsage;
use crate::load::CompiledPlugin;
use crate::weigher::with_question;
use crate::{Grants, PluginSettings, SandboxLimits, WasmError};
use ebbtide_plugin_contract::{FilterDescription, FilterTransport, PluginFilter};
use ebbtide_weigher_api::{FilterError, FilterVerdicts, HostBatch, RequestView};
use std::fmt;

/// A filter that is a component.
pub type WasmFilter = PluginFilter<FilterGuest>;

/// The sandbox of a filter.
pub struct FilterGuest(Callee);

impl fmt::Debug for FilterGuest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterGuest").finish_non_exhaustive()
    }
}

impl FilterGuest {
    /// Begins it, and lets it describe itself.
    pub(crate) fn filter(
        compiled: &CompiledPlugin,
        name: &str,
        settings: &PluginSettings,
        limits: SandboxLimits,
        grants: Grants,
    ) -> Result<WasmFilter, WasmError> {
        let callee = Callee::new(
            compiled,
            compiled.interface(),
            "filter",
            settings,
            limits,
            grants,
        )?;
        callee.check_types::<(Pairs<'_>, Request<'_>, Rows<'_>), Verdicts>()?;
        let said: GuestDescription = callee.describe((callee.settings().as_slice(),))?;
        let described = FilterDescription::check(&said.needs)?;
        Ok(PluginFilter::new(name, described, Self(callee)))
    }

    /// Filters, and says what that took.
    ///
    /// # Errors
    /// As [`HostFilter::filter`](ebbtide_weigher_api::HostFilter::filter).
    pub fn filter_and_measure(
        &self,
        described: &FilterDescription,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<(FilterVerdicts, CallUsage), FilterError> {
        let answered = with_question(&described.needs, request, hosts, |asked, rows| {
            let settings = self.0.settings();
            let params = (settings.as_slice(), asked, rows);
            self.0.ask::<_, Verdicts>(params, hosts.len)
        })?;
        let (said, used) = answered.map_err(FilterError::Other)?;
        let verdicts = FilterVerdicts::from_codes(said.codes, said.reasons, hosts.len)?;
        Ok((verdicts, used))
    }
}

impl FilterTransport for FilterGuest {
    fn call(
        &self,
        described: &FilterDescription,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<FilterVerdicts, FilterError> {
        let (verdicts, _) = self.filter_and_measure(described, request, hosts)?;
        Ok(verdicts)
    }
}
