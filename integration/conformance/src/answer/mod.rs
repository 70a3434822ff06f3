//! What the oracle would answer to a case, decided here (`nova_oracle.py`, "Answer format").

mod placement;
mod schedule;

use crate::case::{self, Case, IndexedHostState};
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::filtering::{self, FilterPass};
use ebbtide_nova::filters::{self, Context};
use ebbtide_nova::model::{HostState, Options, RequestSpec};
use ebbtide_nova::python::{Dict, Value};
use ebbtide_nova::table::{CloudTable, DecideFault, Decision};
use ebbtide_nova::weighing;

/// Answers a case in the oracle's format.
#[must_use]
pub fn answer(case: &Case) -> Dict<Value> {
    let mut out = Dict::default();
    out.insert("id", Value::from(case.id.as_str()));
    let options = match case.options() {
        Ok(options) => options,
        Err(fault) => return failed(out, "config", &fault),
    };
    let spec = match case.request_spec() {
        Ok(spec) => spec,
        Err(fault) => return failed(out, "request", &fault),
    };
    let placed = match case::states(case, &options, Some(&spec)) {
        Ok(placed) => placed,
        Err(fault) => return failed(out, "host_state", &fault),
    };
    // The oracle asks the case here and not the request, so that hints that are null do not stop
    // it.
    let rebuild = filtering::is_rebuild(&spec).unwrap_or(false);
    let mut all = placed.clone();
    if !rebuild {
        out.insert("placement", placement::answer(case, &spec, &options));
        case::attach_candidates(case, &mut all);
    }
    let context = Context {
        options: &options,
        now: case.now,
    };
    rank(case, &all, &spec, &context, rebuild, &mut out);
    if let Some(difference) = table_differs(&all, &spec, &options, case.now) {
        out.insert("table", difference);
    }
    if case.schedule.is_some() {
        let (value, over_columns) = schedule::answer(case, placed, spec, &context, rebuild);
        out.insert("schedule", Value::Dict(value));
        if let Some(other) = over_columns {
            // A key that the oracle does not know.
            out.insert("schedule_over_columns", Value::Dict(other));
        }
    }
    out
}

/// Checks that the columns decide as the reference does host by host, also at a second call. If
/// not, both answers go into the result under a key that the oracle does not have.
fn table_differs(
    placed: &[IndexedHostState],
    spec: &RequestSpec,
    options: &Options,
    now: i64,
) -> Option<Value> {
    let states: Vec<HostState> = placed.iter().map(|p| p.state.clone()).collect();
    let cloud = CloudTable::new(states, options.clone(), now);
    let bits = |decision: Result<Decision, DecideFault>| {
        decision.map(|decision| {
            let best = decision.best.into_iter();
            let best: Vec<(usize, u64)> = best.map(|(at, total)| (at, total.to_bits())).collect();
            (decision.passing, best)
        })
    };
    let reference = bits(cloud.reference(spec, usize::MAX));
    (0..2).find_map(|_| {
        let table = bits(cloud.decide(spec, usize::MAX));
        (table != reference).then(|| Value::from(format!("{table:?} for {reference:?}").as_str()))
    })
}

fn failed(mut out: Dict<Value>, phase: &str, fault: &NovaException) -> Dict<Value> {
    out.insert("error", error(fault, phase, None));
    out
}

/// An error of the answer; `by` names the key and the filter or weigher that raised.
fn error(fault: &NovaException, phase: &str, by: Option<(&str, Option<&str>)>) -> Value {
    let mut error = Dict::default();
    error.insert("type", Value::from(fault.class));
    error.insert("msg", Value::from(fault.message.as_str()));
    error.insert("phase", Value::from(phase));
    if let Some((key, name)) = by {
        error.insert(key, Value::from(name));
    }
    Value::Dict(error)
}

fn index(place: usize) -> Value {
    Value::Int(place as i128)
}

fn indices(places: impl IntoIterator<Item = usize>) -> Value {
    Value::List(places.into_iter().map(index).collect())
}

fn rank(
    case: &Case,
    placed: &[IndexedHostState],
    spec: &RequestSpec,
    context: &Context<'_>,
    rebuild: bool,
    out: &mut Dict<Value>,
) {
    let place = |at: usize| placed[at].place;
    let mut states: Vec<HostState> = placed.iter().map(|p| p.state.clone()).collect();
    out.insert("isolated", isolated(&mut states, placed, spec, context));
    let all = placed.len() == case.host_count();
    out.insert(
        "built",
        if all {
            Value::from("all")
        } else {
            indices(placed.iter().map(|p| p.place))
        },
    );
    let mut trace = Vec::new();
    let hosts = (0..states.len()).collect();
    let passed = filtering::filter(&mut states, hosts, spec, context, 0, &mut trace);
    out.insert("trace", steps(&trace, &place));
    let passed = match passed {
        Ok(passed) => passed,
        Err(fault) => {
            let by = Some(("filter", fault.filter));
            out.insert("error", error(&fault.fault, "filter", by));
            return;
        }
    };
    out.insert("filtered", indices(passed.iter().map(|at| place(*at))));
    left_behind(&states, &passed, &place, rebuild, out);
    if passed.is_empty() {
        out.insert("order", Value::List(Vec::new()));
        return;
    }
    let hosts: Vec<&HostState> = passed.iter().map(|at| &states[*at]).collect();
    weights(&hosts, &passed, spec, context.options, &place, out);
}

/// Every filter alone, host by host; what it leaves on a host is taken back.
fn isolated(
    states: &mut [HostState],
    placed: &[IndexedHostState],
    spec: &RequestSpec,
    context: &Context<'_>,
) -> Value {
    let mut all = Dict::default();
    for filter in filters::all() {
        if let Err(fault) = filter.starts(context.options) {
            let mut told = Dict::default();
            told.insert("type", Value::from(fault.class));
            told.insert("msg", Value::from(fault.message.as_str()));
            let entry = [("init_error", Value::Dict(told))];
            all.insert(filter.name(), Value::Dict(entry.into_iter().collect()));
            continue;
        }
        let mut fail = Vec::new();
        let mut errors: Dict<Value> = Dict::default();
        for (state, placed) in states.iter_mut().zip(placed) {
            let candidates = state.allocation_candidates.clone();
            match filtering::passes(filter, state, spec, context) {
                Ok(true) => {}
                Ok(false) => fail.push(placed.place),
                Err(fault) => errors.insert(placed.place.to_string(), Value::from(fault.class)),
            }
            state.allocation_candidates = candidates;
            state.numa_limits = None;
        }
        let mut verdict = Dict::default();
        verdict.insert("fail", indices(fail));
        if !errors.is_empty() {
            verdict.insert("err", Value::Dict(errors));
        }
        all.insert(filter.name(), Value::Dict(verdict));
    }
    Value::Dict(all)
}

fn steps(trace: &[FilterPass], place: &impl Fn(usize) -> usize) -> Value {
    let step = |step: &FilterPass| {
        let mut out = Dict::default();
        out.insert("filter", Value::from(step.filter));
        out.insert("start", index(step.start));
        out.insert("end", index(step.end));
        out.insert("removed", indices(step.removed.iter().map(|at| place(*at))));
        Value::Dict(out)
    };
    Value::List(trace.iter().map(step).collect())
}

fn ratios((cpu, ram): (f64, f64)) -> Value {
    let mut ratios = Dict::default();
    ratios.insert("cpu_allocation_ratio", number(cpu));
    ratios.insert("ram_allocation_ratio", number(ram));
    Value::Dict(ratios)
}

/// Limits and candidates, where filters changed them.
fn left_behind(
    states: &[HostState],
    passed: &[usize],
    place: &impl Fn(usize) -> usize,
    rebuild: bool,
    out: &mut Dict<Value>,
) {
    let mut limits: Dict<Value> = Dict::default();
    let mut left: Dict<Value> = Dict::default();
    for &at in passed {
        let name = place(at).to_string();
        if let Some(limit) = states[at].numa_limits {
            limits.insert(name.clone(), ratios(limit));
        }
        let count = states[at].allocation_candidates.len();
        if count != 1 && !rebuild {
            left.insert(name, index(count));
        }
    }
    if !limits.is_empty() {
        out.insert("limits", Value::Dict(limits));
    }
    if !left.is_empty() {
        out.insert("candidates_left", Value::Dict(left));
    }
}

/// Numbers that are none are written as text.
fn number(value: f64) -> Value {
    if value.is_nan() {
        "NaN".into()
    } else if value == f64::INFINITY {
        "Infinity".into()
    } else if value == f64::NEG_INFINITY {
        "-Infinity".into()
    } else {
        Value::Float(value)
    }
}

fn numbers(values: &[f64]) -> Value {
    Value::List(values.iter().copied().map(number).collect())
}

fn weights(
    hosts: &[&HostState],
    passed: &[usize],
    spec: &RequestSpec,
    options: &Options,
    place: &impl Fn(usize) -> usize,
    out: &mut Dict<Value>,
) {
    let weighed = match weighing::weigh(hosts, spec, options) {
        Ok(weighed) => weighed,
        Err(fault) => {
            let by = Some((
                "weigher",
                fault
                    .weigher
                    .or_else(|| weighing::first_to_raise(hosts, spec, options)),
            ));
            out.insert("error", error(&fault.fault, "weigh", by));
            return;
        }
    };
    let of = |at: &usize| place(passed[*at]);
    out.insert("order", indices(weighed.order.iter().map(of)));
    out.insert("total", numbers(&weighed.totals));
    if weighed.totals.iter().any(|total| total.is_nan()) {
        out.insert("nan_total", Value::Bool(true));
    }
    let mut weighers: Dict<Value> = Dict::default();
    for part in &weighed.parts {
        let mut weigher = Dict::default();
        weigher.insert("raw", numbers(&part.raw));
        weigher.insert("norm", numbers(&part.norm));
        weigher.insert("mult", numbers(&part.mult));
        weigher.insert("weighted", numbers(&part.weighted));
        weighers.insert(part.class, Value::Dict(weigher));
    }
    out.insert("weighers", Value::Dict(weighers));
    let mut choosable: Vec<usize> = weighing::choosable(&weighed, options)
        .iter()
        .map(of)
        .collect();
    choosable.sort_unstable();
    out.insert("choosable", indices(choosable));
}
