//! The operator's weighers and filters, which Nova does not have, and what a weigher is beside
//! Nova's name of it. Options hold them, so they stand below the options.

use ebbtide_weigher_api::{FilterFailure, HostFilter, Weigher};
use std::fmt;
use std::sync::Arc;

/// A weigher under the class name that Nova or its author gave it.
#[derive(Clone)]
pub struct NovaWeigher {
    /// Nova's class name.
    pub class: &'static str,
    /// What it is here.
    pub weigher: Arc<dyn Weigher>,
    /// Its multiplier in the configuration; `None`: null, which no host can be weighed with.
    pub configured: Option<f64>,
}

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

    pub(crate) fn get(&self, name: &str) -> Option<NovaWeigher> {
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

/// What preemptible instances hold of a host: it is there in Nova's host state, and not in h_n.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PreemptibleHold {
    /// Allocated vCPUs.
    pub vcpus: i64,
    /// Allocated memory in MiB.
    pub memory_mb: i64,
    /// Allocated disk in GiB.
    pub disk_gb: i64,
    /// The number of instances, leaving ones included.
    pub instances: i64,
}

/// A filter with what follows when it fails.
pub(crate) struct OwnFilter {
    pub(crate) class: &'static str,
    pub(crate) filter: Arc<dyn HostFilter>,
    pub(crate) on_failure: FilterFailure,
}

/// The operator's filters, in order.
#[derive(Clone, Default)]
pub struct FilterPlugins {
    pub(crate) filters: Arc<[OwnFilter]>,
    /// What the filters do not see, by the place of the host; empty: they see h_f.
    pub(crate) hidden: Arc<Vec<PreemptibleHold>>,
}

impl FilterPlugins {
    /// Filters, each with what follows when it fails.
    #[must_use]
    pub fn new(filters: Vec<(Arc<dyn HostFilter>, FilterFailure)>) -> Self {
        let each = filters.into_iter().map(|(filter, on_failure)| OwnFilter {
            // Some bytes at the start and at each SIGHUP, as for weighers.
            class: Box::leak(filter.name().to_owned().into_boxed_str()),
            filter,
            on_failure,
        });
        Self {
            filters: each.collect(),
            hidden: Arc::default(),
        }
    }

    /// The same filters on h_n. `held`: what preemptible instances hold, by the place of the host.
    #[must_use]
    pub fn on_normal(&self, held: Vec<PreemptibleHold>) -> Self {
        Self {
            filters: Arc::clone(&self.filters),
            hidden: Arc::new(held),
        }
    }

    /// True without filters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// True if a filter has this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.filters.iter().any(|own| own.class == name)
    }
}

impl fmt::Debug for FilterPlugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.filters.iter().map(|own| own.class);
        f.debug_list().entries(names).finish()
    }
}

impl PartialEq for FilterPlugins {
    fn eq(&self, other: &Self) -> bool {
        let same = Arc::ptr_eq(&self.filters, &other.filters)
            || (self.filters.is_empty() && other.filters.is_empty());
        same && self.hidden == other.hidden
    }
}
