//! The account of a run, as text for people and as JSON for programs.

use super::state::StateContents;
use ebbtide_run::{InstanceWork, IntervalResult, RunRecord, Span, WorkEnd, outcome};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Format, TableCell, number, text};
use ebbtide_shell::render::Tone;

/// A checkpoint interval and its real or simulated result.
struct IntervalRow {
    name: String,
    outcome: IntervalResult,
}

fn ways(record: &RunRecord, compare: Span) -> Vec<IntervalRow> {
    let cost = record.cost().unwrap_or(Span::ZERO);
    let saving = record
        .lives
        .iter()
        .fold(Span::ZERO, |sum, life| sum.plus(life.saving));
    let mut ways = vec![IntervalRow {
        name: "this run".to_owned(),
        outcome: IntervalResult {
            lost: record.lost,
            checkpoints: record.saved,
            saving,
            done: record.reached(),
        },
    }];
    if compare > Span::ZERO {
        ways.push(IntervalRow {
            name: format!("every {}", Hours(compare.hours())),
            outcome: outcome(&record.lives, Some(compare), cost),
        });
    }
    ways.push(IntervalRow {
        name: "no checkpoints".to_owned(),
        outcome: outcome(&record.lives, None, cost),
    });
    // An interval with less checkpoint time finishes before the last instance's end; there is no
    // more work than that.
    if record.exit.is_some() {
        for way in &mut ways {
            way.outcome.done = way.outcome.done.min(record.reached());
        }
    }
    ways
}

fn end(life: &InstanceWork) -> &'static str {
    match life.end {
        WorkEnd::Open => "open",
        WorkEnd::Interrupted => "interrupted",
        WorkEnd::Stayed => "stayed",
        WorkEnd::Stopped => "stopped",
        WorkEnd::Exited => "exited",
    }
}

/// The loss at each instance's end: work that the next instance had to repeat. The last loss is
/// unknown yet.
fn losses(record: &RunRecord) -> Vec<Option<Span>> {
    let next = record.lives.iter().skip(1).map(|life| Some(life.from));
    let next = next.chain([None]);
    let each = record.lives.iter().zip(next);
    each.map(|(life, next)| next.map(|from| life.reached.minus(from)))
        .collect()
}

/// Shows the account.
pub(super) fn show(
    context: &mut Context,
    stored: &StateContents,
    took: Option<Span>,
    compare: Span,
) -> Result<(), CliError> {
    let record = &stored.record;
    let ways = ways(record, compare);
    match context.output.format() {
        Format::Json => {
            let json = json(stored, took, &ways);
            context.output.json(&json)
        }
        Format::Value => context.output.line(&seconds(record.lost).to_string()),
        Format::Table | Format::Markdown => tables(context, record, &ways),
    }
}

fn tables(context: &mut Context, record: &RunRecord, ways: &[IntervalRow]) -> Result<(), CliError> {
    let span = |span: Span| TableCell::new(Hours(span.hours()));
    let columns = [
        number("instance", "Instance"),
        text("age", "Age"),
        text("lasted", "There for"),
        text("restoring", "Starting"),
        text("saving", "Saving"),
        text("from", "Work before"),
        text("reached", "Work after"),
        text("lost", "Lost"),
        text("end", "End"),
    ];
    let rows: Vec<Vec<TableCell>> = record
        .lives
        .iter()
        .zip(losses(record))
        .enumerate()
        .map(|(at, (life, lost))| {
            vec![
                TableCell::new(at + 1),
                span(life.age),
                span(life.lasted),
                span(life.restoring),
                span(life.saving),
                span(life.from),
                span(life.reached),
                lost.map_or_else(|| TableCell::new("-"), span),
                TableCell::new(end(life)),
            ]
        })
        .collect();
    context.output.table(&columns, &rows)?;
    let columns = [
        text("way", "On these instances"),
        number("checkpoints", "Checkpoints"),
        text("saving", "Time for them"),
        text("lost", "Work lost"),
        text("done", "Work done"),
    ];
    let rows: Vec<Vec<TableCell>> = ways
        .iter()
        .enumerate()
        .map(|(at, way)| {
            let tone = if at == 0 { Tone::Strong } else { Tone::Plain };
            vec![
                TableCell::new(&way.name).tone(tone),
                TableCell::new(way.outcome.checkpoints),
                span(way.outcome.saving),
                span(way.outcome.lost),
                span(way.outcome.done),
            ]
        })
        .collect();
    context.output.table(&columns, &rows)
}

fn seconds(span: Span) -> f64 {
    span.0 as f64 / 1_000.0
}

fn json(stored: &StateContents, took: Option<Span>, ways: &[IntervalRow]) -> Json {
    let record = &stored.record;
    let lives = record.lives.iter().zip(losses(record)).map(|(life, lost)| {
        Json::object([("age_seconds", Json::from(seconds(life.age)))])
            .with("lasted_seconds", seconds(life.lasted))
            .with("starting_seconds", seconds(life.restoring))
            .with("saving_seconds", seconds(life.saving))
            .with("work_before_seconds", seconds(life.from))
            .with("work_after_seconds", seconds(life.reached))
            .with(
                "lost_seconds",
                lost.map_or(Json::Null, |lost| Json::from(seconds(lost))),
            )
            .with("end", end(life))
    });
    let ways = ways.iter().map(|way| {
        Json::object([("way", Json::from(way.name.as_str()))])
            .with("checkpoints", way.outcome.checkpoints)
            .with("saving_seconds", seconds(way.outcome.saving))
            .with("lost_seconds", seconds(way.outcome.lost))
            .with("work_seconds", seconds(way.outcome.done))
    });
    let checkpoints = Json::object([("completed", Json::from(record.saved))])
        .with("failed", record.failed)
        .with(
            "mean_seconds",
            record
                .cost()
                .map_or(Json::Null, |cost| Json::from(seconds(cost))),
        );
    Json::object([(
        "exit_code",
        record
            .exit
            .map_or(Json::Null, |code| Json::from(u64::from(code))),
    )])
    .with("work_seconds", seconds(record.reached()))
    .with("lost_seconds", seconds(record.lost))
    .with(
        "took_seconds",
        took.map_or(Json::Null, |took| Json::from(seconds(took))),
    )
    .with("checkpoints", checkpoints)
    .with("instances", Json::List(lives.collect()))
    .with("ways", Json::List(ways.collect()))
}
