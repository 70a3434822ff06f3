//! `ebbtide-lab simulate checkpointing`: the six schemes of the ACC paper on recorded prices.

mod bids;
mod charts;
mod json;
mod sweep;
mod tables;

pub(in crate::commands) use bids::Bids;

use clap::Args;
use ebbtide_checkpointing::{
    AccReading, Adapt, AdaptKnowledge, CheckpointTerms, CheckpointingError, PriceHistory,
    RepeatedRows, SchemeKind, Series, Starts, read_series, spiky_market,
};
use ebbtide_model::Money;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;
use std::path::{Path, PathBuf};

pub(super) const HELP: &str = "\
A job is handed in again and again over the history (--every), with every bid, to every scheme:
  NONE   no checkpoints: an interrupted job starts again
  OPT    a checkpoint just before each interruption, by foresight, impossible in practice: the bound
  HOUR   a checkpoint at the end of each instance-hour
  EDGE   a checkpoint whenever the price rises
  ADAPT  every --adapt-every a checkpoint, if the failure density of the bid says that it pays
  ACC    bids so high that it is never interrupted; gives the instance back at the end of an hour, after
         a checkpoint, if the next hour would cost more than the bid, and launches when it costs less
Charged is by the instance-hour at the price at its beginning; the last begun hour is free if the provider
ends the instance, and charged if the job is done or ACC gives it back. docs/tenants/checkpointing.md
has more.

The history is CSV, plain, gzip or zstd, with a header: unix_ts_utc and price_usd_per_hour; all other
columns name the series. Without --bids each series gets bids over its own band from 5 to 95 %.

Examples:
  ebbtide-lab simulate checkpointing --history prices.csv --job 500m
  ebbtide-lab simulate checkpointing --history prices.csv --job 500m --series m2.2xlarge --plot plots
  ebbtide-lab simulate checkpointing --history prices.csv --job 2h --checkpoint 1m --restart 2m --schemes opt,hour,acc
  ebbtide-lab simulate checkpointing --spiky-markets 12 --job 500m
  ebbtide-lab simulate checkpointing --history prices.csv --job 500m -o json | jq '.summary'";

/// Where prices come from.
#[derive(Debug, Clone, Args)]
pub(in crate::commands) struct HistoryArgs {
    /// Price history: CSV, plain, gzip or zstd
    #[arg(long, value_name = "FILE", required_unless_present = "spiky_markets")]
    pub(in crate::commands) history: Option<PathBuf>,
    /// In place of a file: so many generated markets of a year, with rare high spikes as in 2015
    /// (seeds 1 to N)
    #[arg(long, value_name = "N", conflicts_with = "history", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(in crate::commands) spiky_markets: Option<u32>,
    /// Only series whose name contains this; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(in crate::commands) series: Vec<String>,
    /// The longest time without a row that is no hole in the record
    #[arg(long, value_name = "TIME", default_value = "60d")]
    pub(in crate::commands) max_gap: Hours,
}

/// The length of a generated market, days.
const YEAR: u32 = 365;

impl HistoryArgs {
    /// Where the prices come from, for people.
    pub(in crate::commands) fn words(&self) -> String {
        match (&self.history, self.spiky_markets) {
            (Some(path), _) => path.display().to_string(),
            (None, count) => format!("{} generated markets", count.unwrap_or(0)),
        }
    }

    fn all(&self) -> Result<Vec<Series>, CliError> {
        if let Some(path) = &self.history {
            let text = ebbtide_files::read(path)?;
            return read_series(&text, seconds(self.max_gap)).map_err(|error| in_file(path, error));
        }
        let markets = (1..=self.spiky_markets.unwrap_or(0)).map(|seed| {
            Ok(Series {
                name: format!("spiky-{seed}"),
                history: spiky_market(u64::from(seed), YEAR)?,
                repeated: RepeatedRows::default(),
            })
        });
        markets.collect()
    }
}

/// What checkpoints cost.
#[derive(Debug, Clone, Args)]
pub(in crate::commands) struct CostArgs {
    /// t_c: time that a checkpoint takes; the job stands still meanwhile
    #[arg(long, value_name = "TIME", default_value = "300s")]
    pub(in crate::commands) checkpoint: Hours,
    /// Time from a launch until the job goes on; the first launch has none
    #[arg(long, value_name = "TIME", default_value = "300s")]
    pub(in crate::commands) restart: Hours,
    /// t_w: time that ending an instance takes; ACC decides so much earlier
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub(in crate::commands) terminate: Hours,
}

/// Options of `simulate checkpointing`.
#[derive(Debug, Clone, Args)]
pub struct CheckpointingArgs {
    #[command(flatten)]
    pub(super) history: HistoryArgs,
    /// Length of the job without interruptions and checkpoints
    #[arg(long, value_name = "TIME")]
    pub(super) job: Hours,
    /// Bids in dollars for an hour: 0.401..0.441, or 0.41,0.42,0.5 [default: each series' 5 to 95 %
    /// band]
    #[arg(long, value_name = "BIDS")]
    pub(super) bids: Option<Bids>,
    /// How many bids a range or band is cut into
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(super) bid_count: u32,
    /// Which schemes, with commas between [default: all six]
    #[arg(long, value_name = "SCHEMES", value_delimiter = ',')]
    pub(super) schemes: Vec<SchemeKind>,
    #[command(flatten)]
    pub(super) costs: CostArgs,
    /// Time between two starts of the job
    #[arg(long, value_name = "TIME", default_value = "24h")]
    pub(super) every: Hours,
    /// No start in this time at the end of the history, so that jobs that wait long can end in it
    #[arg(long, value_name = "TIME", default_value = "41d")]
    pub(super) tail: Hours,
    /// S_bid: what ACC bids [default: so much that it is never interrupted]
    #[arg(long, value_name = "PRICE")]
    pub(super) ceiling: Option<Money>,
    /// ACC where the price rose after its checkpoint was due: strict keeps the instance, naive
    /// loses the work
    #[arg(long, value_name = "strict|naive", default_value = "strict", value_parser = reading)]
    pub(super) acc: AccReading,
    /// Time between two decisions of ADAPT
    #[arg(long, value_name = "TIME", default_value = "60m")]
    pub(super) adapt_every: Hours,
    /// What ADAPT has learned from: the past (prices before each launch), or the whole history
    #[arg(long, value_name = "past|whole", default_value = "past", value_parser = knowledge)]
    pub(super) adapt_knows: AdaptKnowledge,
    /// Draw the comparison into this directory, one SVG for each series and one over all
    #[arg(long, value_name = "DIR")]
    pub(super) plot: Option<PathBuf>,
    /// Threads; all cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) threads: Option<u32>,
}

fn reading(text: &str) -> Result<AccReading, String> {
    match text {
        "strict" => Ok(AccReading::Strict),
        "naive" => Ok(AccReading::Naive),
        _ => Err("strict or naive".to_owned()),
    }
}

fn knowledge(text: &str) -> Result<AdaptKnowledge, String> {
    match text {
        "past" => Ok(AdaptKnowledge::Past),
        "whole" => Ok(AdaptKnowledge::Whole),
        _ => Err("past or whole".to_owned()),
    }
}

/// Hours as whole seconds, the unit of prices and charging.
pub(in crate::commands) fn seconds(hours: Hours) -> i64 {
    // What is longer than an i64 has seconds is refused by its own range check.
    (hours.0 * 3600.0).round() as i64
}

/// Reads the histories that were asked for, and says which rows were left out.
///
/// # Errors
/// [`crate::error::LabError::Sim`] for a file that cannot be read, [`CliError::Checkpointing`] for
/// what stands in it, [`CliError::NotFound`] for a series that is not in it.
pub(in crate::commands) fn read(
    context: &mut Context,
    args: &HistoryArgs,
) -> Result<Vec<Series>, CliError> {
    let mut series = args.all()?;
    for wanted in &args.series {
        if !series.iter().any(|one| one.name.contains(wanted)) {
            return Err(CliError::NotFound {
                what: "series",
                name: wanted.clone(),
                place: format!(" in {}", args.words()),
                next: "without --series all of them are taken; their names are the columns beside time and price, joined by dots",
            });
        }
    }
    if !args.series.is_empty() {
        series.retain(|one| args.series.iter().any(|wanted| one.name.contains(wanted)));
    }
    for one in &series {
        if let (count, Some(line)) = (one.repeated.count, one.repeated.first_line) {
            let name = match one.name.as_str() {
                "" => String::new(),
                name => format!("{name}: "),
            };
            let rows = if count == 1 { "row is" } else { "rows are" };
            context.output.say(&format!(
                "note: {name}{count} {rows} the same as the row before and left out; the first is line {line}"
            ));
        }
    }
    Ok(series)
}

fn in_file(path: &Path, error: CheckpointingError) -> CliError {
    CliError::Checkpointing {
        place: format!("{}: ", path.display()),
        error,
    }
}

impl CheckpointingArgs {
    fn terms(&self) -> CheckpointTerms {
        CheckpointTerms {
            checkpoint_seconds: seconds(self.costs.checkpoint),
            restart_seconds: seconds(self.costs.restart),
            terminate_seconds: seconds(self.costs.terminate),
            ceiling: self.ceiling,
            reading: self.acc,
            adapt: Adapt {
                every_seconds: seconds(self.adapt_every),
                knowledge: self.adapt_knows,
            },
        }
    }

    fn starts(&self) -> Starts {
        Starts {
            every_seconds: seconds(self.every),
            tail_seconds: seconds(self.tail),
        }
    }

    fn kinds(&self) -> Vec<SchemeKind> {
        if self.schemes.is_empty() {
            return SchemeKind::ALL.to_vec();
        }
        // In the order of the paper, none twice.
        let all = SchemeKind::ALL.into_iter();
        all.filter(|kind| self.schemes.contains(kind)).collect()
    }

    fn bids(&self, history: &PriceHistory) -> Vec<Money> {
        self.bids.as_ref().map_or_else(
            || Bids::band(history, self.bid_count),
            |bids| bids.list(self.bid_count),
        )
    }
}

/// Simulates and shows.
pub(super) fn run(context: &mut Context, args: &CheckpointingArgs) -> Result<(), CliError> {
    args.terms().checked()?;
    let series = read(context, &args.history)?;
    if let Some(directory) = &args.plot {
        ebbtide_files::create_directory(directory)?;
    }
    let swept = sweep::all(context, args, &series)?;
    swept.possible(args)?;
    if let Some(directory) = &args.plot {
        charts::write(context, args, directory, &series, &swept)?;
    }
    tables::all(context, args, &swept)
}
