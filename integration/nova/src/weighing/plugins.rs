//! Weighers that Nova does not have: the operator's.

use super::NovaWeigher;
use ebbtide_weigher_api::Weigher;
use std::fmt;
use std::sync::Arc;

/// The operator's weighers, by name. They add up behind Nova's own.
#[derive(Clone, Default)]
pub struct Plugins(Arc<[NovaWeigher]>);

impl Plugins {
    /// Weighers with their multipliers.
    #[must_use]
    pub fn new(weighers: Vec<(Arc<dyn Weigher>, f64)>) -> Self {
        let each = weighers
            .into_iter()
            .map(|(weigher, multiplier)| NovaWeigher {
                // Some bytes at the start and at each SIGHUP; they are named wherever Nova's
                // classes are.
                class: Box::leak(weigher.name().to_owned().into_boxed_str()),
                weigher,
                configured: Some(multiplier),
            });
        Self(each.collect())
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.iter().map(|plugin| plugin.class)
    }

    pub(super) fn get(&self, name: &str) -> Option<NovaWeigher> {
        self.0.iter().find(|plugin| plugin.class == name).cloned()
    }
}

impl fmt::Debug for Plugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl PartialEq for Plugins {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.is_empty() && other.0.is_empty())
    }
}
