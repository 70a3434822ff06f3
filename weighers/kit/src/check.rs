//! The conformance kit: what a plugin must do whatever it weighs, tried one by one.

mod filters;

use crate::callable::{TriedCostModule, TriedPlugin, TriedWeigher};
use crate::candidates::SampleCandidates;
use crate::hosts::{Hosts, Sort};
use crate::plugin::PluginLocation;
use crate::{KitError, Subject};
use ebbtide_cost_api::MAX_COST;
use ebbtide_wasm::CompiledPlugin;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutcome {
    /// As it should.
    Passed,
    /// It may be used, but its author should know.
    Warned,
    /// It must not be used.
    Failed,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was looked at, in a few words.
    pub name: &'static str,
    /// How it ended.
    pub outcome: CheckOutcome,
    /// What was seen, in plain words.
    pub says: String,
}

/// How many rows are tried.
const SIZES: [usize; 4] = [2, 3, 100, 10_000];
/// More of its work than this share of its limit is worth a word, in percent.
const MUCH: u64 = 25;

/// Runs all checks that make sense after those before.
///
/// # Errors
/// [`KitError::Io`] if there is no such file. What is wrong with the plugin is in the checks.
pub fn check(subject: &Subject) -> Result<Vec<Check>, KitError> {
    let mut checks = Vec::new();
    let loaded = match &subject.place {
        PluginLocation::File(file) => {
            let bytes = Subject::bytes(file)?;
            let compiled = match subject.compile_once(file, &bytes) {
                Ok(compiled) => compiled,
                Err(error) => {
                    checks.push(failed("component", error.to_string()));
                    return Ok(checks);
                }
            };
            checks.push(passed(
                "component",
                format!("a {} of {} bytes", compiled.kind(), bytes.len()),
            ));
            checks.push(imports(&compiled));
            let loaded = subject.load(file, &compiled);
            loaded.map_err(|error| error.to_string())
        }
        PluginLocation::Service {
            address,
            plugin,
            limits,
        } => {
            let reached = subject.reach(address, plugin, *limits);
            reached.map_err(|error| error.to_string())
        }
    };
    match loaded {
        Err(error) => checks.push(failed("description", error)),
        Ok(TriedPlugin::Weigher(weigher)) => {
            checks.push(passed(
                "description",
                format!("it reads {}", listed(&weigher.reads())),
            ));
            checks.extend(of_weigher(subject, &weigher));
        }
        Ok(TriedPlugin::CostModule(module)) => {
            checks.push(passed(
                "description",
                format!("it reads {}", listed(&module.reads())),
            ));
            checks.extend(of_cost_module(subject, &module));
        }
        Ok(TriedPlugin::Filter(filter)) => {
            checks.push(passed(
                "description",
                format!("it reads {}", listed(&filter.reads())),
            ));
            checks.extend(filters::of_filter(subject, &filter));
        }
    }
    Ok(checks)
}

fn passed(name: &'static str, says: String) -> Check {
    Check {
        name,
        outcome: CheckOutcome::Passed,
        says,
    }
}

fn failed(name: &'static str, says: String) -> Check {
    Check {
        name,
        outcome: CheckOutcome::Failed,
        says,
    }
}

fn warned(name: &'static str, says: String) -> Check {
    Check {
        name,
        outcome: CheckOutcome::Warned,
        says,
    }
}

/// Passed with the first words, or failed with the error's.
fn judged(name: &'static str, result: Result<(), String>, says: &str) -> Check {
    match result {
        Ok(()) => passed(name, says.to_owned()),
        Err(problem) => failed(name, problem),
    }
}

fn listed(names: &[String]) -> String {
    match names.is_empty() {
        true => "nothing".to_owned(),
        false => names.join(", "),
    }
}

/// What a component may import without ever calling it; what it would not get is worth a word.
fn imports(compiled: &CompiledPlugin) -> Check {
    const NOT_THERE: [&str; 3] = ["wasi:clocks/", "wasi:sockets/", "wasi:http/"];
    let imports = compiled.imports();
    let absent: Vec<String> = imports
        .into_iter()
        .filter(|name| NOT_THERE.iter().any(|start| name.starts_with(start)))
        .collect();
    match absent.is_empty() {
        true => passed("imports", "nothing that plugins do not have".to_owned()),
        false => warned(
            "imports",
            format!(
                "{}: if it ever calls them it fails, unless the operator grants a clock",
                absent.join(", ")
            ),
        ),
    }
}

fn of_weigher(subject: &Subject, weigher: &TriedWeigher) -> Vec<Check> {
    let weigh = |hosts: &Hosts| hosts.weigh(weigher).map_err(|error| format!("it {error}"));
    let usual = |len: usize| Hosts::new(weigher.weigher(), len, Sort::Usual, 1);
    let mut checks = Vec::new();
    let sizes = SIZES.iter().try_for_each(|len| {
        let (numbers, _) = weigh(&usual(*len))?;
        finite(&numbers, &format!("{len} usual hosts"))
    });
    checks.push(judged(
        "numbers",
        sizes,
        "one finite number for each of 2 to 10,000 hosts",
    ));
    if checks[0].outcome == CheckOutcome::Failed {
        return checks;
    }
    let strange = Sort::ALL.iter().try_for_each(|sort| {
        let (numbers, _) = weigh(&Hosts::new(weigher.weigher(), 50, *sort, 2))
            .map_err(|problem| format!("on {}: {problem}", sort.words()))?;
        finite(&numbers, sort.words())
    });
    checks.push(judged(
        "strange hosts",
        strange,
        "finite numbers for empty, overcommitted and huge hosts, too",
    ));
    let twice = || {
        let hosts = usual(1000);
        same(
            &weigh(&hosts)?.0,
            &weigh(&hosts)?.0,
            "the same hosts, asked twice, got different numbers",
        )
    };
    checks.push(judged(
        "deterministic",
        twice(),
        "the same hosts get the same numbers, bit for bit",
    ));
    let turned = || {
        let hosts = usual(100);
        let order: Vec<usize> = (0..100).map(|at| (at * 37 + 11) % 100).collect();
        let (before, _) = weigh(&hosts)?;
        let expected: Vec<f64> = order.iter().map(|at| before[*at]).collect();
        let (after, _) = weigh(&hosts.reordered(&order))?;
        same(
            &after,
            &expected,
            "a host got another number when the hosts came in another order, which means nothing",
        )
    };
    checks.push(judged(
        "order",
        turned(),
        "a host's number does not depend on its place in the list",
    ));
    let all_alike = weigh(&usual(1000))
        .is_ok_and(|(numbers, _)| numbers.windows(2).all(|pair| pair[0] == pair[1]));
    checks.push(match all_alike {
        true => warned(
            "opinion",
            "1,000 different hosts all got the same number: for such requests it says nothing"
                .to_owned(),
        ),
        false => passed(
            "opinion",
            "different hosts get different numbers".to_owned(),
        ),
    });
    if let Ok((_, Some(used))) = weigh(&usual(10_000)) {
        checks.push(work(used, subject.limits.work_of(10_000), "10,000 hosts"));
    }
    checks
}

fn of_cost_module(subject: &Subject, module: &TriedCostModule) -> Vec<Check> {
    let cost = |candidates: &SampleCandidates| {
        candidates
            .cost(module)
            .map_err(|error| format!("it {error}"))
    };
    let mut checks = Vec::new();
    let sizes = [1, 2, 100, 10_000].iter().try_for_each(|len| {
        let (costs, _) = cost(&SampleCandidates::usual(module, *len, 1))?;
        costs_are_costs(&costs, &format!("{len} usual candidates"))
    });
    checks.push(judged(
        "numbers",
        sizes,
        "a cost of 0 to 10^9 for each of 1 to 10,000 candidates",
    ));
    if checks[0].outcome == CheckOutcome::Failed {
        return checks;
    }
    let extreme = [false, true].iter().try_for_each(|large| {
        let words = if *large {
            "the largest candidates"
        } else {
            "candidates of nothing"
        };
        let (costs, _) = cost(&SampleCandidates::extreme(module, 10, *large))
            .map_err(|problem| format!("on {words}: {problem}"))?;
        costs_are_costs(&costs, words)
    });
    checks.push(judged(
        "strange candidates",
        extreme,
        "costs for the smallest and the largest candidates, too",
    ));
    let alone = || {
        let all = SampleCandidates::usual(module, 40, 2);
        let (together, _) = cost(&all)?;
        for (at, expected) in together.iter().enumerate() {
            let (own, _) = cost(&all.only(&[at]))?;
            let what = "a candidate costs something else alone than among others; what depends on others belongs into surcharges";
            same(&own, &[*expected], what)?;
        }
        Ok(())
    };
    checks.push(judged(
        "independent",
        alone(),
        "no cost depends on who else is a candidate",
    ));
    let twice = || {
        let all = SampleCandidates::usual(module, 1000, 3);
        same(
            &cost(&all)?.0,
            &cost(&all)?.0,
            "the same candidates, asked twice, got different costs",
        )
    };
    checks.push(judged(
        "deterministic",
        twice(),
        "the same candidates get the same costs, bit for bit",
    ));
    if let Ok((_, Some(used))) = cost(&SampleCandidates::usual(module, 10_000, 4)) {
        checks.push(work(
            used,
            subject.limits.work_of(10_000),
            "10,000 candidates",
        ));
    }
    checks
}

fn work(used: u64, limit: u64, of_what: &str) -> Check {
    let percent = used.saturating_mul(100) / limit.max(1);
    let says = format!("{used} units for {of_what}, {percent} % of the limit");
    match percent <= MUCH {
        true => passed("work", says),
        false => warned("work", format!("{says}: little is left for larger clouds")),
    }
}

fn finite(numbers: &[f64], what: &str) -> Result<(), String> {
    match numbers.iter().position(|number| !number.is_finite()) {
        None => Ok(()),
        Some(at) => Err(format!(
            "it gave {} for host number {at} of {what}",
            numbers[at]
        )),
    }
}

fn costs_are_costs(costs: &[f64], what: &str) -> Result<(), String> {
    match costs
        .iter()
        .position(|cost| !(0.0..=MAX_COST).contains(cost))
    {
        None => Ok(()),
        Some(at) => Err(format!(
            "it gave {} for candidate number {at} of {what}; a cost is 0 to 10^9",
            costs[at]
        )),
    }
}

fn same(a: &[f64], b: &[f64], problem: &str) -> Result<(), String> {
    let bits = |numbers: &[f64]| {
        numbers
            .iter()
            .map(|number| number.to_bits())
            .collect::<Vec<_>>()
    };
    match bits(a) == bits(b) {
        true => Ok(()),
        false => Err(problem.to_owned()),
    }
}
