//! The weighers' columns, and the sum.

use super::bits::Bits;
use super::classes::Raises;
use crate::model::{HostState, Options, RequestSpec};
use crate::weighing::{self, MultiplierSource, NovaWeigher};
use ebbtide_weigher_api::{Bounds, Column};
use std::collections::{BTreeSet, HashMap};

/// Hosts whose totals are made at once, so that they stay in the cache while the columns go by.
const CHUNK: usize = 512;
/// Numbers beyond this might overflow on the way to a total.
const TAME: f64 = 1e150;

/// The weighers of a cloud.
#[derive(Debug)]
pub(super) struct Weights {
    columns: Vec<Part>,
    totals: Vec<f64>,
}

/// How much a weigher counts.
#[derive(Debug)]
enum Multiplier {
    Everywhere(f64),
    OnHost(Vec<f64>),
}

/// One weigher.
struct Part {
    nova: NovaWeigher,
    multiplier: Multiplier,
    kind: Kind,
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.nova.class, self.kind)
    }
}

/// What a weigher says.
#[derive(Debug)]
enum Kind {
    /// Nothing, whatever the request: it adds exactly zero.
    Nothing,
    /// Always the same of a host.
    Fixed(Fixed),
    /// Something that hangs on the request.
    Asked,
    /// Something that has to be left to the reference: on some host it raises, or a number is not finite.
    Wild,
}

/// Numbers that do not hang on the request.
#[derive(Debug)]
struct Fixed {
    /// Clamped.
    raw: Vec<f64>,
    /// Places by rising number.
    rising: Vec<u32>,
    bounds: Bounds,
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

fn tame(value: f64) -> bool {
    value.abs() < TAME
}

impl Weights {
    pub(super) fn new(states: &[HostState], options: &Options) -> Self {
        let known = options
            .weighers
            .iter()
            .filter_map(|class| weighing::by_class(class, options));
        Self {
            columns: known.map(|nova| Part::new(nova, states, options)).collect(),
            totals: vec![0.0; states.len()],
        }
    }

    /// Totals of all hosts; those of hosts that did not pass mean nothing.
    pub(super) fn totals(&self) -> &[f64] {
        &self.totals
    }

    /// Adds up for the hosts that passed, of which there are at least two.
    pub(super) fn add_up(
        &mut self,
        states: &[HostState],
        instances: &HashMap<String, Vec<u32>>,
        options: &Options,
        spec: &RequestSpec,
        alive: &Bits,
    ) -> Result<(), Raises> {
        let mut terms = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            if let Some(term) = column.term(states, instances, options, spec, alive)? {
                terms.push(term);
            }
        }
        for (at, totals) in self.totals.chunks_mut(CHUNK).enumerate() {
            totals.fill(0.0);
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
        Ok(())
    }
}

impl Part {
    fn new(nova: NovaWeigher, states: &[HostState], options: &Options) -> Self {
        let source = MultiplierSource::new(nova.weigher.as_ref(), nova.configured);
        // NaN stands for null: neither is tame.
        let own = |state: &HostState| source.of(state).unwrap_or(f64::NAN);
        let on_host: Vec<f64> = states.iter().map(own).collect();
        let first = on_host.first().copied().unwrap_or(0.0);
        let everywhere = on_host.iter().all(|m| m.to_bits() == first.to_bits());
        let kind = if on_host.iter().all(|m| tame(*m)) {
            Kind::of(&nova, states, options, everywhere && first == 0.0)
        } else {
            Kind::Wild
        };
        let multiplier = if everywhere {
            Multiplier::Everywhere(first)
        } else {
            Multiplier::OnHost(on_host)
        };
        Self {
            nova,
            multiplier,
            kind,
        }
    }

    fn term<'a>(
        &'a self,
        states: &[HostState],
        instances: &HashMap<String, Vec<u32>>,
        options: &Options,
        spec: &RequestSpec,
        alive: &Bits,
    ) -> Result<Option<Term<'a>>, Raises> {
        let fixed = match &self.kind {
            Kind::Nothing => return Ok(None),
            Kind::Wild => return Err(Raises),
            Kind::Asked => return self.asked(states, instances, options, spec, alive),
            Kind::Fixed(fixed) => fixed,
        };
        let at_end = |mut places: &mut dyn Iterator<Item = &u32>| {
            let place = (&mut places).find(|at| alive.has(**at as usize));
            place.map_or(0.0, |at| fixed.raw[*at as usize])
        };
        let lo = fixed
            .bounds
            .min
            .unwrap_or_else(|| at_end(&mut fixed.rising.iter()));
        let hi = fixed
            .bounds
            .max
            .unwrap_or_else(|| at_end(&mut fixed.rising.iter().rev()));
        if lo == hi {
            return Ok(None);
        }
        let (raw, range) = (fixed.raw.as_slice(), hi - lo);
        Ok(Some(match &self.multiplier {
            Multiplier::Everywhere(multiplier) => Term::Same {
                raw,
                lo,
                range,
                multiplier: *multiplier,
            },
            Multiplier::OnHost(multiplier) => Term::Varying {
                raw,
                lo,
                range,
                multiplier,
            },
        }))
    }

    /// Asks the weigher about the hosts that passed, as the reference does.
    fn asked(
        &self,
        states: &[HostState],
        instances: &HashMap<String, Vec<u32>>,
        options: &Options,
        spec: &RequestSpec,
        alive: &Bits,
    ) -> Result<Option<Term<'static>>, Raises> {
        if weighing::says_nothing(self.nova.class, spec, options) {
            return Ok(None);
        }
        if self.nova.weigher.needs() == [Column::GroupMembers] {
            return self.of_members(states.len(), instances, spec, alive);
        }
        let hosts: Vec<&HostState> = alive.iter().map(|at| &states[at]).collect();
        let part = weighing::part(&self.nova, &hosts, spec, options).map_err(|_| Raises)?;
        if !part.raw.iter().all(|raw| tame(*raw)) {
            return Err(Raises);
        }
        let mut weighted = vec![0.0; states.len()];
        for (at, own) in alive.iter().zip(part.weighted) {
            weighted[at] = own;
        }
        Ok(Some(Term::Ready(weighted)))
    }
}

impl Part {
    /// Members are looked for by instance, for a group is on few hosts.
    fn of_members(
        &self,
        len: usize,
        instances: &HashMap<String, Vec<u32>>,
        spec: &RequestSpec,
        alive: &Bits,
    ) -> Result<Option<Term<'static>>, Raises> {
        let group = spec.instance_group.iter();
        let members: BTreeSet<&String> = group.flat_map(|group| &group.members).collect();
        let mut counts = vec![0.0; len];
        for at in members
            .into_iter()
            .filter_map(|uuid| instances.get(uuid))
            .flatten()
        {
            counts[*at as usize] += 1.0;
        }
        let weigher = self.nova.weigher.as_ref();
        let raw = weighing::of_members(weigher, counts, spec).map_err(|_| Raises)?;
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let (lo, hi) = alive
            .iter()
            .fold(ends, |(lo, hi), at| (lo.min(raw[at]), hi.max(raw[at])));
        if lo == hi {
            return Ok(None);
        }
        let range = hi - lo;
        let weighted = raw.iter().enumerate().map(|(at, raw)| {
            let multiplier = match &self.multiplier {
                Multiplier::Everywhere(multiplier) => *multiplier,
                Multiplier::OnHost(multipliers) => multipliers[at],
            };
            multiplier * ((raw - lo) / range)
        });
        Ok(Some(Term::Ready(weighted.collect())))
    }
}

impl Kind {
    fn of(nova: &NovaWeigher, states: &[HostState], options: &Options, zero: bool) -> Self {
        if weighing::hangs_on_request(nova.class) {
            return Self::Asked;
        }
        let hosts: Vec<&HostState> = states.iter().collect();
        let Ok(part) = weighing::part(nova, &hosts, &RequestSpec::default(), options) else {
            return Self::Wild;
        };
        if !part.raw.iter().all(|raw| tame(*raw)) {
            return Self::Wild;
        }
        if zero {
            return Self::Nothing;
        }
        let mut rising: Vec<u32> = (0..states.len() as u32).collect();
        rising.sort_by(|a, b| part.raw[*a as usize].total_cmp(&part.raw[*b as usize]));
        Self::Fixed(Fixed {
            bounds: nova.weigher.bounds(),
            raw: part.raw,
            rising,
        })
    }
}
