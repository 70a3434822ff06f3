//! What happens to short tasks whose server is taken, by one mechanism and the other.

use super::json::{figures, partition};
use super::play::{PartitionResults, SimulatedPartition};
use super::tables::{seconds, toned};
use super::{ElasticArgs, Terms};
use ebbtide_elastic::{Recovery, Trace};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Format, ListingColumn, TableCell, number, text};

/// One name of `--recovery`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Every one.
    All,
    One(Recovery),
}

/// Reads a name.
pub(super) fn parse(name: &str) -> Result<Choice, String> {
    if name == "all" {
        return Ok(Choice::All);
    }
    let known = Recovery::ALL.into_iter().find(|one| one.as_str() == name);
    known.map(Choice::One).ok_or_else(|| {
        let names: Vec<&str> = Recovery::ALL.into_iter().map(Recovery::as_str).collect();
        format!("{name:?} is none of {} and all", names.join(", "))
    })
}

/// Each that was asked for once; the paper's if none was.
pub(super) fn list(choices: &[Choice]) -> Vec<Recovery> {
    let asked = |recovery: &Recovery| {
        choices.contains(&Choice::All) || choices.contains(&Choice::One(*recovery))
    };
    let all: Vec<Recovery> = Recovery::ALL.into_iter().filter(asked).collect();
    if all.is_empty() {
        vec![Recovery::Copies]
    } else {
        all
    }
}

/// Shows the comparison.
pub(super) fn show(
    context: &mut Context,
    args: &ElasticArgs,
    trace: &Trace,
    terms: &Terms,
    all: &PartitionResults,
) -> Result<(), CliError> {
    match context.output.format() {
        Format::Json => return context.output.json(&json(args, terms, all)),
        Format::Value => return values(context, all),
        Format::Table | Format::Markdown => {}
    }
    let rows: Vec<Vec<TableCell>> = references(terms, all)
        .chain(all.partitions.iter().map(row))
        .collect();
    context.output.table(&COLUMNS, &rows)?;
    context.output.say(&format!(
        "{} jobs, {} short tasks; {} seed{}; Later: short jobs that end more than a second later than on the on-demand servers alone",
        trace.jobs().len(),
        all.short_tasks,
        args.seeds,
        if args.seeds == 1 { "" } else { "s" },
    ));
    Ok(())
}

const COLUMNS: [ListingColumn; 15] = [
    text("recovery", "Recovery"),
    text("setting", "Setting"),
    number("mean", "Mean wait"),
    number("p90", "90 %"),
    number("p99", "99 %"),
    number("max", "Longest"),
    number("improvement", "Mean"),
    number("interrupted", "Interrupted"),
    number("lost", "Tasks lost"),
    number("lost_hours", "Lost [h]"),
    number("again", "Again after"),
    number("again_max", "at most"),
    number("losses", "Losses"),
    number("later", "Later"),
    number("normalised", "Active/r"),
];

/// The clusters without preemptible servers, by how short tasks wait there.
fn references<'a>(
    terms: &'a Terms,
    all: &'a PartitionResults,
) -> impl Iterator<Item = Vec<TableCell>> + use<'a> {
    all.references.iter().map(|(reference, figures)| {
        let waits = if reference.shares_queue() {
            "one queue"
        } else {
            "probes"
        };
        let mut row = vec![
            TableCell::new(waits),
            TableCell::new(setting_of(terms, reference.short_only)),
        ];
        row.extend([figures.mean, figures.p90, figures.p99, figures.max].map(seconds));
        row.extend((0..9).map(|_| TableCell::new("-")));
        row
    })
}

fn setting_of(terms: &Terms, short_only: u32) -> String {
    if short_only == terms.cluster.short_only {
        "static".to_owned()
    } else {
        format!("{short_only} alone")
    }
}

fn setting(one: &SimulatedPartition) -> String {
    match one.swept {
        None => format!("r = {}", one.elastic.policy.ratio()),
        Some((knob, value)) => format!("{} {value}", knob.as_str()),
    }
}

fn row(one: &SimulatedPartition) -> Vec<TableCell> {
    let figures = &one.figures;
    let mut row = vec![
        TableCell::new(one.recovery.as_str()),
        TableCell::new(setting(one)),
    ];
    row.extend([figures.mean, figures.p90, figures.p99, figures.max].map(seconds));
    row.push(toned(one.improvement));
    row.push(TableCell::new(format!("{:.0}", figures.interrupted)));
    row.push(TableCell::new(format!("{:.0}", figures.lost)));
    row.push(TableCell::new(format!(
        "{:.1}",
        figures.lost_seconds / 3_600.0
    )));
    row.extend([figures.again_mean, figures.again_max].map(seconds));
    row.push(TableCell::new(format!("{:.0}", figures.most_losses)));
    row.push(TableCell::new(one.later.map_or_else(
        || "-".to_owned(),
        |later| format!("{:.2} %", later.share * 100.0),
    )));
    row.push(TableCell::new(format!("{:.1}", one.normalised)));
    row
}

/// A line each: recovery, setting, mean wait, improvement, share of jobs that end later.
fn values(context: &mut Context, all: &PartitionResults) -> Result<(), CliError> {
    for one in &all.partitions {
        let line = format!(
            "{} {} {:.6} {:.6} {:.6}",
            one.recovery.as_str(),
            setting(one).replace(" = ", "="),
            one.figures.mean,
            one.improvement,
            one.later.map_or(0.0, |later| later.share),
        );
        context.output.line(&line)?;
    }
    Ok(())
}

fn json(args: &ElasticArgs, terms: &Terms, all: &PartitionResults) -> Json {
    let references = all.references.iter().map(|(reference, of)| {
        figures(of)
            .with("shared_queue", reference.shares_queue())
            .with("short_only", reference.short_only)
    });
    let rows = all.partitions.iter().map(|one| {
        let of = &one.figures;
        let json = partition(one)
            .with("recovery", one.recovery.as_str())
            .with("setting", setting(one))
            .with("again_mean_seconds", of.again_mean)
            .with("again_max_seconds", of.again_max)
            .with("most_losses_of_a_task", of.most_losses);
        match one.later {
            Some(later) => json
                .with("later_share_of_jobs", later.share)
                .with("later_mean_seconds", later.mean)
                .with("later_max_seconds", later.max),
            None => json.with("later_share_of_jobs", Json::Null),
        }
    });
    Json::object([("trace", Json::from(args.trace.display().to_string()))])
        .with("short_only", terms.cluster.short_only)
        .with("short_tasks", all.short_tasks as u64)
        .with("seeds", args.seeds)
        .with("seed", args.seed)
        .with("without", references.collect::<Vec<Json>>())
        .with("with", rows.collect::<Vec<Json>>())
        .with("seconds", all.seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_mechanisms_and_all() {
        assert_eq!(parse("all"), Ok(Choice::All));
        assert_eq!(parse("requeue"), Ok(Choice::One(Recovery::Requeue)));
        assert!(parse("twice").is_err());
        let all = list(&[parse("requeue-last").unwrap(), parse("copies").unwrap()]);
        assert_eq!(all, [Recovery::Copies, Recovery::RequeueLast]);
        assert_eq!(list(&[]), [Recovery::Copies]);
        assert_eq!(list(&[Choice::All]), Recovery::ALL);
    }
}
