//! `ebbtide price`: what an instance-hour costs, now and before.

use clap::{Args, Subcommand};
use ebbtide_chart::{Axis, Colour, Figure, LineLayer, Panel};
use ebbtide_client::Region;
use ebbtide_client::pages;
use ebbtide_files::FileError;
use ebbtide_model::names::shown_cell;
use ebbtide_model::{Money, Timestamp};
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::charts;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::{self, Json};
use ebbtide_shell::output::{Listing, TableCell, number, text};
use ebbtide_shell::render::{Tone, when, yes};
use ebbtide_shell::time_argument::{parse_time, rfc3339};
use std::path::{Path, PathBuf};
use time::OffsetDateTime;

const LIST: &str = "\
Prices of preemptible flavors follow supply and demand where the operator has switched the market on
(region.market); otherwise they are what flavors say.

Examples:
  ebbtide price list
  ebbtide price list -o json | jq -r '.[] | [.flavor, .price] | @tsv'";
const HISTORY: &str = "\
One row for each change, the latest first. The CSV is what `ebbtide-lab simulate checkpointing --history` and
`ebbtide-lab plan bid` read: the price is repeated every quarter of an hour, so that it has no gaps.

Examples:
  ebbtide price history spot.small --since 2026-11-01
  ebbtide price history spot.small --svg prices.svg
  ebbtide price history spot.small --csv prices.csv      # then: ebbtide-lab plan bid, simulate checkpointing --history";
/// How often a price that does not change is said again in a file.
const REPEAT_MILLIS: i64 = 900_000;

/// What can be asked about prices.
#[derive(Debug, Clone, Subcommand)]
pub enum PriceCommand {
    /// What an hour of each flavor costs now
    #[command(after_help = LIST)]
    List,
    /// What it cost before
    #[command(after_help = HISTORY)]
    History(HistoryArgs),
}

/// Options of `price history`.
#[derive(Debug, Clone, Args)]
pub struct HistoryArgs {
    /// The flavor's name
    pub flavor: String,
    /// Only from this time on: 2026-05-04, or with a time of day as 2026-05-04T10:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub since: Option<OffsetDateTime>,
    /// Only before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub until: Option<OffsetDateTime>,
    /// Write the prices into this file, for the commands that plan by them
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draw price, supply and demand into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Does it.
///
/// # Errors
/// What the region says, or what keeps a file from being written.
pub async fn run(context: &mut Context, command: PriceCommand) -> Result<(), CliError> {
    let mut region = context.region().await?;
    match command {
        PriceCommand::List => list(context, &mut region).await,
        PriceCommand::History(args) => history(context, &mut region, &args).await,
    }
}

async fn list(context: &mut Context, region: &mut Region) -> Result<(), CliError> {
    let answer = region.market.list_prices(v1::ListPricesRequest {}).await?;
    let answer = answer.into_inner();
    let now = context.output.now();
    let row = |p: &v1::FlavorPrice| {
        vec![
            TableCell::new(&p.flavor),
            yes(p.preemptible),
            TableCell::new(&p.price).tone(Tone::Strong),
            TableCell::new(&p.price_per_hour),
            TableCell::new(&p.floor),
            TableCell::new(&p.ceiling),
            when(&p.since, now),
            TableCell::new(p.supply),
            TableCell::new(p.demand),
        ]
    };
    context.output.listing(Listing {
        columns: vec![
            text("flavor", "Flavor"),
            text("preemptible", "Preemptible"),
            number("price", "Price of an hour"),
            number("price_per_hour", "By flavor"),
            number("floor", "Floor"),
            number("ceiling", "Ceiling"),
            text("since", "Since").detail(3),
            number("supply", "Places").detail(2),
            number("demand", "Wanted").detail(2),
        ],
        rows: answer.prices.iter().map(row).collect(),
        json: json::list(&answer.prices),
        none: "no flavor says what it costs (`ebbtide flavor create --price`)",
    })?;
    if !answer.market {
        context
            .output
            .say("there is no market: prices are what flavors say");
    }
    Ok(())
}

async fn history(
    context: &mut Context,
    region: &mut Region,
    args: &HistoryArgs,
) -> Result<(), CliError> {
    let wanted = v1::ListPriceHistoryRequest {
        flavor: args.flavor.clone(),
        from: args.since.map(rfc3339).unwrap_or_default(),
        before: args.until.map(rfc3339).unwrap_or_default(),
        ..Default::default()
    };
    let mut changes = pages::price_changes(region, wanted).await?;
    changes.reverse();
    let now = context.output.now();
    if changes.is_empty() {
        // A misspelt name has no history either.
        let id = args.flavor.clone();
        region.admin.get_flavor(v1::GetFlavorRequest { id }).await?;
    }
    if let Some(path) = &args.csv {
        let until = args.until.unwrap_or(now).min(now);
        write_csv(path, &args.flavor, &changes, args.since, until)?;
        context.output.say(&format!("wrote {}", path.display()));
    }
    if let Some(path) = &args.svg {
        charts::write(context, path, &figure(&args.flavor, &changes, now))?;
    }
    // What it cost before there was a market is no change.
    let shown: Vec<&v1::PriceRecord> = changes.iter().rev().filter(|c| !is_before_all(c)).collect();
    let row = |p: &&v1::PriceRecord| {
        vec![
            when(&p.at, now),
            TableCell::new(&p.price).tone(Tone::Strong),
            TableCell::new(p.supply),
            TableCell::new(p.demand),
        ]
    };
    context.output.listing(Listing {
        columns: vec![
            text("at", "From"),
            number("price", "Price of an hour"),
            number("supply", "Places"),
            number("demand", "Wanted"),
        ],
        rows: shown.iter().map(row).collect(),
        json: Json::List(shown.iter().map(|p| json::message(*p)).collect()),
        none: "its price has never changed (`ebbtide price list` has what it costs)",
    })
}

fn is_before_all(record: &v1::PriceRecord) -> bool {
    millis(&record.at) == Some(0)
}

fn millis(at: &str) -> Option<i64> {
    at.parse::<Timestamp>().ok().map(Timestamp::as_millis)
}

/// Steps from a time until another, each repeated so that no reader takes silence for a hole.
fn steps(
    changes: &[v1::PriceRecord],
    since: Option<OffsetDateTime>,
    until: OffsetDateTime,
) -> Vec<(i64, Money)> {
    let millis_of =
        |at: OffsetDateTime| i64::try_from(at.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
    let (since, until) = (since.map(millis_of), millis_of(until));
    let known = changes.iter().filter(|c| !is_before_all(c));
    let known = known.filter_map(|c| Some((millis(&c.at)?, c.price.parse().ok()?)));
    let known: Vec<(i64, Money)> = known.collect();
    let mut steps = Vec::new();
    for (place, (at, price)) in known.iter().enumerate() {
        let end = known.get(place + 1).map_or(until, |(next, _)| *next);
        let mut at = since.map_or(*at, |since| since.max(*at));
        while at < end {
            steps.push((at, *price));
            at += REPEAT_MILLIS;
        }
    }
    if let Some((_, price)) = known.last() {
        steps.push((until, *price));
    }
    // Files count in seconds: of several changes within one the last counts.
    steps.reverse();
    steps.dedup_by_key(|(at, _)| *at / 1000);
    steps.reverse();
    steps
}

fn write_csv(
    path: &Path,
    flavor: &str,
    changes: &[v1::PriceRecord],
    since: Option<OffsetDateTime>,
    until: OffsetDateTime,
) -> Result<(), CliError> {
    let failed = |error: csv::Error| {
        CliError::from(FileError::Write {
            path: path.to_owned(),
            problem: error.to_string(),
        })
    };
    let mut file = csv::Writer::from_path(path).map_err(failed)?;
    file.write_record(["flavor", "unix_ts_utc", "price_usd_per_hour"])
        .map_err(failed)?;
    for (at, price) in steps(changes, since, until) {
        let row = [
            shown_cell(flavor).into_owned(),
            (at / 1000).to_string(),
            price.to_string(),
        ];
        file.write_record(row).map_err(failed)?;
    }
    file.flush().map_err(|error| failed(error.into()))
}

fn figure(flavor: &str, changes: &[v1::PriceRecord], now: OffsetDateTime) -> Figure {
    let known = changes.iter().filter(|c| !is_before_all(c));
    let known: Vec<(f64, &v1::PriceRecord)> = known
        .filter_map(|c| Some((millis(&c.at)? as f64 / 1000.0, c)))
        .collect();
    let until = now.unix_timestamp() as f64;
    let line = |value: &dyn Fn(&v1::PriceRecord) -> f64| {
        let mut points: Vec<(f64, f64)> = known.iter().map(|(at, c)| (*at, value(c))).collect();
        if let Some((_, last)) = points.last().copied() {
            points.push((until, last));
        }
        points
    };
    let price = |c: &v1::PriceRecord| {
        let exact: Money = c.price.parse().unwrap_or_default();
        exact.micros() as f64 / 1e6
    };
    let money = Panel::new(
        Axis::new("time, UTC").dates(),
        Axis::new("price of an hour").from(0.0),
    )
    .with(
        LineLayer::new("price", line(&price))
            .steps()
            .colour(Colour::BLUE),
    );
    let places = Panel::new(
        Axis::new("time, UTC").dates(),
        Axis::new("places").from(0.0),
    )
    .with(
        LineLayer::new("there are", line(&|c| c.supply as f64))
            .steps()
            .colour(Colour::GREY),
    )
    .with(
        LineLayer::new("wanted", line(&|c| c.demand as f64))
            .steps()
            .colour(Colour::VERMILION),
    );
    Figure::new(format!("Price of {flavor}"))
        .description("The price of an instance-hour over time, with supply and demand")
        .panel(money)
        .panel(places)
        .columns(1)
}
