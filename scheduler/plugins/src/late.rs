//! A weigher that was away when its scheduler started, and may come.

use crate::absent::Absent;
use ebbtide_weigher_api::{Bounds, Column, Fact, HostBatch, RequestView, Weigher, WeigherError};
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
        self.inner().weigh(request, hosts, out)
    }
}
