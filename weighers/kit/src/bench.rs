//! How fast a plugin is.

use crate::callable::TriedPlugin;
use crate::candidates::SampleCandidates;
use crate::hosts::{Hosts, Sort};
use crate::{KitError, Subject};
use std::time::Duration;

/// Calls something and says how long that took. The kit has no clock of its own.
pub type Stopwatch<'a> = &'a dyn Fn(&mut dyn FnMut()) -> Duration;

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Rows of each call.
    pub rows: usize,
    /// What a row is: a `host`, or a `candidate` of a cost module.
    pub row: &'static str,
    /// How many calls were measured.
    pub calls: usize,
    /// Reading the component, or asking the service what it is, until it can be called.
    pub load: Duration,
    /// Half of the calls took less.
    pub median: Duration,
    /// One in a hundred took more.
    pub p99: Duration,
    /// The median for each row, in nanoseconds. Handing the columns over is part of it.
    pub ns_per_row: f64,
    /// Units of work of a call; `None` for a service, which does not count them.
    pub work: Option<u64>,
}

/// Calls before those that count.
const WARM_UP: usize = 5;

/// Measures.
///
/// # Errors
/// If it cannot be used, or fails.
pub fn bench(
    subject: &Subject,
    rows: usize,
    calls: usize,
    stopwatch: Stopwatch<'_>,
) -> Result<Measurement, KitError> {
    let mut loaded = None;
    let load = stopwatch(&mut || loaded = Some(subject.ready()));
    let loaded =
        loaded.ok_or_else(|| KitError::Failed("the stopwatch did not call".to_owned()))??;
    let row = match &loaded {
        TriedPlugin::Weigher(_) | TriedPlugin::Filter(_) => "host",
        TriedPlugin::CostModule(_) => "candidate",
    };
    let mut call: Box<dyn FnMut() -> Result<Option<u64>, String>> = match loaded {
        TriedPlugin::Weigher(weigher) => {
            let hosts = Hosts::new(weigher.weigher(), rows, Sort::Usual, 1);
            Box::new(move || {
                hosts
                    .weigh(&weigher)
                    .map(|(_, work)| work)
                    .map_err(|error| error.to_string())
            })
        }
        TriedPlugin::Filter(filter) => {
            let hosts = Hosts::for_filter(filter.filter(), rows, Sort::Usual, 1);
            Box::new(move || {
                let answered = hosts.filter(&filter);
                answered
                    .map(|(_, work)| work)
                    .map_err(|error| error.to_string())
            })
        }
        TriedPlugin::CostModule(module) => {
            let candidates = SampleCandidates::usual(&module, rows, 1);
            Box::new(move || {
                candidates
                    .cost(&module)
                    .map(|(_, work)| work)
                    .map_err(|error| error.to_string())
            })
        }
    };
    let mut times = Vec::with_capacity(calls);
    let mut work = None;
    for n in 0..calls + WARM_UP {
        let mut done = Ok(None);
        let time = stopwatch(&mut || done = call());
        work = done.map_err(KitError::Failed)?;
        if n >= WARM_UP {
            times.push(time);
        }
    }
    times.sort_unstable();
    let at = |share: usize| {
        times
            .get((times.len() * share / 100).min(times.len().saturating_sub(1)))
            .copied()
            .unwrap_or_default()
    };
    let median = at(50);
    Ok(Measurement {
        rows,
        row,
        calls,
        load,
        median,
        p99: at(99),
        ns_per_row: median.as_nanos() as f64 / rows.max(1) as f64,
        work,
    })
}
