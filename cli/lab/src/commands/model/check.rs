//! `ebbtide-lab model check`: do new lifetimes still fit the model?

use super::check_chart;
use super::source::{self, SourceArgs};
use clap::Args;
use ebbtide_lifetime::change::{ChangeReport, PhaseCount, check};
use ebbtide_lifetime::labelled_life::LabelledLife;
use ebbtide_shell::Context;
use ebbtide_shell::charts;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::{Hours, Maximum};
use ebbtide_shell::json::Json;
use ebbtide_shell::model::{ModelArgs, SourcedModel};
use ebbtide_shell::output::{TableCell, number, text};
use ebbtide_shell::render::Tone;
use std::path::PathBuf;
use time::format_description::well_known::Rfc3339;

pub(super) const HELP: &str = "\
Goes through the lifetimes in the order of their launches (of the file, where it has no times) and says when
they stopped to fit: which ages, how many times more or fewer ends, and since when. If the model is right, an
alarm comes with at most the chance of --false-alarms, whatever users do; hazards that are off by a tenth are
seldom reported. Give lifetimes that the model was not fitted to. Exit code 1 if they do not fit.

Examples:
  ebbtide-lab model check new.csv --against model.json --group flavor=n1-highcpu-16
  ebbtide-lab model check preemptions.csv --since 2019-03-18 --against weibull:lambda=0.03,k=0.45
  ebbtide-lab model check new.csv --against bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.45 --svg check.svg";

/// Options of `model check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// The model: NAME:key=value,… in hours, or the file that `ebbtide-lab model fit -o json`
    /// writes
    #[arg(long, value_name = "MODEL")]
    against: String,
    /// Which model of that file; only lifetimes with its labels are looked at
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// The chance of an alarm while the model is right
    #[arg(long, default_value_t = 0.01, value_name = "P")]
    false_alarms: f64,
    /// Draw the statistic over the lifetimes into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Checks and shows.
pub(super) async fn run(context: &mut Context, args: &CheckArgs) -> Result<(), CliError> {
    let given = SourcedModel::read(&ModelArgs {
        model: args.against.clone(),
        group: args.group.clone(),
    })?;
    let mut source = args.source.clone();
    source.wanted.extend(given.labels.clone());
    let source = source::read(context, &source, Some(Maximum(given.longest))).await?;
    of_observations(context, args, &given, source.rows)
        .map_err(|error| error.in_file_of_lifetimes(&source.place))
}

/// The same for lifetimes from anywhere.
fn of_observations(
    context: &mut Context,
    args: &CheckArgs,
    given: &SourcedModel,
    mut rows: Vec<LabelledLife>,
) -> Result<(), CliError> {
    let timed = rows.iter().all(|row| row.launched.is_some());
    if timed {
        rows.sort_by_key(|row| row.launched);
    } else {
        context
            .output
            .say("not every row has a time of launch: they are taken in the order of the file");
    }
    let seen: Vec<_> = rows.iter().map(|row| row.observation).collect();
    let report = check(given.model.as_ref(), &seen, args.false_alarms)?;
    show(context, args, given, &rows, &report)?;
    if let Some(path) = &args.svg {
        charts::write(context, path, &check_chart::figure(&report))?;
    }
    match verdict(&rows, &report) {
        (_, false) => Ok(()),
        (words, true) => Err(CliError::Disagrees(words)),
    }
}

/// The verdict in words, and whether something changed.
fn verdict(rows: &[LabelledLife], report: &ChangeReport) -> (String, bool) {
    let Some(alarm) = report.alarm else {
        return (
            "nothing says that the model does not fit any more".to_owned(),
            false,
        );
    };
    let launched = rows
        .get(alarm.since - 1)
        .and_then(|row| row.launched)
        .map_or_else(String::new, |at| format!(", launched {}", at.date()));
    let change = alarm.change;
    let how = if change.factor > 1.0 { "more" } else { "less" };
    (
        format!(
            "the lifetimes do not fit the model any more since lifetime {}{launched}: instances of {:.1} to {:.1} h end {how} often \
             (certain at lifetime {})",
            alarm.since, change.from, change.to, alarm.at
        ),
        true,
    )
}

fn show(
    context: &mut Context,
    args: &CheckArgs,
    given: &SourcedModel,
    rows: &[LabelledLife],
    report: &ChangeReport,
) -> Result<(), CliError> {
    if !context.output.is_table() {
        let json = json(args, given, rows, report);
        if context.output.format() == ebbtide_shell::output::Format::Json {
            return context.output.json(&json);
        }
        let word = if report.alarm.is_some() {
            "changed"
        } else {
            "fits"
        };
        return context.output.line(word);
    }
    let ended = rows.iter().filter(|row| row.observation.ended).count();
    context.output.line(&format!("model: {}", given.words()))?;
    context.output.line(&format!(
        "lifetimes: {}, of which the provider ended {ended}; statistic at most {:.3e}, alarm at {:.3e}",
        rows.len(),
        report.statistic.iter().copied().fold(0.0, f64::max),
        report.bound
    ))?;
    let columns = [
        text("age", "Age"),
        number("expected", "Ends expected"),
        number("ended", "Ends seen"),
        number("factor", "Times the model's"),
        text("confidence", "95 %"),
    ];
    let table: Vec<Vec<TableCell>> = report.phases.iter().map(row).collect();
    context.output.table(&columns, &table)?;
    let (words, changed) = verdict(rows, report);
    if changed {
        context
            .output
            .line("The table is of the lifetimes since the change.")
    } else {
        context.output.line(&words)
    }
}

fn row(phase: &PhaseCount) -> Vec<TableCell> {
    let (factor, low, high) = phase.factor;
    let off = low > 1.0 || high < 1.0;
    vec![
        TableCell::new(format!("{} to {}", Hours(phase.from), Hours(phase.to))),
        TableCell::new(format!("{:.1}", phase.expected)),
        TableCell::new(phase.ended),
        TableCell::new(format!("{factor:.2}")).tone(if off { Tone::Warn } else { Tone::Plain }),
        TableCell::new(format!("{low:.2} to {high:.2}")),
    ]
}

fn json(
    args: &CheckArgs,
    given: &SourcedModel,
    rows: &[LabelledLife],
    report: &ChangeReport,
) -> Json {
    let count = |n: usize| Json::from(n as u64);
    let ended = rows.iter().filter(|row| row.observation.ended).count();
    let alarm = match report.alarm {
        Some(alarm) => Json::object([("certain_at", count(alarm.at))])
            .with("since", count(alarm.since))
            .with(
                "since_launched",
                rows.get(alarm.since - 1)
                    .and_then(|row| row.launched)
                    .and_then(|at| at.format(&Rfc3339).ok())
                    .map_or(Json::Null, Json::from),
            )
            .with("from_age_hours", alarm.change.from)
            .with("to_age_hours", alarm.change.to)
            .with("hazard_times", alarm.change.factor),
        None => Json::Null,
    };
    let phases = report.phases.iter().map(|phase| {
        Json::object([("from_age_hours", Json::from(phase.from))])
            .with("to_age_hours", phase.to)
            .with("expected", phase.expected)
            .with("ended", count(phase.ended))
            .with("times", phase.factor.0)
            .with("times_low", phase.factor.1)
            .with("times_high", phase.factor.2)
    });
    Json::object([("fits", Json::from(report.alarm.is_none()))])
        .with("model", given.json())
        .with("lifetimes", count(rows.len()))
        .with("preempted", count(ended))
        .with("false_alarms", args.false_alarms)
        .with(
            "statistic",
            report.statistic.iter().copied().fold(0.0, f64::max),
        )
        .with("alarm_at", report.bound)
        .with("alarm", alarm)
        .with("phases", Json::List(phases.collect()))
}
