//! Weighers around other weighers.

use crate::{Bounds, Column, Fact, HostBatch, RequestView, Weigher, WeigherError, WeigherForm};

/// A weigher that answers for another one. It is the other one in everything but the methods that
/// it defines itself.
pub trait WeigherDecorator: Send + Sync {
    /// The weigher that it decorates.
    fn inner(&self) -> &dyn Weigher;

    /// As [`Weigher::weigh`].
    ///
    /// # Errors
    /// As [`Weigher::weigh`].
    fn weigh(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        self.inner().weigh(request, hosts, out)
    }

    /// As [`Weigher::form`].
    fn form(&self, request: &RequestView<'_>) -> WeigherForm {
        self.inner().form(request)
    }
}

#[warn(
    clippy::missing_trait_methods,
    reason = "what is forgotten here comes from the trait's defaults and not from the weigher"
)]
impl<D: WeigherDecorator> Weigher for D {
    fn name(&self) -> &str {
        self.inner().name()
    }

    fn multiplier_key(&self) -> &str {
        self.inner().multiplier_key()
    }

    fn default_multiplier(&self) -> f64 {
        self.inner().default_multiplier()
    }

    fn multiplier_sign(&self) -> f64 {
        self.inner().multiplier_sign()
    }

    fn needs(&self) -> &[Column] {
        self.inner().needs()
    }

    fn facts(&self) -> &[Fact] {
        self.inner().facts()
    }

    fn needs_preemptibles(&self) -> bool {
        self.inner().needs_preemptibles()
    }

    fn bounds(&self) -> Bounds {
        self.inner().bounds()
    }

    fn weigh(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        WeigherDecorator::weigh(self, request, hosts, out)
    }

    fn form(&self, request: &RequestView<'_>) -> WeigherForm {
        WeigherDecorator::form(self, request)
    }
}
