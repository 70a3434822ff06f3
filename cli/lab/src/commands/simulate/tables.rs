//! What came of simulated worlds, in tables, JSON and stories.

use super::evacuation::EvacuationArgs;
use ebbtide_evacuation_simulator::{
    EvacuationCounts, FaultCounts, Mutation, SeedResult, ShrunkWorld, StepPositions, WorldKind,
};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Format, TableCell, number, text};
use ebbtide_shell::render::Tone;

/// What came of all seeds.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) worlds: usize,
    pub(super) seeds: u64,
    pub(super) steps: u64,
    pub(super) ends: EvacuationCounts,
    pub(super) faults: FaultCounts,
    pub(super) violations: u64,
    /// The lowest seed that broke a promise, and where.
    pub(super) first: Option<(u64, WorldKind)>,
    pub(super) seconds: f64,
}

impl Totals {
    pub(super) fn add(&mut self, seed: u64, world: WorldKind, outcome: &SeedResult) {
        self.worlds += 1;
        self.steps += outcome.steps as u64;
        self.ends.merge(outcome.ends);
        self.faults.merge(&outcome.faults);
        if outcome.violation.is_some() {
            self.violations += 1;
            let this = (seed, world);
            self.first = Some(self.first.map_or(this, |first| first.min(this)));
        }
    }
}

/// A seed that broke a promise, made small.
pub(super) struct SeedFailure {
    pub(super) seed: u64,
    pub(super) world: WorldKind,
    pub(super) steps: usize,
    pub(super) shrunk: ShrunkWorld,
    pub(super) breaks: Option<Mutation>,
}

impl SeedFailure {
    fn again(&self) -> String {
        let breaks = self
            .breaks
            .map_or(String::new(), |m| format!(" --break {}", m.as_str()));
        format!(
            "ebbtide-lab simulate evacuation --world {} --seed {} --steps {} --only {}{breaks}",
            self.world.as_str(),
            self.seed,
            self.steps,
            self.shrunk.places
        )
    }

    fn words(&self) -> String {
        let violation = self.shrunk.outcome.violation.as_ref();
        violation.map_or_else(
            || "it does not fail any more".to_owned(),
            ToString::to_string,
        )
    }
}

/// The rules that can be broken.
pub(super) fn rules(context: &mut Context) -> Result<(), CliError> {
    let columns = [
        text("rule", "Rule"),
        text("world", "World"),
        text("says", "What is broken"),
    ];
    let rows: Vec<Vec<TableCell>> = Mutation::ALL
        .iter()
        .map(|m| {
            vec![
                TableCell::new(m.as_str()),
                TableCell::new(m.world().as_str()),
                TableCell::new(m.description()),
            ]
        })
        .collect();
    match context.output.format() {
        Format::Json => {
            let each = Mutation::ALL.iter().map(|m| {
                Json::object([("rule", Json::from(m.as_str()))])
                    .with("world", m.world().as_str())
                    .with("says", m.description())
            });
            context.output.json(&Json::List(each.collect()))
        }
        Format::Value => Mutation::ALL
            .iter()
            .try_for_each(|m| context.output.line(m.as_str())),
        Format::Table | Format::Markdown => context.output.table(&columns, &rows),
    }
}

/// Some steps of one seed, as a story.
pub(super) fn story(
    context: &mut Context,
    seed: u64,
    world: WorldKind,
    steps: usize,
    places: &StepPositions,
    outcome: &SeedResult,
) -> Result<(), CliError> {
    let verdict = match &outcome.violation {
        Some(violation) => format!("violations: 1 ({violation})"),
        None => "violations: 0".to_owned(),
    };
    match context.output.format() {
        Format::Json => {
            let lines = outcome
                .event_log
                .iter()
                .map(|line| Json::from(line.as_str()));
            let json = Json::object([("seed", Json::from(seed))])
                .with("world", world.as_str())
                .with("steps", steps as u64)
                .with("only", places.to_string().as_str())
                .with("story", Json::List(lines.collect()))
                .with("violations", u64::from(outcome.violation.is_some()))
                .with("verdict", verdict.as_str());
            context.output.json(&json)?;
        }
        Format::Table | Format::Markdown | Format::Value => {
            for line in &outcome.event_log {
                context.output.line(line)?;
            }
            context.output.line(&verdict)?;
        }
    }
    if outcome.violation.is_some() {
        return Err(CliError::Disagrees(verdict));
    }
    Ok(())
}

/// What came of all seeds, with the story of one that broke a promise.
pub(super) fn all(
    context: &mut Context,
    args: &EvacuationArgs,
    totals: &Totals,
    failure: Option<&SeedFailure>,
) -> Result<(), CliError> {
    match context.output.format() {
        Format::Json => context.output.json(&json(args, totals, failure))?,
        Format::Value => context
            .output
            .line(&format!("violations: {}", totals.violations))?,
        Format::Table | Format::Markdown => table(context, totals, failure)?,
    }
    if totals.violations == 0 {
        return Ok(());
    }
    Err(CliError::Disagrees(failure.map_or_else(
        || format!("violations: {}", totals.violations),
        |f| format!("seed {}: {}", f.seed, f.words()),
    )))
}

fn a_second(totals: &Totals) -> f64 {
    if totals.seconds > 0.0 {
        totals.ends.total() as f64 / totals.seconds
    } else {
        0.0
    }
}

fn table(
    context: &mut Context,
    totals: &Totals,
    failure: Option<&SeedFailure>,
) -> Result<(), CliError> {
    let columns = [text("fault", "Fault"), number("injected", "Injected")];
    let rows: Vec<Vec<TableCell>> = totals
        .faults
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(fault, count)| vec![TableCell::new(fault.as_str()), TableCell::new(count)])
        .collect();
    context.output.table(&columns, &rows)?;
    if let Some(failure) = failure {
        context.output.line(&format!(
            "\nThe story of seed {}, made small ({} worlds tried):",
            failure.seed, failure.shrunk.tried
        ))?;
        for line in &failure.shrunk.outcome.event_log {
            context.output.line(line)?;
        }
        context
            .output
            .line(&format!("BROKEN: {}", failure.words()))?;
        context
            .output
            .raw(&format!("again: {}\n", failure.again()))?;
    }
    let ends = totals.ends;
    context.output.line(&format!("seeds: {}", totals.seeds))?;
    context.output.line(&format!("steps: {}", totals.steps))?;
    context.output.line(&format!(
        "evacuations: {} (evacuated {}, spared {}, failed {}), {:.0} a second",
        ends.total(),
        ends.evacuated,
        ends.spared,
        ends.failed,
        a_second(totals)
    ))?;
    context
        .output
        .line(&format!("faults injected: {}", totals.faults.total()))?;
    let tone = if totals.violations == 0 {
        Tone::Good
    } else {
        Tone::Bad
    };
    let line = format!("violations: {}", totals.violations);
    let line = context.output.paint(&line, tone);
    context.output.line(&line)
}

fn json(args: &EvacuationArgs, totals: &Totals, failure: Option<&SeedFailure>) -> Json {
    let faults = totals
        .faults
        .iter()
        .map(|(fault, count)| (fault.as_str(), Json::from(count)));
    let ends = totals.ends;
    let story = failure.map_or(Json::Null, |f| {
        let lines = f
            .shrunk
            .outcome
            .event_log
            .iter()
            .map(|line| Json::from(line.as_str()));
        Json::object([("seed", Json::from(f.seed))])
            .with("world", f.world.as_str())
            .with("only", f.shrunk.places.to_string().as_str())
            .with("again", f.again().as_str())
            .with("violation", f.words().as_str())
            .with("story", Json::List(lines.collect()))
    });
    Json::object([("first_seed", Json::from(args.seed))])
        .with("seeds", totals.seeds)
        .with("steps", totals.steps)
        .with("evacuations", ends.total())
        .with("evacuated", ends.evacuated)
        .with("spared", ends.spared)
        .with("failed", ends.failed)
        .with("faults_injected", totals.faults.total())
        .with("faults", Json::object(faults))
        .with("seconds", totals.seconds)
        .with("failure", story)
        .with("violations", totals.violations)
}
