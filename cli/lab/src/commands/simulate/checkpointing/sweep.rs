//! All series, all bids, over all cores.

use super::CheckpointingArgs;
use crate::progress::ReplayProgress;
use ebbtide_checkpointing::{
    BidComparison, CheckpointingError, SchemeKind, SchemeSummary, Series, compare, over_bids,
    over_series,
};
use ebbtide_model::Money;
use ebbtide_runtime::clock;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// One series with all its bids.
pub(super) struct BidSweep {
    pub(super) name: String,
    /// First and last second of the history, lowest and highest price.
    pub(super) span: (i64, i64),
    pub(super) extremes: (Money, Money),
    pub(super) rows: Vec<BidComparison>,
    /// Each scheme against OPT over the bids; none for schemes that nothing can be said about.
    pub(super) summaries: Vec<SchemeSummary>,
}

impl BidSweep {
    pub(super) fn of(&self, kind: SchemeKind) -> Option<&SchemeSummary> {
        self.summaries.iter().find(|summary| summary.kind == kind)
    }
}

/// Everything.
pub(super) struct SweepResult {
    pub(super) kinds: Vec<SchemeKind>,
    pub(super) series: Vec<BidSweep>,
    /// Each scheme against OPT over the series.
    pub(super) summaries: Vec<SchemeSummary>,
    pub(super) jobs: usize,
    pub(super) seconds: f64,
}

impl SweepResult {
    /// Refuses what says nothing at all.
    pub(super) fn possible(&self, args: &CheckpointingArgs) -> Result<(), CliError> {
        let rows = || self.series.iter().flat_map(|one| &one.rows);
        let results = || rows().flat_map(|row| &row.schemes);
        if results().any(|result| result.finished > 0) {
            return Ok(());
        }
        let ever = rows().any(|row| row.schemes.iter().any(|s| s.never_ran < row.starts));
        let error = if ever {
            let longest = self.series.iter().map(|one| one.span.1 - one.span.0).max();
            CheckpointingError::NeverEnds {
                job_seconds: super::seconds(args.job),
                days: longest.unwrap_or(0) as f64 / 86_400.0,
            }
        } else {
            let highest = rows().map(|row| row.bid).max().unwrap_or_default();
            let lowest = self.series.iter().map(|one| one.extremes.0).min();
            CheckpointingError::NeverRuns {
                bid: highest.to_string(),
                lowest: lowest.unwrap_or_default().to_string(),
            }
        };
        Err(error.into())
    }
}

/// Plays everything.
pub(super) fn all(
    context: &mut Context,
    args: &CheckpointingArgs,
    series: &[Series],
) -> Result<SweepResult, CliError> {
    let begin = clock::instant();
    let kinds = args.kinds();
    let tasks: Vec<(usize, Money)> = series
        .iter()
        .enumerate()
        .flat_map(|(i, one)| args.bids(&one.history).into_iter().map(move |bid| (i, bid)))
        .collect();
    let done = play(context, args, series, &kinds, &tasks)?;
    let mut swept: Vec<BidSweep> = series
        .iter()
        .map(|one| BidSweep {
            name: one.name.clone(),
            span: (one.history.start(), one.history.end()),
            extremes: one.history.extremes(),
            rows: Vec::new(),
            summaries: Vec::new(),
        })
        .collect();
    for ((place, _), row) in tasks.iter().zip(done) {
        if let Some(one) = swept.get_mut(*place) {
            one.rows.push(row);
        }
    }
    for one in &mut swept {
        let summaries = kinds.iter().filter_map(|kind| over_bids(&one.rows, *kind));
        one.summaries = summaries.collect();
    }
    let every: Vec<SchemeSummary> = swept.iter().flat_map(|one| one.summaries.clone()).collect();
    let rows = swept.iter().flat_map(|one| &one.rows);
    Ok(SweepResult {
        jobs: rows.map(|row| row.starts * row.schemes.len()).sum(),
        summaries: kinds
            .iter()
            .filter_map(|kind| over_series(*kind, &every))
            .collect(),
        kinds,
        series: swept,
        seconds: begin.elapsed().as_secs_f64(),
    })
}

/// Hands tasks to threads; the answers come in the order of the tasks.
fn play(
    context: &mut Context,
    args: &CheckpointingArgs,
    series: &[Series],
    kinds: &[SchemeKind],
    tasks: &[(usize, Money)],
) -> Result<Vec<BidComparison>, CliError> {
    let threads = args
        .threads
        .and_then(|n| usize::try_from(n).ok())
        .or_else(|| std::thread::available_parallelism().ok().map(Into::into))
        .unwrap_or(1);
    let (terms, starts, work) = (args.terms(), args.starts(), super::seconds(args.job));
    let next = AtomicUsize::new(0);
    let mut progress = ReplayProgress::of(context, tasks.len(), "bids");
    let mut done: Vec<Option<BidComparison>> = tasks.iter().map(|_| None).collect();
    let mut failed = None;
    std::thread::scope(|scope| {
        let (told, results) = mpsc::channel();
        for _ in 0..threads.min(tasks.len()) {
            let (told, next, terms) = (told.clone(), &next, &terms);
            scope.spawn(move || {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some((place, bid)) = tasks.get(n) else {
                        return;
                    };
                    let Some(one) = series.get(*place) else {
                        return;
                    };
                    let row = compare(&one.history, *bid, kinds, terms, work, starts);
                    // Sending fails only if the command itself is ending.
                    if told.send((n, row)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(told);
        let mut count = 0;
        while let Ok((n, row)) = results.recv() {
            count += 1;
            match row {
                Ok(row) => {
                    if let Some(place) = done.get_mut(n) {
                        *place = Some(row);
                    }
                }
                Err(error) => failed = Some(error),
            }
            progress.set(context, count, "");
        }
    });
    progress.end();
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(done.into_iter().flatten().collect()),
    }
}
