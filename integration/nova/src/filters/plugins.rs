//! Filters that Nova does not have: the operator's. They run behind Nova's own, for each instance
//! of a request, except for a rebuild and on forced hosts.

use crate::filtering::FilterPass;
use crate::model::{HostState, Options, RequestSpec};
use crate::states::HostStateList;
use crate::weighing;
use ebbtide_weigher_api::{FilterFailure, HostFilter};
use std::fmt;
use std::sync::Arc;

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

struct OwnFilter {
    class: &'static str,
    filter: Arc<dyn HostFilter>,
    on_failure: FilterFailure,
}

/// The operator's filters, in order.
#[derive(Clone, Default)]
pub struct FilterPlugins {
    filters: Arc<[OwnFilter]>,
    /// What the filters do not see, by the place of the host; empty: they see h_f.
    hidden: Arc<Vec<PreemptibleHold>>,
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

    /// Narrows `hosts`, which are places in `states`, down to those that pass, and writes what each
    /// filter did into `trace`.
    pub(crate) fn run<S: HostStateList + ?Sized>(
        &self,
        states: &S,
        mut hosts: Vec<usize>,
        spec: &RequestSpec,
        options: &Options,
        trace: &mut Vec<FilterPass>,
    ) -> Vec<usize> {
        for own in self.filters.iter() {
            if hosts.is_empty() {
                break;
            }
            let of: Vec<&HostState> = hosts.iter().map(|at| states.get(*at)).collect();
            let hidden: Vec<PreemptibleHold> = match self.hidden.is_empty() {
                true => Vec::new(),
                false => hosts.iter().map(|at| self.hidden_on(*at)).collect(),
            };
            let mut pass = FilterPass {
                filter: own.class,
                start: hosts.len(),
                end: hosts.len(),
                removed: Vec::new(),
                reasons: Vec::new(),
                problem: None,
            };
            let filter = own.filter.as_ref();
            match weighing::verdicts(filter, &of, &hidden, spec, options) {
                Ok(verdicts) => {
                    let mut kept = Vec::with_capacity(hosts.len());
                    for (place, host) in hosts.into_iter().enumerate() {
                        match verdicts.reason(place) {
                            None => kept.push(host),
                            Some(reason) => {
                                pass.removed.push(host);
                                pass.reasons.push(reason.to_owned());
                            }
                        }
                    }
                    hosts = kept;
                }
                Err(problem) => {
                    let text = own.on_failure.text(own.class, &problem);
                    if own.on_failure == FilterFailure::Refuse {
                        pass.removed = std::mem::take(&mut hosts);
                        pass.reasons = vec![text.clone(); pass.removed.len()];
                    }
                    pass.problem = Some(text);
                }
            }
            pass.end = hosts.len();
            trace.push(pass);
        }
        hosts
    }

    fn hidden_on(&self, at: usize) -> PreemptibleHold {
        self.hidden.get(at).copied().unwrap_or_default()
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
