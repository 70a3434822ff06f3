//! What is kept of the order of hosts, so that it can be explained after the answer. Keeping it
//! costs next to nothing: it consists of what the order was made from.

use crate::filtering::FilterPass;
use crate::model::{Options, RequestSpec};
use crate::states::{HostStateList, HostStates};
use crate::weighing::{self, MultiplierSource, WeigherResult};
use ebbtide_weigher_api::arithmetic::Scale;
use std::sync::Arc;

/// Most hosts of an order that a record names.
pub const RECORDED_HOSTS: usize = 10;
/// Most hosts that a record names of those that one filter dropped.
pub const RECORDED_DROPPED: usize = 3;
/// Most instances of one request that are recorded.
pub const RECORDED_INSTANCES: usize = 10;

/// What a weigher's numbers were normalised with.
#[derive(Debug, Clone, PartialEq)]
pub struct WeigherScale {
    /// Nova's class name.
    pub class: &'static str,
    /// The ends over all hosts that passed.
    pub scale: Scale,
    /// What the weigher said, by place, where asking it again could give another answer.
    pub raw: Option<Arc<Vec<f64>>>,
}

/// How hosts were weighed.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum WeighingRecord {
    /// Not at all: at most one host passed.
    #[default]
    Nothing,
    /// By columns. Weighers that certainly give all hosts the same for the request are left out.
    Scales(Vec<WeigherScale>),
    /// Host by host: what each weigher gave the first hosts of the order.
    Parts(Vec<WeigherResult>),
}

/// What one filter did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterRecord {
    /// Nova's class name.
    pub filter: &'static str,
    /// Hosts before it.
    pub before: usize,
    /// Hosts after it.
    pub after: usize,
    /// Some of the hosts that it dropped.
    pub dropped: Vec<usize>,
    /// Why, in the words of a filter that is a plugin, parallel to `dropped`.
    pub reasons: Vec<String>,
    /// The failure of a filter that is a plugin, with what followed.
    pub problem: Option<String>,
}

impl From<FilterPass> for FilterRecord {
    fn from(pass: FilterPass) -> Self {
        Self {
            filter: pass.filter,
            before: pass.start,
            after: pass.end,
            dropped: pass.removed.into_iter().take(RECORDED_DROPPED).collect(),
            reasons: pass.reasons.into_iter().take(RECORDED_DROPPED).collect(),
            problem: pass.problem,
        }
    }
}

/// What explains an order of hosts. Shared, so that a survey and each order made from it need no
/// copy.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OrderRecord {
    /// What each filter did, where that was written down.
    pub filters: Vec<FilterRecord>,
    /// How the totals came about.
    pub weighing: WeighingRecord,
}

/// How the hosts of one instance came into their order.
#[derive(Debug, Clone, PartialEq)]
pub struct SortRecord {
    /// How many hosts passed.
    pub passing: usize,
    /// The first hosts with their totals, best first, before chance chooses among them.
    pub best: Vec<(usize, f64)>,
    order: Arc<OrderRecord>,
}

impl SortRecord {
    /// What is kept of an order.
    pub(super) fn new(sorted: &super::SortedHosts) -> Self {
        let hosts = sorted.hosts.iter().take(RECORDED_HOSTS).enumerate();
        Self {
            passing: sorted.hosts.len() + sorted.behind,
            best: hosts
                .map(|(at, host)| (*host, sorted.totals.get(at).copied().unwrap_or(0.0)))
                .collect(),
            order: Arc::clone(&sorted.record),
        }
    }

    /// What each filter did.
    #[must_use]
    pub fn filters(&self) -> &[FilterRecord] {
        &self.order.filters
    }

    /// What each weigher gave these hosts, in the order in which they add up. `states` are those
    /// that were sorted. A host that is not among the first of an order that was made host by host
    /// gets nothing.
    #[must_use]
    pub fn weights(
        &self,
        hosts: &[usize],
        states: &impl HostStateList,
        spec: &RequestSpec,
        options: &Options,
    ) -> Vec<HostWeights> {
        let mut all: Vec<HostWeights> = vec![Vec::new(); hosts.len()];
        match &self.order.weighing {
            WeighingRecord::Nothing => {}
            WeighingRecord::Parts(parts) => {
                for (host, weights) in hosts.iter().zip(&mut all) {
                    let Some(at) = self.best.iter().position(|(other, _)| other == host) else {
                        continue;
                    };
                    weights.extend(parts.iter().map(|part| HostWeight {
                        class: part.class,
                        raw: part.raw[at],
                        norm: part.norm[at],
                        mult: part.mult[at],
                    }));
                }
            }
            WeighingRecord::Scales(scales) => {
                for scale in scales {
                    let given = scale.weights(hosts, states, spec, options);
                    for (weights, weight) in all.iter_mut().zip(given) {
                        weights.push(weight);
                    }
                }
            }
        }
        all
    }
}

/// What all weighers gave one host.
pub type HostWeights = Vec<HostWeight>;

/// What one weigher gave one host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostWeight {
    /// Nova's class name.
    pub class: &'static str,
    /// After clamping.
    pub raw: f64,
    /// Normalised.
    pub norm: f64,
    /// The multiplier.
    pub mult: f64,
}

impl WeigherScale {
    /// The same operations as when the order was made, on the same numbers.
    fn weights(
        &self,
        hosts: &[usize],
        states: &impl HostStateList,
        spec: &RequestSpec,
        options: &Options,
    ) -> Vec<HostWeight> {
        let Some(nova) = weighing::by_class(self.class, options) else {
            return Vec::new();
        };
        let of: Vec<_> = hosts.iter().map(|at| states.get(*at)).collect();
        let raw = match &self.raw {
            Some(raw) => hosts.iter().map(|at| raw[*at]).collect(),
            None => match weighing::part(&nova, &of, spec, options) {
                Ok(part) => part.raw,
                Err(_) => return Vec::new(),
            },
        };
        let source = MultiplierSource::new(nova.weigher.as_ref(), nova.configured);
        let hosts = raw.into_iter().zip(of);
        let weight = |(raw, state)| HostWeight {
            class: self.class,
            raw,
            norm: self.scale.normalised(raw),
            mult: source.of(state).unwrap_or(f64::NAN),
        };
        hosts.map(weight).collect()
    }
}

/// How the hosts of one instance were sorted, and the states that they had then.
#[derive(Debug, Clone)]
pub struct InstanceRecord {
    /// The order.
    pub sort: SortRecord,
    /// The states that filters and weighers saw.
    pub states: HostStates,
}
