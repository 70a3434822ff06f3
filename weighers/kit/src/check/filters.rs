//! What a filter must do, whatever it filters by.

use super::{Check, judged, passed, warned, work};
use crate::Subject;
use crate::callable::{FilterAnswer, TriedFilter};
use crate::check::CheckOutcome;
use crate::hosts::{Hosts, Sort};
use ebbtide_weigher_api::FilterVerdicts;

/// How many rows are tried: a filter may be asked about a single host.
const SIZES: [usize; 4] = [1, 2, 100, 10_000];

pub(super) fn of_filter(subject: &Subject, filter: &TriedFilter) -> Vec<Check> {
    let ask = |hosts: &Hosts| hosts.filter(filter).map_err(|error| format!("it {error}"));
    let usual = |len: usize| Hosts::for_filter(filter.filter(), len, Sort::Usual, 1);
    let mut checks = Vec::new();
    let sizes = SIZES.iter().try_for_each(|len| {
        let (verdicts, _) = ask(&usual(*len))?;
        reasoned(&verdicts, *len)
    });
    checks.push(judged(
        "answers",
        sizes,
        "an answer for each of 1 to 10,000 hosts, and a reason for each that is refused",
    ));
    if checks[0].outcome == CheckOutcome::Failed {
        return checks;
    }
    let strange = Sort::ALL.iter().try_for_each(|sort| {
        let hosts = Hosts::for_filter(filter.filter(), 50, *sort, 2);
        let answered = ask(&hosts).and_then(|(verdicts, _)| reasoned(&verdicts, 50));
        answered.map_err(|problem| format!("on {}: {problem}", sort.words()))
    });
    checks.push(judged(
        "strange hosts",
        strange,
        "answers for empty, overcommitted and huge hosts, too",
    ));
    checks.push(judged(
        "deterministic",
        changes_its_mind(ask, &usual(1000)),
        "the same hosts get the same answers and reasons",
    ));
    let turned = || {
        let hosts = usual(100);
        let order: Vec<usize> = (0..100).map(|at| (at * 37 + 11) % 100).collect();
        let (before, _) = ask(&hosts)?;
        let (after, _) = ask(&hosts.reordered(&order))?;
        let same = |(at, from): (usize, &usize)| after.reason(at) == before.reason(*from);
        match order.iter().enumerate().all(same) {
            true => Ok(()),
            false => Err(
                "a host got another answer when the hosts came in another order, which \
                          means nothing"
                    .to_owned(),
            ),
        }
    };
    checks.push(judged(
        "order",
        turned(),
        "a host's answer does not depend on its place in the list",
    ));
    let refused = ask(&usual(1000)).map_or(0, |(verdicts, _)| verdicts.refused());
    checks.push(match refused {
        0 => warned(
            "opinion",
            "1,000 different hosts all passed: for such requests it says nothing".to_owned(),
        ),
        1000 => warned("opinion", "it refused 1,000 different hosts".to_owned()),
        some => passed(
            "opinion",
            format!("it refused {some} of 1,000 different hosts"),
        ),
    });
    if let Ok((_, Some(used))) = ask(&usual(10_000)) {
        checks.push(work(used, subject.limits.work_of(10_000), "10,000 hosts"));
    }
    checks
}

/// The same question three times: a filter that answers by turns is found out, too.
fn changes_its_mind(
    ask: impl Fn(&Hosts) -> Result<FilterAnswer, String>,
    hosts: &Hosts,
) -> Result<(), String> {
    let (first, _) = ask(hosts)?;
    for _ in 0..2 {
        let (again, _) = ask(hosts)?;
        let mut all = 0..first.codes().0.len();
        if let Some(at) = all.find(|at| first.reason(*at) != again.reason(*at)) {
            let word = |verdicts: &FilterVerdicts| match verdicts.reason(at) {
                None => "it passes".to_owned(),
                Some(reason) => format!("refused, {reason}"),
            };
            return Err(format!(
                "it changes its mind about host number {at}: first {}, then {}",
                word(&first),
                word(&again)
            ));
        }
    }
    Ok(())
}

/// A refused host has a reason that can be shown.
fn reasoned(verdicts: &FilterVerdicts, hosts: usize) -> Result<(), String> {
    let mut all = 0..hosts;
    let empty = |at: usize| {
        verdicts
            .reason(at)
            .is_some_and(|reason| reason.trim().is_empty())
    };
    match all.find(|at| empty(*at)) {
        None => Ok(()),
        Some(at) => Err(format!(
            "it refused host number {at} of {hosts} without a reason"
        )),
    }
}
