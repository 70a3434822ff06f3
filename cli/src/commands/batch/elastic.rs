//! The report of the elastic partition: what its servers were good for.

use super::client::{BatchClient, BatchFault, parse};
use ebbtide_burst::report::{BurstReport, KindReport, WaitingTimes};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Format, TableCell, number, text};
use std::path::Path;

pub(super) const HELP: &str = "\
Queueing delay is the time from a job's submission to its first start. It is held against that of the
same cluster without preemptible nodes: measured, if --baseline has the report of such a run
(`ebbtide-batch run --observe` writes down what happens and changes nothing), else reckoned: the same
jobs, with the run times that they had, on the nodes that stay, in order of submission, each as early as
possible without delaying those before it. No real cluster knows run times beforehand, so the reckoned
one is rather too good.

Servers are paid from launch to end, by the millisecond, at the flavor's price at their launch.

Examples:
  ebbtide batch elastic
  ebbtide batch elastic -o json >without.json      # while the service observes
  ebbtide batch elastic --baseline without.json -o json | jq .improvement";

/// Asks for the report, and shows it.
///
/// # Errors
/// [`BatchFault`].
pub(super) async fn run(
    context: &mut Context,
    client: &BatchClient,
    baseline: Option<&Path>,
) -> Result<(), CliError> {
    let body = client.call("GET", "/v1/elastic/report", None).await?;
    let mut made: BurstReport = parse(&body)?;
    if let Some(path) = baseline {
        made = made.against(&read(path)?);
    }
    match context.output.format() {
        Format::Json => {
            let body = serde_json::to_value(&made).map_err(std::io::Error::other)?;
            context.output.json(&Json::from(body))
        }
        Format::Value => {
            let best = made.improvement.map(|best| format!("{best:.2}"));
            context.output.line(best.as_deref().unwrap_or("-"))
        }
        Format::Table | Format::Markdown => tables(context, &made),
    }
}

/// The report of another run.
fn read(path: &Path) -> Result<BurstReport, BatchFault> {
    let file = |problem: String| BatchFault::File {
        path: path.display().to_string(),
        problem,
    };
    let text = std::fs::read_to_string(path).map_err(|error| file(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| {
        let problem = format!("it is no report of `ebbtide batch elastic -o json`: {error}");
        file(problem)
    })
}

fn tables(context: &mut Context, made: &BurstReport) -> Result<(), CliError> {
    let columns = [
        text("jobs", "Jobs"),
        text("nodes", "Preemptible nodes"),
        number("started", "Started"),
        number("mean", "Mean delay"),
        number("median", "Median"),
        number("p95", "95 %"),
        number("longest", "Longest"),
        number("mean_all", "Mean, all waiting"),
    ];
    let row = |kind: &KindReport, name: &str, waits: &WaitingTimes| {
        let seconds = |value: f64| TableCell::new(format!("{value:.1} s")).value(value);
        vec![
            TableCell::new(kind.kind.as_str()),
            TableCell::new(name),
            TableCell::new(waits.started),
            seconds(waits.mean_seconds),
            seconds(waits.median_seconds),
            seconds(waits.p95_seconds),
            seconds(waits.longest_seconds),
            seconds(waits.mean_all_waiting_seconds),
        ]
    };
    let rows: Vec<Vec<TableCell>> = made
        .kinds
        .iter()
        .filter(|kind| kind.jobs > 0)
        .flat_map(|kind| {
            [
                row(kind, "with", &kind.with),
                row(kind, "without", &kind.without),
            ]
        })
        .collect();
    context.output.table(&columns, &rows)?;
    context
        .output
        .line(&format!("Without: {}.", made.baseline))?;
    for kind in made.kinds.iter().filter(|kind| kind.jobs > 0) {
        let better = kind.improvement().map_or_else(
            || "nothing to compare".to_owned(),
            |times| match times.is_finite() {
                true => format!("mean delay {times:.2} times shorter"),
                false => "no job waits any more".to_owned(),
            },
        );
        context.output.line(&format!(
            "{} jobs: {} of {} ended well, {} otherwise; {} were put back {} times, after {:.1} s of running; {better}.",
            kind.kind.as_str(), kind.completed, kind.jobs, kind.failed, kind.cut_jobs, kind.cuts, kind.in_vain_seconds,
        ))?;
    }
    let money = &made.money;
    context.output.line(&format!(
        "{} instances, {} interrupted, {} never up, {:.4} h in all: {} paid, {} on demand.",
        money.instances,
        money.interrupted,
        money.never_up,
        money.hours,
        money.paid,
        money.on_demand,
    ))?;
    for trouble in &made.troubles {
        context.output.line(&format!(
            "{}: {} times; see docs/reference/errors.md.",
            trouble.code, trouble.times
        ))?;
    }
    Ok(())
}
