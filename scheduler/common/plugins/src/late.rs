//! A weigher that was away when its scheduler started, and may come.

use crate::absent::Absent;
use ebbtide_weigher_api::{Weigher, WeigherDecorator};
use std::sync::{Arc, OnceLock};

/// Fails until it has been [reached](Late::reached). Both weighers have the name that the operator
/// has given.
pub(crate) struct Late {
    pub(crate) absent: Absent,
    pub(crate) reached: OnceLock<Arc<dyn Weigher>>,
}

impl WeigherDecorator for Late {
    fn inner(&self) -> &dyn Weigher {
        match self.reached.get() {
            Some(weigher) => weigher.as_ref(),
            None => &self.absent,
        }
    }
}
