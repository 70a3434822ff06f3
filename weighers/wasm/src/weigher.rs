//! A weigher that is a component.

use crate::bindings::{
    Amount, Column as WasmColumn, Pair, Pairs, Request, Rows,
    WeigherDescription as GuestDescription,
};
use crate::call::Callee;
use crate::guest::CallUsage;
use crate::load::CompiledPlugin;
use crate::{Grants, PluginSettings, SandboxLimits, WasmError};
use ebbtide_plugin_contract::{
    self as contract, HostNeed, PluginWeigher, WeigherDescription, WeigherTransport,
};
use ebbtide_weigher_api::{Bounds, HostBatch, RequestView, WeigherError};
use std::fmt;

/// A weigher that is a component.
pub type WasmWeigher = PluginWeigher<WeigherGuest>;

/// The sandbox of a weigher.
pub struct WeigherGuest(Callee);

impl fmt::Debug for WeigherGuest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeigherGuest").finish_non_exhaustive()
    }
}

impl WeigherGuest {
    /// Begins it, and lets it describe itself.
    pub(crate) fn weigher(
        compiled: &CompiledPlugin,
        name: &str,
        settings: &PluginSettings,
        limits: SandboxLimits,
        grants: Grants,
    ) -> Result<WasmWeigher, WasmError> {
        let callee = Callee::new(
            compiled,
            compiled.interface(),
            "weigh",
            settings,
            limits,
            grants,
        )?;
        callee.check_types::<(Pairs<'_>, Request<'_>, Rows<'_>), Vec<f64>>()?;
        let said: GuestDescription = callee.describe((callee.settings().as_slice(),))?;
        let bounds = Bounds {
            min: said.min,
            max: said.max,
        };
        let described = WeigherDescription::check(said.default_multiplier, &said.needs, bounds)?;
        Ok(PluginWeigher::new(name, described, Self(callee)))
    }

    /// Weighs, and says what that took.
    ///
    /// # Errors
    /// As [`Weigher::weigh`](ebbtide_weigher_api::Weigher::weigh).
    pub fn weigh_and_measure(
        &self,
        described: &WeigherDescription,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<(Vec<f64>, CallUsage), WeigherError> {
        with_question(&described.needs, request, hosts, |asked, rows| {
            let settings = self.0.settings();
            let params = (settings.as_slice(), asked, rows);
            let answered = self.0.numbers(params, hosts.len);
            answered.map_err(WeigherError::Other)
        })?
    }
}

/// Makes the question of a weigher or a filter and gives it to `ask`.
///
/// # Errors
/// What is missing if the batch was made for another plugin.
pub(crate) fn with_question<T>(
    needs: &[HostNeed],
    request: &RequestView<'_>,
    hosts: &HostBatch<'_>,
    ask: impl FnOnce(Request<'_>, Rows<'_>) -> T,
) -> Result<T, WeigherError> {
    let texts = contract::texts(needs, hosts)?;
    let columns = contract::plugin_columns(needs, hosts, &texts)?;
    let columns: Vec<WasmColumn<'_>> = columns.into_iter().map(WasmColumn::from).collect();
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
    Ok(ask(asked, rows))
}

impl WeigherTransport for WeigherGuest {
    fn call(
        &self,
        described: &WeigherDescription,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<Vec<f64>, WeigherError> {
        let (numbers, _) = self.weigh_and_measure(described, request, hosts)?;
        Ok(numbers)
    }
}
