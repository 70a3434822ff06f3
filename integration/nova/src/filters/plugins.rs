//! Runs the operator's filters behind Nova's own, for each instance of a request, except for a
//! rebuild and on forced hosts.

use crate::filtering::FilterPass;
use crate::model::{HostState, Options, RequestSpec};
use crate::plugins::{FilterPlugins, PreemptibleHold};
use crate::states::HostStateList;
use crate::weighing;
use ebbtide_weigher_api::FilterFailure;

impl FilterPlugins {
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
