//! `ebbtide billing`: what each instance-hour was charged.
//!
//! Sums are the region's (`Market/ListBills`). Single hours are worked out from the lives and
//! prices that the region has written down, by the same rule of `ebbtide-market`: the price is
//! fixed when an hour begins, the last partial hour is free if the provider ends a preemptible
//! instance, and charged in full if its owner does.

use clap::{Args, Subcommand};
use ebbtide_client::Region;
use ebbtide_client::pages;
use ebbtide_files::FileError;
use ebbtide_market::PriceLine;
use ebbtide_market::billing::{BillableLife, BilledHour, Charge, hours};
use ebbtide_model::names::shown_cell;
use ebbtide_model::{FlavorId, LifeEnd, Money, PricePoint, Timestamp};
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::globals::ProjectScope;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Listing, TableCell, number, text};
use ebbtide_shell::render::{Tone, when};
use ebbtide_shell::time_argument::{parse_time, rfc3339};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use time::OffsetDateTime;

const RULE: &str = "\
The price of an hour is fixed when it begins. The last partial hour is free if the provider ends a
preemptible instance, and charged in full if its owner does. Of instances that run, hours that are over
are there. Sums are exact. An hour belongs to the time in which it began.";
const HOURS: &str = "\
Examples:
  ebbtide billing hours --from 2026-11-01 --to 2026-12-01 --csv november.csv
  ebbtide billing hours --all-projects -o json | jq 'map(select(.charge == \"ended-by-provider\"))'";
const TOTAL: &str = "\
Examples:
  ebbtide billing total --from 2026-11-01 --to 2026-12-01
  ebbtide billing total --all-projects -o json";

/// What can be asked about bills.
#[derive(Debug, Clone, Subcommand)]
pub enum BillingCommand {
    /// One row for each instance-hour
    #[command(before_help = RULE, after_help = HOURS)]
    Hours {
        /// Which
        #[command(flatten)]
        which: HoursFilter,
        /// Write them into this file instead of showing them
        #[arg(long, value_name = "FILE")]
        csv: Option<PathBuf>,
    },
    /// Sums by project and flavor
    #[command(before_help = RULE, after_help = TOTAL)]
    Total {
        /// Which
        #[command(flatten)]
        which: HoursFilter,
    },
}

/// Which hours.
#[derive(Debug, Clone, Args)]
pub struct HoursFilter {
    /// Whose
    #[command(flatten)]
    pub scope: ProjectScope,
    /// Hours that began at this time or later: 2026-11-01, or 2026-11-01T10:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub from: Option<OffsetDateTime>,
    /// Hours that began before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub to: Option<OffsetDateTime>,
}

/// An instance whose hours are billed.
struct Instance {
    id: String,
    name: String,
    project: String,
    flavor: String,
    billed: BillableLife,
}

/// An hour and whose it is.
struct Row<'i> {
    of: &'i Instance,
    hour: BilledHour,
}

/// Does it.
///
/// # Errors
/// What the region says, or what keeps a file from being written.
pub async fn run(context: &mut Context, command: BillingCommand) -> Result<(), CliError> {
    let region = context.region().await?;
    match command {
        BillingCommand::Hours { which, csv } => hours_of(context, region, &which, csv).await,
        BillingCommand::Total { which } => show_total(context, region, &which).await,
    }
}

async fn hours_of(
    context: &mut Context,
    mut region: Region,
    which: &HoursFilter,
    csv: Option<PathBuf>,
) -> Result<(), CliError> {
    let now = millis(context.output.now());
    let instances = instances(context, &mut region, which).await?;
    let lines = lines(&mut region, which.to).await?;
    let (from, to) = (which.from.map(millis), which.to.map(millis));
    let mut rows = Vec::new();
    for of in &instances {
        let all = hours(&of.billed, lines.get(&of.flavor), now);
        let wanted = all.filter(|hour| {
            from.is_none_or(|from| hour.from >= from) && to.is_none_or(|to| hour.from < to)
        });
        rows.extend(wanted.map(|hour| Row { of, hour }));
    }
    rows.sort_by(|a, b| (a.hour.from, &a.of.id).cmp(&(b.hour.from, &b.of.id)));
    let unknown = rows
        .iter()
        .filter(|r| r.hour.charge == Charge::PriceUnknown);
    say_unknown(context, unknown.count() as u64);
    let Some(path) = csv else {
        return show_hours(context, &rows);
    };
    write_csv(&path, &rows)?;
    context.output.say(&format!("wrote {}", path.display()));
    Ok(())
}

fn say_unknown(context: &mut Context, hours: u64) {
    if hours > 0 {
        context.output.say(&format!(
            "{hours} hours began when prices were not written down any more (database.keep_days): nothing is charged for them"
        ));
    }
}

fn millis(at: OffsetDateTime) -> Timestamp {
    Timestamp::from_millis(i64::try_from(at.unix_timestamp_nanos() / 1_000_000).unwrap_or(i64::MAX))
}

/// Prices over time, by flavor. What was published before the time counts, too: an hour has the
/// last price before it.
async fn lines(
    region: &mut Region,
    to: Option<OffsetDateTime>,
) -> Result<BTreeMap<String, PriceLine>, CliError> {
    let mut points: BTreeMap<String, Vec<PricePoint>> = BTreeMap::new();
    let wanted = v1::ListPriceHistoryRequest {
        before: to.map(rfc3339).unwrap_or_default(),
        ..Default::default()
    };
    // The latest first; of two of one moment the later in the list counts.
    for record in pages::price_changes(region, wanted)
        .await?
        .into_iter()
        .rev()
    {
        let (Ok(at), Ok(price)) = (record.at.parse(), record.price.parse()) else {
            continue;
        };
        let point = PricePoint {
            flavor_id: FlavorId(uuid::Uuid::nil()),
            flavor: record.flavor.clone(),
            at,
            price,
            supply: record.supply,
            demand: record.demand,
        };
        points.entry(record.flavor).or_default().push(point);
    }
    let lines = points.into_iter();
    Ok(lines
        .map(|(flavor, points)| (flavor, PriceLine::new(&points)))
        .collect())
}

async fn instances(
    context: &Context,
    region: &mut Region,
    which: &HoursFilter,
) -> Result<Vec<Instance>, CliError> {
    let project = which.scope.project(context);
    let mut all = Vec::new();
    let prices = region.market.list_prices(v1::ListPricesRequest {}).await?;
    let prices = prices.into_inner().prices.into_iter();
    let bases: BTreeMap<String, String> = prices.map(|p| (p.flavor, p.price_per_hour)).collect();
    for server in pages::servers(region, &project).await? {
        all.extend(running(&server, &bases));
    }
    let wanted = v1::ListLivesRequest {
        project_id: project,
        ended_from: which.from.map(rfc3339).unwrap_or_default(),
        launched_before: which.to.map(rfc3339).unwrap_or_default(),
        ..Default::default()
    };
    let lives = pages::lives(region, wanted).await?;
    all.extend(lives.iter().filter_map(over));
    Ok(all)
}

fn running(server: &v1::Server, bases: &BTreeMap<String, String>) -> Option<Instance> {
    let launched_at = server
        .launched_at
        .parse()
        .ok()
        .filter(|_| pages::runs(server))?;
    let base = bases.get(&server.flavor_name).and_then(|p| p.parse().ok());
    Some(Instance {
        id: server.id.clone(),
        name: server.name.clone(),
        project: server.project_id.clone(),
        flavor: server.flavor_name.clone(),
        billed: BillableLife {
            launched_at,
            ended: None,
            preemptible: server.preemptible,
            price_per_hour: base.unwrap_or_default(),
        },
    })
}

fn over(life: &v1::Life) -> Option<Instance> {
    let end: LifeEnd = life.end.parse().ok()?;
    Some(Instance {
        id: life.server_id.clone(),
        name: life.name.clone(),
        project: life.project_id.clone(),
        flavor: life.flavor.clone(),
        billed: BillableLife {
            launched_at: life.launched_at.parse().ok()?,
            ended: Some((life.ended_at.parse().ok()?, end)),
            preemptible: life.preemptible,
            price_per_hour: life.price_per_hour.parse().ok()?,
        },
    })
}

const COLUMNS: [&str; 10] = [
    "project_id",
    "server_id",
    "name",
    "flavor",
    "hour",
    "from",
    "to",
    "price",
    "charged",
    "charge",
];

impl Row<'_> {
    fn price(&self) -> String {
        let known = self.hour.price;
        known
            .map(|price: Money| price.to_string())
            .unwrap_or_default()
    }

    fn texts(&self) -> [String; 10] {
        [
            self.of.project.clone(),
            self.of.id.clone(),
            self.of.name.clone(),
            self.of.flavor.clone(),
            self.hour.number.to_string(),
            self.hour.from.to_string(),
            self.hour.to.to_string(),
            self.price(),
            self.hour.charged.to_string(),
            self.hour.charge.as_str().to_owned(),
        ]
    }

    fn json(&self) -> Json {
        let texts = self.texts();
        let pairs = COLUMNS
            .into_iter()
            .zip(texts)
            .map(|(key, value)| match key {
                "hour" => (key, Json::from(self.hour.number)),
                _ => (key, Json::from(value.as_str())),
            });
        Json::object(pairs)
    }
}

fn write_csv(path: &Path, rows: &[Row<'_>]) -> Result<(), CliError> {
    let failed = |error: csv::Error| {
        CliError::from(FileError::Write {
            path: path.to_owned(),
            problem: error.to_string(),
        })
    };
    let mut file = csv::Writer::from_path(path).map_err(failed)?;
    file.write_record(COLUMNS).map_err(failed)?;
    for row in rows {
        // None of its numbers is negative: whatever begins like a formula is a text.
        let texts = row.texts();
        let cells = texts.iter().map(|text| shown_cell(text).into_owned());
        file.write_record(cells).map_err(failed)?;
    }
    file.flush().map_err(|error| failed(error.into()))
}

fn show_hours(context: &mut Context, rows: &[Row<'_>]) -> Result<(), CliError> {
    let now = context.output.now();
    let row = |r: &Row<'_>| {
        let tone = match r.hour.charge {
            Charge::EndedByProvider => Tone::Good,
            Charge::PriceUnknown => Tone::Bad,
            Charge::Full | Charge::EndedByOwner => Tone::Plain,
        };
        vec![
            TableCell::new(&r.of.project),
            TableCell::new(&r.of.name).value(&r.of.id),
            TableCell::new(&r.of.flavor),
            TableCell::new(r.hour.number),
            when(&r.hour.from.to_string(), now),
            TableCell::new(r.price()),
            TableCell::new(r.hour.charged),
            TableCell::new(r.hour.charge.as_str()).tone(tone),
        ]
    };
    context.output.listing(Listing {
        columns: vec![
            text("project_id", "Project"),
            text("server_id", "Server"),
            text("flavor", "Flavor"),
            number("hour", "Hour"),
            text("from", "From").detail(1),
            number("price", "Price"),
            number("charged", "Charged"),
            text("charge", "Why"),
        ],
        rows: rows.iter().map(row).collect(),
        json: Json::List(rows.iter().map(Row::json).collect()),
        none: "no instance-hours",
    })
}

async fn show_total(
    context: &mut Context,
    mut region: Region,
    which: &HoursFilter,
) -> Result<(), CliError> {
    let request = v1::ListBillsRequest {
        project_id: which.scope.project(context),
        from: which.from.map(rfc3339).unwrap_or_default(),
        before: which.to.map(rfc3339).unwrap_or_default(),
    };
    let v1::ListBillsResponse { bills, charged } =
        region.market.list_bills(request).await?.into_inner();
    say_unknown(context, bills.iter().map(|bill| bill.unknown_hours).sum());
    let row = |bill: &v1::Bill| {
        vec![
            TableCell::new(&bill.project_id),
            TableCell::new(&bill.flavor),
            TableCell::new(bill.charged_hours),
            TableCell::new(free(bill)),
            TableCell::new(&bill.charged).tone(Tone::Strong),
        ]
    };
    let json = |bill: &v1::Bill| {
        Json::object([("project_id", Json::from(bill.project_id.as_str()))])
            .with("flavor", bill.flavor.as_str())
            .with("charged_hours", bill.charged_hours)
            .with("free_hours", free(bill))
            .with("charged", bill.charged.as_str())
    };
    let mut rows: Vec<_> = bills.iter().map(row).collect();
    if bills.len() > 1 {
        let charged_hours = bills.iter().map(|bill| bill.charged_hours).sum();
        let unknown_hours = bills.iter().map(free).sum();
        rows.push(row(&v1::Bill {
            project_id: "all".to_owned(),
            charged_hours,
            unknown_hours,
            charged,
            ..v1::Bill::default()
        }));
    }
    context.output.listing(Listing {
        columns: vec![
            text("project_id", "Project"),
            text("flavor", "Flavor"),
            number("charged_hours", "Hours charged"),
            number("free_hours", "Hours free"),
            number("charged", "Charged"),
        ],
        rows,
        json: Json::List(bills.iter().map(json).collect()),
        none: "no instance-hours",
    })
}

/// Hours that cost nothing, for whichever reason.
fn free(bill: &v1::Bill) -> u64 {
    bill.free_hours + bill.unknown_hours
}
