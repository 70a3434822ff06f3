//! The shared part of all weighers that are plugins, for every carrier.

use crate::WeigherDescription;
use ebbtide_weigher_api::{Bounds, Column, Fact, HostBatch, RequestView, Weigher, WeigherError};

/// The carrier of a weigher: a sandbox or a connection.
pub trait WeigherTransport: Send + Sync {
    /// Requests one number for each host; `described`: what the weigher reads.
    ///
    /// # Errors
    /// As [`Weigher::weigh`].
    fn call(
        &self,
        described: &WeigherDescription,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<Vec<f64>, WeigherError>;
}

/// A weigher that is a plugin.
#[derive(Debug)]
pub struct PluginWeigher<C> {
    name: String,
    multiplier_key: String,
    described: WeigherDescription,
    carrier: C,
}

impl<C> PluginWeigher<C> {
    /// Under the name that the operator has given it.
    #[must_use]
    pub fn new(name: &str, described: WeigherDescription, carrier: C) -> Self {
        Self {
            name: name.to_owned(),
            multiplier_key: format!("{name}_weight_multiplier"),
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
    pub fn described(&self) -> &WeigherDescription {
        &self.described
    }

    /// What carries it.
    #[must_use]
    pub fn carrier(&self) -> &C {
        &self.carrier
    }
}

impl<C: WeigherTransport> Weigher for PluginWeigher<C> {
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
        let numbers = self.carrier.call(&self.described, request, hosts)?;
        // Carriers check that there are as many numbers as hosts.
        out.iter_mut()
            .zip(numbers)
            .for_each(|(place, number)| *place = number);
        Ok(())
    }
}
