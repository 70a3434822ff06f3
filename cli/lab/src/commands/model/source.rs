//! Where observed lifetimes come from: a file or the region, and which rows.

use super::from_region::{self, RegionLife};
use clap::Args;
use ebbtide_lifetime::LifetimeError;
use ebbtide_lifetime::labelled_life::{self, LabelledLife};
use ebbtide_lifetime::table::Table;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::globals::ProjectScope;
use ebbtide_shell::hours::Maximum;
use ebbtide_shell::time_argument::parse_time;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use time::OffsetDateTime;

/// Which lifetimes.
#[derive(Debug, Clone, Args)]
pub(super) struct SourceArgs {
    /// Lifetimes as CSV, plain, gzip or zstd: columns lifetime_hours and ended (preempted or
    /// stopped), if there is launched (RFC 3339), and any others; or the paper's public data as
    /// they are
    #[arg(
        required_unless_present = "from_region",
        conflicts_with = "from_region"
    )]
    pub file: Option<PathBuf>,
    /// The lives of preemptible servers that the region has written down, and those that run now;
    /// labels: flavor, zone, host, project
    #[arg(long)]
    pub from_region: bool,
    /// With --from-region: whose servers
    #[command(flatten)]
    pub scope: ProjectScope,
    /// Only those with this label; may be repeated
    #[arg(long = "where", value_name = "LABEL=VALUE", value_parser = pair)]
    pub wanted: Vec<(String, String)>,
    /// Only instances launched at this time or later: 2026-05-04, or with a time of day as
    /// 2026-05-04T10:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub since: Option<OffsetDateTime>,
    /// Only instances launched before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub until: Option<OffsetDateTime>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((label, value)) if !label.is_empty() => Ok((label.to_owned(), value.to_owned())),
        _ => Err("it looks like flavor=m1.small".to_owned()),
    }
}

/// Most values of labels that a message names.
const SHOWN: usize = 10;

/// The maximum lifetime of files for which nothing else is said: that of the paper's provider.
const MAXIMUM: Maximum = Maximum(24.0);

/// Lifetimes, and what is known of them as a whole.
#[derive(Debug)]
pub(super) struct LifetimeSource {
    pub(super) rows: Vec<LabelledLife>,
    pub(super) maximum: Maximum,
    /// Where they come from, for messages.
    pub(super) place: PathBuf,
}

/// The rows asked for, in their order. Says on standard error what was left out. `maximum` is what
/// was said about the longest life.
pub(super) async fn read(
    context: &mut Context,
    args: &SourceArgs,
    maximum: Option<Maximum>,
) -> Result<LifetimeSource, CliError> {
    let Some(file) = &args.file else {
        let rows = from_region::rows(context, &args.scope).await?;
        return of_region(rows, args, maximum);
    };
    let maximum = maximum.unwrap_or(MAXIMUM);
    Ok(LifetimeSource {
        rows: from_file(context, file, args, maximum)?,
        maximum,
        place: file.clone(),
    })
}

/// Takes the region's rows that are asked for. What its flavors say is the longest life, if all of
/// them say the same.
fn of_region(
    rows: Vec<RegionLife>,
    args: &SourceArgs,
    maximum: Option<Maximum>,
) -> Result<LifetimeSource, CliError> {
    let place = PathBuf::from("the region");
    let at = |error: LifetimeError| CliError::lifetimes(&place, error);
    let limits: Vec<Maximum> = rows.iter().map(|row| row.maximum).collect();
    let common = limits.first().copied();
    let common = common.filter(|first| limits.iter().all(|limit| limit == first));
    let maximum = maximum.or(common).unwrap_or(Maximum(f64::INFINITY));
    let rows = rows
        .into_iter()
        .map(|row| row.limited_to(maximum))
        .collect();
    let rows = chosen(rows, args).map_err(at)?;
    labelled_life::check(&rows, maximum.0).map_err(at)?;
    Ok(LifetimeSource {
        rows,
        maximum,
        place,
    })
}

fn from_file(
    context: &mut Context,
    file: &Path,
    args: &SourceArgs,
    maximum: Maximum,
) -> Result<Vec<LabelledLife>, CliError> {
    let at = |error: LifetimeError| CliError::lifetimes(file, error);
    let bytes = ebbtide_files::read(file)?;
    let table = Table::parse(&bytes).map_err(at)?;
    if table.left_out > 0 {
        context.output.say(&format!(
            "{} rows are about instances that are not preemptible: left out",
            table.left_out
        ));
    }
    let rows = chosen(table.rows, args).map_err(at)?;
    labelled_life::check(&rows, maximum.0).map_err(at)?;
    Ok(rows)
}

/// The rows that the options ask for.
fn chosen(rows: Vec<LabelledLife>, args: &SourceArgs) -> Result<Vec<LabelledLife>, LifetimeError> {
    let mut kept = Vec::with_capacity(rows.len());
    let all = rows.len();
    let mut values: BTreeSet<String> = BTreeSet::new();
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
                Some(own) => {
                    fits &= own == *value;
                    if own != *value && values.len() < SHOWN {
                        values.insert(format!("{label}={own}"));
                    }
                }
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
    if kept.is_empty() && all > 0 {
        let there: Vec<String> = values.into_iter().collect();
        let there = match there.len() {
            0 => String::new(),
            _ => format!("; there are {}", there.join(", ")),
        };
        return Err(LifetimeError::Columns {
            problem: format!("--where, --since and --until leave none of the {all} rows{there}"),
        });
    }
    Ok(kept)
}
