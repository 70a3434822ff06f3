//! A weigher that was away when its scheduler started, and may come.

use crate::absent::Absent;
use ebbtide_weigher_api::{
    Bounds, Column, Fact, HostBatch, RequestView, Weigher, WeigherError, WeigherForm,
};
use std::sync::{Arc, OnceLock};

/// Fails until it has been [reached](Late::reached).
pub(crate) struct Late {
    pub(crate) absent: Absent,
    pub(crate) reached: OnceLock<Arc<dyn Weigher>>,
}

impl Late {
    fn inner(&self) -> &dyn Weigher {
        match self.reached.get() {
            Some(weigher) => weigher.as_ref(),
            None => &self.absent,
        }
    }
}

#[warn(
    clippy::missing_trait_methods,
    reason = "what a decorator forgets comes from the trait's defaults and not from the weigher"
)]
impl Weigher for Late {
    fn name(&self) -> &str {
        self.absent.name()
    }

    fn multiplier_key(&self) -> &str {
        self.absent.multiplier_key()
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

    fn form(&self, request: &RequestView<'_>) -> WeigherForm {
        self.inner().form(request)
    }

    fn weigh(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        self.inner().weigh(request, hosts, out)
    }
}
