//! `ebbtide-lab model fit`: lifetime models from what was seen.

use super::fit_chart;
use super::fitted::{Choice, FitMethod, FittedGroup};
use super::source::{self, LifetimeSource, SourceArgs};
use crate::progress::ReplayProgress;
use clap::{Args, ValueEnum};
use ebbtide_lifetime::labelled_life::groups;
use ebbtide_shell::Context;
use ebbtide_shell::charts;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Maximum;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Listing, number, text};
use std::path::PathBuf;

pub(super) const HELP: &str = "\
Least squares on those that the provider ended is the way of Kadupitiya et al. (HPDC 2020), and forgets that
instances which their users stopped would have lived longer; --method mle counts them as censored. For each
group the verdict says which model to use; --model best takes it. The JSON is what other commands take as a
model. docs/tenants/lifetimes.md has the whole story, and the format of the file.

Examples:
  ebbtide-lab model fit preemptions.csv
  ebbtide-lab model fit preemptions.csv --by flavor,zone --method mle --model best
  ebbtide-lab model fit lifetimes.csv.gz --svg lifetimes.svg -o json > model.json
  ebbtide-lab model fit --from-region --all-projects --by flavor
  ebbtide-lab model fit lifetimes.csv --end stopped --method mle --max-lifetime none --model weibull -o json > work.json
  ebbtide-lab model fit lifetimes.csv --where zone=nova --since 2026-05-01 --max-lifetime none --model weibull";

/// Who ended the lives that a model is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum EndCause {
    /// The provider.
    Preempted,
    /// Their users.
    Stopped,
}

/// Options of `model fit`.
#[derive(Debug, Clone, Args)]
pub struct FitArgs {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// A model for each group, too: any labels; `hour` is the hour of the launch
    #[arg(long, value_name = "LABEL,…", value_delimiter = ',')]
    by: Vec<String>,
    /// Which model [default: bathtub for files, best for the region]
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "bathtub|exponential|weibull|gompertz-makeham|uniform|phases|empirical|best"
    )]
    model: Option<Choice>,
    /// How parameters are found [default: least-squares for files, mle for the region]
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "least-squares|mle"
    )]
    method: Option<FitMethod>,
    /// The provider's maximum lifetime, or none [default: 24h for files, what its flavors say for
    /// the region]
    #[arg(long, value_name = "TIME")]
    max_lifetime: Option<Maximum>,
    /// Which ends the model is about: the provider's (how soon instances are interrupted), or their
    /// users' (how long they run without interruption). The others are censored
    #[arg(
        long,
        value_enum,
        default_value = "preempted",
        hide_possible_values = true,
        conflicts_with = "from_region",
        value_name = "preempted|stopped"
    )]
    end: EndCause,
    /// Draw distribution and hazard over the data into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Fits and shows.
pub(super) async fn run(context: &mut Context, args: &FitArgs) -> Result<(), CliError> {
    let mut source = source::read(context, &args.source, args.max_lifetime).await?;
    if args.end == EndCause::Stopped {
        for row in &mut source.rows {
            row.observation.ended = !row.observation.ended;
        }
    }
    of_observations(context, args, &source)
        .map_err(|error| error.in_file_of_lifetimes(&source.place))
}

/// The same for lifetimes from anywhere.
fn of_observations(
    context: &mut Context,
    args: &FitArgs,
    source: &LifetimeSource,
) -> Result<(), CliError> {
    let (choice, way) = if args.source.from_region {
        (Choice::Best, FitMethod::Mle)
    } else {
        (Choice::Bathtub, FitMethod::LeastSquares)
    };
    let choice = args.model.unwrap_or(choice);
    let way = args.method.unwrap_or(way);
    let groups = groups(&source.rows, &args.by)?;
    let mut progress = ReplayProgress::of(context, groups.len(), "groups");
    let mut outcomes = Vec::with_capacity(groups.len());
    for group in groups {
        progress.set(context, outcomes.len(), &group.name);
        outcomes.push(FittedGroup::of(&group, choice, way, source.maximum.0)?);
    }
    progress.end();
    if outcomes.iter().all(|outcome| outcome.fitted.is_err())
        && let Some(FittedGroup {
            fitted: Err(error), ..
        }) = outcomes.first()
    {
        return Err(error.clone().into());
    }
    show(context, &outcomes)?;
    match &args.svg {
        Some(path) => charts::write(context, path, &fit_chart::figure(&outcomes)),
        None => Ok(()),
    }
}

fn show(context: &mut Context, outcomes: &[FittedGroup]) -> Result<(), CliError> {
    let groups = Json::List(outcomes.iter().map(FittedGroup::json).collect());
    context.output.listing(Listing {
        columns: vec![
            text("group", "Group"),
            number("lifetimes", "Lifetimes"),
            number("preempted", "Preempted"),
            text("model", "Model"),
            text("parameters", "Parameters (hours)"),
            number("r2", "R²"),
            number("ks", "KS").detail(1),
            number("aic", "AIC").detail(2),
            number("expected_lifetime_hours", "Mean [h]"),
        ],
        rows: outcomes.iter().map(FittedGroup::row).collect(),
        json: Json::object([("groups", groups)]),
        none: "no lifetimes",
    })?;
    if !context.output.is_table() {
        return Ok(());
    }
    for outcome in outcomes {
        match (&outcome.fitted, &outcome.verdict) {
            (Err(error), _) => {
                let line = format!("{}: {}: {error}", outcome.name, error.code());
                context.output.line(&line)?;
            }
            (Ok(_), Some(verdict)) => {
                let line = format!("{}: {}", outcome.name, verdict.words);
                context.output.line(&line)?;
            }
            (Ok(_), None) => {}
        }
    }
    Ok(())
}
