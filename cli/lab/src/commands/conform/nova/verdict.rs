//! Deciding all cases and comparing them, on all cores.

use super::NovaArgs;
use crate::error::LabError;
use crate::progress::ReplayProgress;
use ebbtide_conformance::answer;
use ebbtide_conformance::case::Case;
use ebbtide_conformance::conform::{AnswerDifference, compare};
use ebbtide_nova::python::{Dict, Value};
use ebbtide_runtime::clock;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::render::plural;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// At most so many differences of one case are shown, unless it is the only one.
const SHOWN_A_CASE: usize = 5;

/// A difference that is shown.
#[derive(Debug, Clone)]
pub(super) struct CaseDifference {
    pub(super) case: String,
    pub(super) shape: String,
    pub(super) difference: AnswerDifference,
}

/// What came of all cases.
#[derive(Debug, Default)]
pub(super) struct ConformSummary {
    pub(super) total: usize,
    pub(super) agree: usize,
    /// Cases that agree, and all, by shape.
    pub(super) shapes: BTreeMap<String, (usize, usize)>,
    /// Cases that differ, by field.
    pub(super) fields: BTreeMap<String, usize>,
    /// The first differences in the order of the file.
    pub(super) shown: Vec<CaseDifference>,
    /// How many more there are.
    pub(super) hidden: usize,
}

/// One case.
struct Verdict {
    id: String,
    shape: String,
    differences: Vec<AnswerDifference>,
}

/// Decides and compares.
///
/// # Errors
/// [`LabError::Corpus`] for a line that is no case or has no answer, and if `--only` leaves none.
pub(super) fn run(
    context: &mut Context,
    args: &NovaArgs,
    lines: &[(usize, String)],
    threads: usize,
) -> Result<ConformSummary, CliError> {
    let bad = |problem: String| {
        CliError::from(LabError::Corpus {
            path: args.file.clone(),
            problem,
        })
    };
    let mut verdicts: Vec<(usize, Verdict)> = Vec::with_capacity(lines.len());
    let mut progress = ReplayProgress::of(context, lines.len(), "cases");
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let started = clock::instant();
    let failure = thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        for _ in 0..threads.min(lines.len()) {
            let send = send.clone();
            let (next, stop) = (&next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((number, line)) = lines.get(at) else {
                        break;
                    };
                    let result = decide(line, &args.only).map_err(|problem| (*number, problem));
                    if send.send((at, result)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let mut done = 0;
        let mut failure: Option<(usize, String)> = None;
        for (at, result) in receive {
            done += 1;
            progress.set(context, done, "");
            match result {
                Ok(Some(verdict)) => verdicts.push((at, verdict)),
                Ok(None) => {}
                Err(problem) => {
                    stop.store(true, Ordering::Relaxed);
                    if failure.as_ref().is_none_or(|first| problem.0 < first.0) {
                        failure = Some(problem);
                    }
                }
            }
        }
        failure
    });
    progress.end();
    if let Some((number, problem)) = failure {
        return Err(bad(format!("line {number}: {problem}")));
    }
    if verdicts.is_empty() {
        return Err(bad(format!(
            "has no case of id or shape {}",
            args.only.join(", ")
        )));
    }
    context.output.say(&format!(
        "{} in {:.1} s on {}",
        plural(verdicts.len(), "case"),
        started.elapsed().as_secs_f64(),
        plural(threads, "thread"),
    ));
    verdicts.sort_by_key(|(at, _)| *at);
    Ok(summary(verdicts, args.max_differences))
}

fn decide(line: &str, only: &[String]) -> Result<Option<Verdict>, String> {
    let (case, answer) = Case::from_line(line).map_err(|bad| bad.to_string())?;
    let wanted = |name: &String| *name == case.id || *name == case.shape;
    if !only.is_empty() && !only.iter().any(wanted) {
        return Ok(None);
    }
    let expected = expected(&case, answer)?;
    let differences = compare(&expected, &answer::answer(&case));
    Ok(Some(Verdict {
        id: case.id,
        shape: case.shape,
        differences,
    }))
}

fn expected(case: &Case, answer: Option<Value>) -> Result<Dict<Value>, String> {
    match answer {
        Some(Value::Dict(answer)) if answer.contains_key("oracle_bug") => Err(format!(
            "case {:?}: the oracle itself failed on it; take it out of the corpus",
            case.id
        )),
        Some(Value::Dict(answer)) => Ok(answer),
        Some(_) => Err(format!(
            "case {:?}: its answer is not a JSON object",
            case.id
        )),
        None => Err(format!(
            "case {:?} has no answer; write pairs with `nova_oracle.py --pair`",
            case.id
        )),
    }
}

fn summary(verdicts: Vec<(usize, Verdict)>, most: usize) -> ConformSummary {
    let mut summary = ConformSummary::default();
    let alone = verdicts.len() == 1;
    for (_, verdict) in verdicts {
        let shape = summary.shapes.entry(verdict.shape.clone()).or_default();
        shape.1 += 1;
        summary.total += 1;
        if verdict.differences.is_empty() {
            shape.0 += 1;
            summary.agree += 1;
        }
        let fields: BTreeSet<&String> = verdict.differences.iter().map(|d| &d.field).collect();
        for field in fields {
            *summary.fields.entry(field.clone()).or_default() += 1;
        }
        let room = most.saturating_sub(summary.shown.len());
        let taken = if alone { room } else { room.min(SHOWN_A_CASE) };
        summary.hidden += verdict.differences.len().saturating_sub(taken);
        for difference in verdict.differences.into_iter().take(taken) {
            summary.shown.push(CaseDifference {
                case: verdict.id.clone(),
                shape: verdict.shape.clone(),
                difference,
            });
        }
    }
    summary
}
