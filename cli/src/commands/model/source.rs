//! Where observed lifetimes come from: a file, and which of its rows.

use crate::Context;
use crate::errors::CliError;
use crate::hours::Maximum;
use clap::Args;
use ebbtide_lifetime::LifetimeError;
use ebbtide_lifetime::labelled::{self, Labelled};
use ebbtide_lifetime::table::Table;
use std::path::PathBuf;
use time::format_description::well_known::{Iso8601, Rfc3339};
use time::{Date, OffsetDateTime, UtcOffset};

/// Which lifetimes.
#[derive(Debug, Clone, Args)]
pub(super) struct SourceArgs {
    /// Lifetimes as CSV, plain, gzip or zstd: columns lifetime_hours and ended (preempted or stopped), if there is launched (RFC 3339), and
    /// any others; or the paper's public data as they are
    pub file: PathBuf,
    /// Only those with this label; may be repeated
    #[arg(long = "where", value_name = "LABEL=VALUE", value_parser = pair)]
    pub wanted: Vec<(String, String)>,
    /// Only instances launched at this time or later: 2026-05-04, or with a time of day as 2026-05-04T10:00:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<OffsetDateTime>,
    /// Only instances launched before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub until: Option<OffsetDateTime>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((label, value)) if !label.is_empty() => Ok((label.to_owned(), value.to_owned())),
        _ => Err("it looks like flavor=m1.small".to_owned()),
    }
}

fn moment(text: &str) -> Result<OffsetDateTime, String> {
    if let Ok(at) = OffsetDateTime::parse(text, &Rfc3339) {
        return Ok(at);
    }
    Date::parse(text, &Iso8601::DATE)
        .map(|day| day.midnight().assume_offset(UtcOffset::UTC))
        .map_err(|_| "it looks like 2026-05-04 or 2026-05-04T10:00:00Z".to_owned())
}

/// Reads a file and takes the rows asked for, in the order of the file. Says on standard error what was left out.
pub(super) fn from_file(
    context: &mut Context,
    args: &SourceArgs,
    maximum: Maximum,
) -> Result<Vec<Labelled>, CliError> {
    let at = |error: LifetimeError| CliError::lifetimes(&args.file, error);
    let bytes = ebbtide_simulator::read_file(&args.file)?;
    let table = Table::parse(&bytes).map_err(at)?;
    if table.left_out > 0 {
        context.output.say(&format!(
            "{} rows are about instances that are not preemptible: left out",
            table.left_out
        ));
    }
    let rows = chosen(table.rows, args).map_err(at)?;
    labelled::check(&rows, maximum.0).map_err(at)?;
    Ok(rows)
}

/// The rows that the options ask for.
fn chosen(rows: Vec<Labelled>, args: &SourceArgs) -> Result<Vec<Labelled>, LifetimeError> {
    let mut kept = Vec::with_capacity(rows.len());
    let by_time = args.since.is_some() || args.until.is_some();
    for row in rows {
        if by_time {
            let Some(at) = row.launched else {
                return Err(LifetimeError::Columns {
                    problem: format!(
                        "line {} has no time of launch: --since and --until need a column launched",
                        row.line
                    ),
                });
            };
            if args.since.is_some_and(|since| at < since)
                || args.until.is_some_and(|until| at >= until)
            {
                continue;
            }
        }
        let mut fits = true;
        for (label, value) in &args.wanted {
            match row.label(label) {
                Some(own) => fits &= own == *value,
                None => {
                    let there: Vec<&str> = row.labels.keys().map(String::as_str).collect();
                    return Err(LifetimeError::Columns {
                        problem: format!(
                            "line {} has no {label}; there are {}",
                            row.line,
                            there.join(", ")
                        ),
                    });
                }
            }
        }
        if fits {
            kept.push(row);
        }
    }
    Ok(kept)
}
