//! A weigher that was away when its scheduler started, and may come.

use crate::unreachable_plugin::UnreachablePlugin;
use ebbtide_weigher_api::{Weigher, WeigherDecorator};
use std::sync::{Arc, OnceLock};

/// Fails until it has been [reached](LatePlugin::reached). Both weighers have the name that the
/// operator
/// has given.
pub(crate) struct LatePlugin {
    pub(crate) absent: UnreachablePlugin,
    pub(crate) reached: OnceLock<Arc<dyn Weigher>>,
}

impl WeigherDecorator for LatePlugin {
    fn inner(&self) -> &dyn Weigher {
        match self.reached.get() {
            Some(weigher) => weigher.as_ref(),
            None => &self.absent,
        }
    }
}
