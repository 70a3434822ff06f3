//! The shared part of all filters that are plugins, for every carrier.

use crate::FilterDescription;
use ebbtide_weigher_api::{
    Column, Fact, FilterError, FilterVerdicts, HostBatch, HostFilter, RequestView,
};

/// The carrier of a filter: a sandbox or a connection.
pub trait FilterTransport: Send + Sync {
    /// Requests a verdict for each host; `described`: what the filter reads.
    ///
    /// # Errors
    /// As [`HostFilter::filter`].
    fn call(
        &self,
        described: &FilterDescription,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<FilterVerdicts, FilterError>;
}

/// A filter that is a plugin.
#[derive(Debug)]
pub struct PluginFilter<C> {
    name: String,
    described: FilterDescription,
    carrier: C,
}

impl<C> PluginFilter<C> {
    /// Under the name that the operator has given it.
    #[must_use]
    pub fn new(name: &str, described: FilterDescription, carrier: C) -> Self {
        Self {
            name: name.to_owned(),
            described,
            carrier,
        }
    }

    /// What it reads, by name, in its own order.
    #[must_use]
    pub fn reads(&self) -> Vec<String> {
        self.described.reads()
    }

    /// What it says of itself.
    #[must_use]
    pub fn described(&self) -> &FilterDescription {
        &self.described
    }

    /// What carries it.
    #[must_use]
    pub fn carrier(&self) -> &C {
        &self.carrier
    }
}

impl<C: FilterTransport> HostFilter for PluginFilter<C> {
    fn name(&self) -> &str {
        &self.name
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

    fn filter(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<FilterVerdicts, FilterError> {
        self.carrier.call(&self.described, request, hosts)
    }
}
