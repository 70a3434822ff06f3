//! Nova's weights for many hosts of which only the best few are needed.
//!
//! The weights themselves come from the functions of `ranking::weights`, for the few hosts that may
//! be among the best. Bounds select these hosts. All steps of Nova's arithmetic are monotone, also
//! in floating point, so the weights of the ends of a block's ranges bound those of its hosts.
//! Within a block, a sum in single precision, with a margin far above its rounding errors, excludes
//! the hosts that cannot be among the best.

use super::survey::gather;
use crate::Engine;
use crate::plugins::FailedPlugins;
use crate::ranking::{Batch, RankedCandidate, RankedPlace, Tier, has_own_multipliers};
use crate::state::DecisionState;
use crate::table::{BLOCK, HostIndex, WeightColumn};
use ebbtide_model::decision::Weight;
use ebbtide_model::host_set::{HostSet, ones};
use ebbtide_weigher_api::arithmetic::{Scale, best_first, clamped};
use ebbtide_weigher_api::{Bounds, Column, RequestDetails, RequestView, WeigherForm};
use std::cmp::Ordering;

/// Larger sums of multipliers are weighed host by host.
const LARGEST_MULTIPLIERS: f64 = 1e12;

/// Above the relative error of a short sum, by an order of magnitude.
const MARGIN: f64 = 1e-5;

/// Where a weigher's raw numbers come from.
#[derive(Clone, Copy)]
enum Source<'a> {
    Column {
        cells: &'a WeightColumn,
        column: Column,
        negated: bool,
    },
    Constant(f64),
}

/// A weigher, as it is used for this request.
struct Part<'a> {
    name: &'a str,
    source: Source<'a>,
    bounds: Bounds,
    multiplier: f64,
    scale: Scale,
}

impl Part<'_> {
    fn raw(&self, cell: f64) -> f64 {
        match self.source {
            Source::Column { negated: true, .. } => 0.0 - cell,
            Source::Column { .. } => cell,
            Source::Constant(value) => value,
        }
    }

    /// What it adds to the total of a host with this cell.
    fn adds(&self, cell: f64) -> f64 {
        let raw = clamped(self.raw(cell), self.bounds);
        self.multiplier * self.scale.normalised(raw)
    }

    /// True if it may add something else than zero.
    fn matters(&self) -> bool {
        self.multiplier != 0.0 && !self.scale.is_flat()
    }

    /// The cell of a host that the request has not touched.
    fn cell(&self, host: HostIndex) -> f64 {
        match self.source {
            Source::Column { cells, .. } => f64::from(cells.values.get(host.at())),
            Source::Constant(_) => 0.0,
        }
    }
}

/// Hosts whose numbers this request has changed, with their cells by part.
type Touched = Vec<(HostIndex, Vec<f64>)>;

/// The best `many` of `hosts`, best first, with their weights; `None` if they have to be weighed
/// one by one. All of them are in a tier in which no instance has to leave.
pub(super) fn best(
    engine: &Engine,
    broken: &FailedPlugins,
    state: &DecisionState<'_>,
    hosts: &HostSet,
    tier: Tier,
    many: usize,
) -> Option<Vec<RankedPlace>> {
    if state.ask.eligible.is_some() {
        // The weights are given.
        return None;
    }
    if hosts.count() < 2 {
        let only = hosts.iter().take(many).map(HostIndex::new);
        return Some(
            only.map(|host| ranked(host, tier, 0.0, Vec::new()))
                .collect(),
        );
    }
    let mut parts = parts(engine, broken, state, tier)?;
    let touched = touched(state, hosts, tier, &parts);
    let mut untouched = hosts.clone();
    touched
        .iter()
        .for_each(|(host, _)| untouched.clear(host.at()));
    for (at, part) in parts.iter_mut().enumerate() {
        let of_touched = touched.iter().map(|(_, cells)| cells[at]);
        let (least, most) = ends(part, &untouched, of_touched);
        let (a, b) = (part.raw(least), part.raw(most));
        part.scale = Scale::new(a.min(b), a.max(b), part.bounds);
        // Short sums are right only if differences from the ends of the scale are.
        let is_short = |end: f64| f64::from(end as f32) == end;
        if !is_short(part.scale.lo) || !is_short(part.scale.hi) {
            return None;
        }
    }
    let mut best = Best {
        many,
        entries: Vec::with_capacity(many + 1),
    };
    for (host, cells) in &touched {
        best.offer(total(&parts, cells), state.table.rank(*host), *host);
    }
    scan(&parts, state, &untouched, &mut best);
    let weights = |host: HostIndex| {
        let own = touched.iter().find(|(other, _)| *other == host);
        let cell = |at: usize, part: &Part<'_>| own.map_or_else(|| part.cell(host), |(_, c)| c[at]);
        let weight = |(at, part): (usize, &Part<'_>)| {
            let raw = clamped(part.raw(cell(at, part)), part.bounds);
            Weight {
                weigher: part.name.to_owned(),
                raw,
                normalised: part.scale.normalised(raw),
                multiplier: part.multiplier,
            }
        };
        parts.iter().enumerate().map(weight).collect()
    };
    let entries = best.entries.iter();
    Some(
        entries
            .map(|&(total, _, host)| ranked(host, tier, total, weights(host)))
            .collect(),
    )
}

fn ranked(host: HostIndex, tier: Tier, total: f64, weights: Vec<Weight>) -> RankedPlace {
    RankedPlace {
        place: RankedCandidate {
            host,
            tier,
            eviction: None,
        },
        total,
        weights,
    }
}

/// The weighers in use, if each says what it gives, and counts the same on every host.
fn parts<'a>(
    engine: &'a Engine,
    broken: &FailedPlugins,
    state: &DecisionState<'a>,
    tier: Tier,
) -> Option<Vec<Part<'a>>> {
    let request = RequestView {
        project_id: state.ask.project_id,
        resources: state.ask.resources,
        preemptible: state.ask.preemptible(),
        group_policy: state.ask.policy(),
        // What it gives depends on nothing that only few weighers read, or it would be opaque.
        details: RequestDetails::default(),
    };
    let mut parts = Vec::with_capacity(engine.weighers.len());
    for (place, used) in engine.weighers.iter().enumerate() {
        if broken.has_weigher(place) {
            continue;
        }
        let needs = if tier == Tier::Room { 0.0 } else { 1.0 };
        let source = match used.weigher.form(&request) {
            WeigherForm::Opaque => return None,
            WeigherForm::Constant(value) => Source::Constant(value),
            WeigherForm::Column(column) => source(state, column, false, needs)?,
            WeigherForm::Negated(column) => source(state, column, true, needs)?,
        };
        let finite = match source {
            Source::Constant(value) => value.is_finite(),
            Source::Column { .. } => true,
        };
        if !finite || has_own_multipliers(used, state) {
            return None;
        }
        parts.push(Part {
            name: used.weigher.name(),
            source,
            bounds: used.weigher.bounds(),
            multiplier: used.weigher.multiplier_sign() * used.multiplier,
            scale: Scale::default(),
        });
    }
    let sum: f64 = parts.iter().map(|part| part.multiplier.abs()).sum();
    (sum < LARGEST_MULTIPLIERS).then_some(parts)
}

fn source<'a>(
    state: &DecisionState<'a>,
    column: Column,
    negated: bool,
    needs: f64,
) -> Option<Source<'a>> {
    let constant = |value: f64| Some(Source::Constant(if negated { 0.0 - value } else { value }));
    match column {
        Column::PreemptionNeeded => constant(needs),
        Column::EvictionCost | Column::EvictionVictims => constant(0.0),
        Column::FailedBuilds
        | Column::HypervisorVersion
        | Column::FreePciDevices
        | Column::CellPreference => constant(0.0),
        Column::GroupMembers if state.ask.group.is_none() => constant(0.0),
        _ => {
            let cells = state.table.weights().of(column)?;
            cells.is_exact().then_some(Source::Column {
                cells,
                column,
                negated,
            })
        }
    }
}

/// The hosts that the request has changed, with their cells worked out anew.
fn touched(state: &DecisionState<'_>, hosts: &HostSet, tier: Tier, parts: &[Part<'_>]) -> Touched {
    let mut needed = [false; Column::COUNT];
    for part in parts {
        if let Source::Column { column, .. } = part.source {
            needed[column.index()] = true;
        }
    }
    let touched = state.touched().map(|(host, _)| host);
    let cells = |host: HostIndex| {
        let place = RankedCandidate {
            host,
            tier,
            eviction: None,
        };
        let batch = Batch::new(state, &[place], &needed, false);
        let cell = |part: &Part<'_>| match part.source {
            Source::Column { column, .. } => batch.columns[column.index()][0],
            Source::Constant(_) => 0.0,
        };
        (host, parts.iter().map(cell).collect())
    };
    touched
        .filter(|host| hosts.has(host.at()))
        .map(cells)
        .collect()
}

/// The smallest and the largest cell of a part. An end that its bounds fix is not looked for: then
/// it is the other one.
fn ends(part: &Part<'_>, hosts: &HostSet, touched: impl Iterator<Item = f64>) -> (f64, f64) {
    let Source::Column { cells, negated, .. } = part.source else {
        return (0.0, 0.0);
    };
    let open = (part.bounds.min.is_none(), part.bounds.max.is_none());
    let (low, high) = if negated { (open.1, open.0) } else { open };
    if !low && !high {
        return (0.0, 0.0);
    }
    let (mut least, mut most) = (f32::INFINITY, f32::NEG_INFINITY);
    for (block, &word) in hosts.words().iter().enumerate() {
        let (lowest, highest) = (cells.values.lowest(block), cells.values.highest(block));
        if word == 0 || ((!low || lowest >= least) && (!high || highest <= most)) {
            continue;
        }
        let (lowest, highest) = if word == u64::MAX {
            (lowest, highest)
        } else {
            ends_of_some(cells.values.block(block), word)
        };
        least = if lowest < least { lowest } else { least };
        most = if highest > most { highest } else { most };
    }
    let (least, most) = touched.fold((f64::from(least), f64::from(most)), |(lo, hi), x| {
        (if x < lo { x } else { lo }, if x > hi { x } else { hi })
    });
    (
        if low { least } else { most },
        if high { most } else { least },
    )
}

/// The smallest and the largest of those cells whose bit is set.
fn ends_of_some(cells: &[f32; BLOCK], word: u64) -> (f32, f32) {
    const BITS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
    let (mut least, mut most) = ([f32::INFINITY; 8], [f32::NEG_INFINITY; 8]);
    for (cells, byte) in cells.as_chunks::<8>().0.iter().zip(word.to_le_bytes()) {
        for lane in 0..8 {
            let here = u32::from(byte) & BITS[lane] != 0;
            let low = if here { cells[lane] } else { f32::INFINITY };
            let high = if here { cells[lane] } else { f32::NEG_INFINITY };
            least[lane] = if low < least[lane] { low } else { least[lane] };
            most[lane] = if high > most[lane] { high } else { most[lane] };
        }
    }
    (
        least.into_iter().fold(f32::INFINITY, f32::min),
        most.into_iter().fold(f32::NEG_INFINITY, f32::max),
    )
}

fn total(parts: &[Part<'_>], cells: &[f64]) -> f64 {
    let adds = parts.iter().zip(cells).map(|(part, &cell)| part.adds(cell));
    adds.fold(0.0, |total, add| total + add)
}

/// The best hosts so far.
struct Best {
    many: usize,
    /// Total, rank, host; best first.
    entries: Vec<(f64, u32, HostIndex)>,
}

fn order(a: (f64, u32), b: (f64, u32)) -> Ordering {
    best_first(a.0, b.0).then(a.1.cmp(&b.1))
}

impl Best {
    /// True if a host with this total, and a rank no better than this one, could be among the best.
    fn takes(&self, total: f64, rank: u32) -> bool {
        match self.entries.last() {
            Some(last) if self.entries.len() >= self.many => {
                order((total, rank), (last.0, last.1)) == Ordering::Less
            }
            _ => self.many > 0,
        }
    }

    fn offer(&mut self, total: f64, rank: u32, host: HostIndex) {
        if self.takes(total, rank) {
            let before =
                |e: &(f64, u32, HostIndex)| order((e.0, e.1), (total, rank)) == Ordering::Less;
            let at = self.entries.partition_point(before);
            self.entries.insert(at, (total, rank, host));
            self.entries.truncate(self.many);
        }
    }

    /// The smallest total that can still be among the best.
    fn least(&self) -> f64 {
        match self.entries.last() {
            Some(last) if self.entries.len() >= self.many => last.0,
            _ => f64::NEG_INFINITY,
        }
    }
}

/// A part that matters, as a line: `(cell, held between two ends, − start) × slope`.
struct Line<'a> {
    part: &'a Part<'a>,
    cells: &'a WeightColumn,
    slope: f32,
    start: f32,
    ends: (f32, f32),
}

/// Offers all of `hosts` that could be among the best.
fn scan(parts: &[Part<'_>], state: &DecisionState<'_>, hosts: &HostSet, best: &mut Best) {
    let lines: Vec<Line<'_>> = parts.iter().filter_map(line).collect();
    let margin = MARGIN * parts.iter().map(|part| part.multiplier.abs()).sum::<f64>();
    let mut known: Vec<(f32, f32)> = Vec::new();
    let mut known_total = None;
    let mut memory: Vec<f32> = Vec::new();
    let mut memory_total = None;
    for (block, &word) in hosts.words().iter().enumerate() {
        if word == 0 {
            continue;
        }
        let range = |line: &Line<'_>| {
            let values = &line.cells.values;
            (values.lowest(block), values.highest(block))
        };
        // Neighbouring blocks of hosts that are all alike have the same ranges.
        let same = |total: &f64| {
            let same = lines.iter().zip(&known).all(|(line, k)| range(line) == *k);
            same.then_some(*total)
        };
        let bound = known_total.as_ref().and_then(same).unwrap_or_else(|| {
            known.clear();
            known.extend(lines.iter().map(range));
            let adds = lines.iter().zip(&known).map(|(line, &(lowest, highest))| {
                let ends = [lowest, highest].map(|end| line.part.adds(f64::from(end)));
                ends[0].max(ends[1])
            });
            adds.fold(0.0, |total, add| total + add)
        });
        known_total = Some(bound);
        if !best.takes(bound, state.table.first_rank(block)) {
            continue;
        }
        let candidates = word & short(&lines, block, best.least() - margin);
        for at in ones(candidates) {
            let host = HostIndex::new(block * BLOCK + at);
            let cell = |line: &Line<'_>| line.cells.values.block(block)[at];
            let same = |total: &f64| {
                let same = lines.iter().zip(&memory).all(|(line, m)| cell(line) == *m);
                same.then_some(*total)
            };
            let total = memory_total.as_ref().and_then(same).unwrap_or_else(|| {
                memory.clear();
                memory.extend(lines.iter().map(cell));
                let adds = lines.iter().zip(&memory);
                adds.fold(0.0, |total, (line, &cell)| {
                    total + line.part.adds(f64::from(cell))
                })
            });
            memory_total = Some(total);
            best.offer(total, state.table.rank(host), host);
        }
    }
}

fn line<'a>(part: &'a Part<'a>) -> Option<Line<'a>> {
    let Source::Column { cells, negated, .. } = part.source else {
        return None;
    };
    if !part.matters() {
        return None;
    }
    let Scale { lo, hi } = part.scale;
    let slope = part.multiplier / (hi - lo);
    // Raw numbers are the cells or their opposites.
    let (slope, lo, hi) = if negated {
        (-slope, -hi, -lo)
    } else {
        (slope, lo, hi)
    };
    let start = if negated { hi } else { lo };
    Some(Line {
        part,
        cells,
        slope: slope as f32,
        start: start as f32,
        ends: (lo as f32, hi as f32),
    })
}

/// One bit for each host of a block whose total could reach `least`.
fn short(lines: &[Line<'_>], block: usize, least: f64) -> u64 {
    if least == f64::NEG_INFINITY {
        return u64::MAX;
    }
    let mut totals = [0.0_f32; BLOCK];
    for line in lines {
        let (lo, hi) = line.ends;
        for (total, &cell) in totals.iter_mut().zip(line.cells.values.block(block)) {
            let cell = if cell < lo { lo } else { cell };
            let cell = if cell > hi { hi } else { cell };
            *total += (cell - line.start) * line.slope;
        }
    }
    let least = least as f32;
    let mut bytes = [0u8; BLOCK];
    for (byte, total) in bytes.iter_mut().zip(&totals) {
        *byte = u8::from(*total >= least);
    }
    gather(&bytes)
}
