//! `ebbtide billing`: what each instance-hour was charged. Hours and sums are the region's.

use clap::{Args, Subcommand};
use ebbtide_client::Region;
use ebbtide_client::pages;
use ebbtide_files::FileError;
use ebbtide_model::names::shown_cell;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::globals::ProjectScope;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Listing, TableCell, number, text};
use ebbtide_shell::render::{Tone, when};
use ebbtide_shell::time_argument::{parse_time, rfc3339};
use std::path::{Path, PathBuf};
use time::OffsetDateTime;

/// The reason of an hour whose price is not known any more.
const PRICE_UNKNOWN: &str = "price-unknown";
/// The reason of an hour that is free, because the provider ended it.
const ENDED_BY_PROVIDER: &str = "ended-by-provider";

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
    let wanted = v1::ListBilledHoursRequest {
        project_id: which.scope.project(context),
        from: which.from.map(rfc3339).unwrap_or_default(),
        before: which.to.map(rfc3339).unwrap_or_default(),
        ..Default::default()
    };
    let rows = pages::billed_hours(&mut region, wanted).await?;
    let unknown = rows.iter().filter(|row| row.charge == PRICE_UNKNOWN);
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

fn texts(row: &v1::BilledHour) -> [String; 10] {
    let number = row.hour.to_string();
    [
        &row.project_id,
        &row.server_id,
        &row.name,
        &row.flavor,
        &number,
        &row.from,
        &row.to,
        &row.price,
        &row.charged,
        &row.charge,
    ]
    .map(Clone::clone)
}

fn hour_json(row: &v1::BilledHour) -> Json {
    let pairs = COLUMNS
        .into_iter()
        .zip(texts(row))
        .map(|(key, value)| match key {
            "hour" => (key, Json::from(row.hour)),
            _ => (key, Json::from(value.as_str())),
        });
    Json::object(pairs)
}

fn write_csv(path: &Path, rows: &[v1::BilledHour]) -> Result<(), CliError> {
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
        let texts = texts(row);
        let cells = texts.iter().map(|text| shown_cell(text).into_owned());
        file.write_record(cells).map_err(failed)?;
    }
    file.flush().map_err(|error| failed(error.into()))
}

fn show_hours(context: &mut Context, rows: &[v1::BilledHour]) -> Result<(), CliError> {
    let now = context.output.now();
    let row = |r: &v1::BilledHour| {
        let tone = match r.charge.as_str() {
            ENDED_BY_PROVIDER => Tone::Good,
            PRICE_UNKNOWN => Tone::Bad,
            _ => Tone::Plain,
        };
        vec![
            TableCell::new(&r.project_id),
            TableCell::new(&r.name).value(&r.server_id),
            TableCell::new(&r.flavor),
            TableCell::new(r.hour),
            when(&r.from, now),
            TableCell::new(&r.price),
            TableCell::new(&r.charged),
            TableCell::new(&r.charge).tone(tone),
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
        json: Json::List(rows.iter().map(hour_json).collect()),
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
