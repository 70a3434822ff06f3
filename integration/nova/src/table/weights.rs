//! The weighers' columns, and the sum.

use super::Instances;
use super::classes::ReferenceNeeded;
use crate::model::{HostState, Options, RequestSpec};
use crate::schedule::WeigherScale;
use crate::states::{HostStateList, HostStates};
use crate::weighing::{self, MultiplierSource, NovaWeigher};
use ebbtide_model::host_set::HostSet;
use ebbtide_weigher_api::arithmetic::Scale;
use ebbtide_weigher_api::{Bounds, Column};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Hosts whose totals are made at once, so that they stay in the cache while the columns go by.
const CHUNK: usize = 512;
/// Numbers beyond this might overflow on the way to a total.
const TAME: f64 = 1e150;

/// The weighers of a cloud.
#[derive(Debug)]
pub(super) struct Weights {
    columns: Vec<Part>,
}

/// One weigher.
struct Part {
    nova: NovaWeigher,
    bounds: Bounds,
    /// It hangs on the request.
    asked: bool,
    /// Multipliers by place; 0 where there is no host.
    multipliers: Vec<f64>,
    /// How many hosts have which multiplier, by its bits.
    distinct: HashMap<u64, u32>,
    /// Hosts that have to be left to the reference: it raises there, or a number is not finite.
    wild: HostSet,
    /// What it says of each host where it does not hang on the request, clamped.
    raw: Vec<f64>,
    /// Tame hosts by rising number, then place.
    rising: Vec<u32>,
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.nova.class)
    }
}

/// One column on its way into the totals.
enum Term<'a> {
    Same {
        raw: &'a [f64],
        lo: f64,
        range: f64,
        multiplier: f64,
    },
    Varying {
        raw: &'a [f64],
        lo: f64,
        range: f64,
        multiplier: &'a [f64],
    },
    Ready(Vec<f64>),
}

/// What a weigher adds to the totals, unless it is exactly nothing, and with which scale.
#[derive(Default)]
struct WeigherTerm<'a> {
    term: Option<Term<'a>>,
    scale: Option<WeigherScale>,
}

fn tame(value: f64) -> bool {
    value.abs() < TAME
}

impl Weights {
    pub(super) fn new(options: &Options) -> Self {
        let known = options
            .weighers
            .iter()
            .filter_map(|class| weighing::by_class(class, options));
        Self {
            columns: known.map(Part::new).collect(),
        }
    }

    /// Takes a host in, or out.
    pub(super) fn put(&mut self, at: usize, state: Option<&HostState>, options: &Options) {
        for column in &mut self.columns {
            column.put(at, state, options);
        }
    }

    /// Totals for the hosts that passed, of which there are at least two; those of others mean
    /// nothing. And the scales of the weighers.
    pub(super) fn add_up(
        &self,
        states: &HostStates,
        instances: &Instances,
        options: &Options,
        spec: &RequestSpec,
        alive: &HostSet,
    ) -> Result<(Vec<f64>, Vec<WeigherScale>), ReferenceNeeded> {
        let mut totals = vec![0.0; states.len()];
        let mut terms = Vec::with_capacity(self.columns.len());
        let mut scales = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let weighed = column.term(states, instances, options, spec, alive)?;
            terms.extend(weighed.term);
            scales.extend(weighed.scale);
        }
        for (at, totals) in totals.chunks_mut(CHUNK).enumerate() {
            let from = at * CHUNK;
            let here = from..from + totals.len();
            for term in &terms {
                match term {
                    Term::Same {
                        raw,
                        lo,
                        range,
                        multiplier,
                    } => {
                        for (total, raw) in totals.iter_mut().zip(&raw[here.clone()]) {
                            *total += multiplier * ((raw - lo) / range);
                        }
                    }
                    Term::Varying {
                        raw,
                        lo,
                        range,
                        multiplier,
                    } => {
                        let columns = raw[here.clone()].iter().zip(&multiplier[here.clone()]);
                        for (total, (raw, multiplier)) in totals.iter_mut().zip(columns) {
                            *total += multiplier * ((raw - lo) / range);
                        }
                    }
                    Term::Ready(weighted) => {
                        for (total, weighted) in totals.iter_mut().zip(&weighted[here.clone()]) {
                            *total += weighted;
                        }
                    }
                }
            }
        }
        Ok((totals, scales))
    }
}

impl Part {
    fn new(nova: NovaWeigher) -> Self {
        Self {
            bounds: nova.weigher.bounds(),
            asked: weighing::hangs_on_request(nova.class),
            nova,
            multipliers: Vec::new(),
            distinct: HashMap::new(),
            wild: HostSet::default(),
            raw: Vec::new(),
            rising: Vec::new(),
        }
    }

    fn put(&mut self, at: usize, state: Option<&HostState>, options: &Options) {
        if self.raw.len() <= at {
            self.raw.resize(at + 1, 0.0);
            self.multipliers.resize(at + 1, f64::INFINITY);
            self.wild.grow(at + 1);
        }
        let source = MultiplierSource::new(self.nova.weigher.as_ref(), self.nova.configured);
        // NaN stands for null, infinity for no host: neither is tame.
        let multiplier = state.map_or(f64::INFINITY, |state| source.of(state).unwrap_or(f64::NAN));
        self.count(self.multipliers[at], false);
        self.count(multiplier, true);
        self.multipliers[at] = multiplier;
        let raw = state.and_then(|state| self.of_host(state, options));
        let tame = tame(multiplier) && raw.is_some();
        if !self.asked {
            let raw = raw.filter(|_| tame);
            let before = self.place_of(at);
            let known = before.map(|_| self.raw[at].to_bits());
            if known != raw.map(f64::to_bits) || known.is_none() {
                if let Some(place) = before {
                    self.rising.remove(place);
                }
                self.raw[at] = raw.unwrap_or(0.0);
                if raw.is_some() {
                    let place = self.rising_before(at);
                    self.rising.insert(place, at as u32);
                }
            }
        }
        self.wild.put(at, state.is_some() && !tame);
    }

    fn count(&mut self, multiplier: f64, more: bool) {
        if multiplier == f64::INFINITY {
            return;
        }
        let count = self.distinct.entry(multiplier.to_bits()).or_insert(0);
        if more {
            *count += 1;
        } else {
            *count -= 1;
            if *count == 0 {
                self.distinct.remove(&multiplier.to_bits());
            }
        }
    }

    /// What the weigher says of a host whatever the request; `None` if it has to be left to the
    /// reference.
    fn of_host(&self, state: &HostState, options: &Options) -> Option<f64> {
        if self.asked {
            return Some(0.0);
        }
        let part = weighing::part(&self.nova, &[state], &RequestSpec::default(), options).ok()?;
        part.raw.first().copied().filter(|raw| tame(*raw))
    }

    /// Whether a place stands before another among the rising ones.
    fn is_before(&self, other: u32, at: usize) -> bool {
        let order = self.raw[other as usize].total_cmp(&self.raw[at]);
        order.then((other as usize).cmp(&at)).is_lt()
    }

    /// How many of the rising ones stand before a place.
    fn rising_before(&self, at: usize) -> usize {
        let rising = &self.rising;
        rising.partition_point(|other| self.is_before(*other, at))
    }

    /// Where a host stands among the rising ones, if it does.
    fn place_of(&self, at: usize) -> Option<usize> {
        let place = self.rising_before(at);
        (self.rising.get(place).copied() == Some(at as u32)).then_some(place)
    }

    /// The multiplier of all hosts, if it is the same for all.
    fn everywhere(&self) -> Option<f64> {
        let mut distinct = self.distinct.keys();
        let first = distinct.next().copied()?;
        distinct.next().is_none().then(|| f64::from_bits(first))
    }

    fn term<'a>(
        &'a self,
        states: &HostStates,
        instances: &Instances,
        options: &Options,
        spec: &RequestSpec,
        alive: &HostSet,
    ) -> Result<WeigherTerm<'a>, ReferenceNeeded> {
        if alive.meets(&self.wild) {
            return Err(ReferenceNeeded);
        }
        if self.asked {
            return self.asked(states, instances, options, spec, alive);
        }
        let everywhere = self.everywhere();
        let at_end = |mut places: &mut dyn Iterator<Item = &u32>| {
            let place = (&mut places).find(|at| alive.has(**at as usize));
            place.map_or(0.0, |at| self.raw[*at as usize])
        };
        let lo = self.bounds.min;
        let lo = lo.unwrap_or_else(|| at_end(&mut self.rising.iter()));
        let hi = self.bounds.max;
        let hi = hi.unwrap_or_else(|| at_end(&mut self.rising.iter().rev()));
        let scale = self.scale(Scale { lo, hi }, None);
        // It adds exactly nothing.
        if everywhere == Some(0.0) || lo == hi {
            return Ok(WeigherTerm { term: None, scale });
        }
        let (raw, range) = (self.raw.as_slice(), hi - lo);
        let term = Some(match everywhere {
            Some(multiplier) => Term::Same {
                raw,
                lo,
                range,
                multiplier,
            },
            None => Term::Varying {
                raw,
                lo,
                range,
                multiplier: &self.multipliers,
            },
        });
        Ok(WeigherTerm { term, scale })
    }

    fn scale(&self, scale: Scale, raw: Option<Vec<f64>>) -> Option<WeigherScale> {
        Some(WeigherScale {
            class: self.nova.class,
            scale,
            raw: raw.map(Arc::new),
        })
    }

    /// Asks the weigher about the hosts that passed, as the reference does.
    fn asked(
        &self,
        states: &HostStates,
        instances: &Instances,
        options: &Options,
        spec: &RequestSpec,
        alive: &HostSet,
    ) -> Result<WeigherTerm<'static>, ReferenceNeeded> {
        if weighing::says_nothing(self.nova.class, spec, options) {
            return Ok(WeigherTerm::default());
        }
        if weighing::is_novas(self.nova.class)
            && self.nova.weigher.needs() == [Column::GroupMembers]
        {
            return self.of_members(states.len(), instances, spec, alive);
        }
        let hosts: Vec<&HostState> = alive.iter().map(|at| states.get(at)).collect();
        let part =
            weighing::part(&self.nova, &hosts, spec, options).map_err(|_| ReferenceNeeded)?;
        if !part.raw.iter().all(|raw| tame(*raw)) {
            return Err(ReferenceNeeded);
        }
        let mut weighted = vec![0.0; states.len()];
        let mut raw = vec![0.0; states.len()];
        for (at, (own, said)) in alive.iter().zip(part.weighted.iter().zip(&part.raw)) {
            weighted[at] = *own;
            raw[at] = *said;
        }
        let ends = ends(part.raw.iter().copied());
        Ok(WeigherTerm {
            term: Some(Term::Ready(weighted)),
            scale: self.scale(Scale::new(ends.0, ends.1, self.bounds), Some(raw)),
        })
    }
}

impl Part {
    /// Members are looked for by instance, for a group is on few hosts.
    fn of_members(
        &self,
        len: usize,
        instances: &Instances,
        spec: &RequestSpec,
        alive: &HostSet,
    ) -> Result<WeigherTerm<'static>, ReferenceNeeded> {
        let group = spec.instance_group.iter();
        let members: BTreeSet<&String> = group.flat_map(|group| &group.members).collect();
        let mut counts = vec![0.0; len];
        for at in members.into_iter().flat_map(|uuid| instances.hosts(uuid)) {
            counts[at] += 1.0;
        }
        let weigher = self.nova.weigher.as_ref();
        let raw = weighing::of_members(weigher, counts, spec).map_err(|_| ReferenceNeeded)?;
        let (lo, hi) = ends(alive.iter().map(|at| raw[at]));
        if lo == hi {
            return Ok(WeigherTerm {
                term: None,
                scale: self.scale(Scale { lo, hi }, Some(raw)),
            });
        }
        let range = hi - lo;
        let weighted = raw.iter().enumerate().map(|(at, raw)| {
            let multiplier = self.multipliers[at];
            multiplier * ((raw - lo) / range)
        });
        Ok(WeigherTerm {
            term: Some(Term::Ready(weighted.collect())),
            scale: self.scale(Scale { lo, hi }, Some(raw)),
        })
    }
}

/// The smallest and the largest of some numbers.
fn ends(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    numbers.fold(ends, |(lo, hi), number| (lo.min(number), hi.max(number)))
}
