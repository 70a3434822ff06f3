//! `ebbtide-manage shadow report`: what a scheduler beside nova-scheduler would have decided.

use crate::error::ManageError;
use clap::{Args, Subcommand};
use ebbtide_model::{ComparisonVerdict, IdleHour, Timestamp};
use ebbtide_nova_service::{IdleFlavor, ReasonCount, ShadowReport};
use ebbtide_runtime::clock;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Listing, TableCell, number, text};
use ebbtide_shell::render::Tone;
use std::path::PathBuf;

const EXAMPLES: &str = "\
`ebbtide-scheduler --shadow` runs beside nova-scheduler, decides a copy of each request, and records
its decision beside nova-scheduler's answer. The report says how often both are the same, why not,
how long a decision took, and what could have been sold beside all servers. One decision in detail:
`ebbtide-manage shadow report -o json`, then its request id.

Examples:
  ebbtide-scheduler --config-file /etc/nova/nova.conf --shadow
  ebbtide-manage shadow report --config-file /etc/nova/nova.conf
  ebbtide-manage shadow report --hours 24 -o json | jq '.idle_hours'";

const HOUR_MS: i64 = 3_600_000;

/// The commands under `shadow`.
#[derive(Debug, Subcommand)]
pub enum ShadowCommand {
    /// How often the answers were the same, why not, and what could have been sold
    Report(ReportArgs),
}

/// Options of `shadow report`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// nova.conf of the shadow; several are read as Nova reads them [default: where Nova looks]
    #[arg(long, value_name = "FILE")]
    pub config_file: Vec<PathBuf>,
    /// A folder with more of it
    #[arg(long, value_name = "DIR")]
    pub config_dir: Vec<PathBuf>,
    /// Only the last so many hours
    #[arg(
        long,
        value_name = "HOURS",
        default_value_t = 168,
        value_parser = clap::value_parser!(u32).range(1..=8760)
    )]
    pub hours: u32,
}

/// Runs a command of `shadow`.
///
/// # Errors
/// Those of nova.conf and of its database.
pub async fn run(context: &mut Context, command: ShadowCommand) -> Result<(), CliError> {
    let ShadowCommand::Report(args) = command;
    let conf = ebbtide_nova_service::read_conf(&args.config_file, &args.config_dir)
        .map_err(ManageError::NovaService)?;
    let now = clock::now();
    let before = Timestamp::from_millis(now.as_millis() + 1);
    let from = Timestamp::from_millis(now.as_millis() - i64::from(args.hours) * HOUR_MS);
    let report = Box::pin(ShadowReport::read(&conf, from, before)).await;
    show(context, &report.map_err(ManageError::NovaService)?)
}

fn show(context: &mut Context, report: &ShadowReport) -> Result<(), CliError> {
    for line in summary(report) {
        context.output.say(&line);
    }
    if !report.idle.is_empty() {
        context
            .output
            .say("Could have been sold beside all servers, by flavor (they share the room):");
        for line in idle_lines(&report.idle) {
            context.output.say(&line);
        }
    }
    let rows = report.reasons.iter().map(|reason| {
        let tone = match reason.verdict {
            ComparisonVerdict::NovaOnly | ComparisonVerdict::Different => Tone::Bad,
            ComparisonVerdict::EbbtideOnly => Tone::Good,
            _ => Tone::Warn,
        };
        vec![
            TableCell::new(reason.verdict.as_str()).tone(tone),
            TableCell::new(reason.count.to_string()),
            TableCell::new(reason.beside_others.to_string()),
            TableCell::new(&reason.example_reason),
            TableCell::new(&reason.example),
        ]
    });
    context.output.listing(Listing {
        columns: vec![
            text("verdict", "VERDICT"),
            number("count", "COUNT"),
            number("beside_others", "BESIDE OTHERS"),
            text("example_reason", "WHY (THE LATEST)"),
            text("example", "REQUEST"),
        ],
        rows: rows.collect(),
        json: json(report),
        none: match report.requests {
            0 => "Nothing to compare.",
            _ => "All answers were the same.",
        },
    })
}

/// The sentences above the table.
fn summary(report: &ShadowReport) -> Vec<String> {
    if report.requests == 0 {
        let none = "No request was seen. Does `ebbtide-scheduler --shadow` run?";
        return vec![none.to_owned()];
    }
    let compared = report.requests - report.count(ComparisonVerdict::NotCompared);
    let same = report.count(ComparisonVerdict::Same);
    #[allow(clippy::cast_precision_loss)] // Counts of requests are far below 2^53.
    let share = 100.0 * same as f64 / (compared.max(1)) as f64;
    let mut lines = vec![format!(
        "{} requests, {compared} of them compared: {same} the same ({share:.2} %), {} of these refused by both",
        report.requests, report.refused_by_both
    )];
    if let Some([median, most_of_them, longest]) = report.micros {
        lines.push(format!(
            "A decision took {} ms (median), {} ms (99 %), {} ms (longest)",
            millis(median),
            millis(most_of_them),
            millis(longest)
        ));
    }
    if report.served_by_preemption > 0 {
        lines.push(format!(
            "Preemption would have served {} requests that nova-scheduler refused, with {} victims",
            report.served_by_preemption, report.victims
        ));
    }
    lines
}

fn idle_lines(flavors: &[IdleFlavor]) -> Vec<String> {
    let one = |flavor: &IdleFlavor| {
        format!(
            "  {}: {:.1} server-hours in {} hours ({} to {} servers at a time), with {} preemptions",
            flavor.flavor,
            flavor.server_hours,
            flavor.hours,
            flavor.least,
            flavor.most,
            flavor.preemptions
        )
    };
    flavors.iter().map(one).collect()
}

#[allow(clippy::cast_precision_loss)] // For people.
fn millis(micros: u64) -> String {
    format!("{:.1}", micros as f64 / 1000.0)
}

fn json(report: &ShadowReport) -> Json {
    let verdicts = ComparisonVerdict::ALL.map(|verdict| {
        let count = Json::from(report.count(verdict));
        (verdict.as_str(), count)
    });
    let micros = report.micros.map_or(Json::Null, |[median, p99, longest]| {
        Json::object([
            ("median", Json::from(median)),
            ("p99", Json::from(p99)),
            ("longest", Json::from(longest)),
        ])
    });
    Json::object([
        ("requests", Json::from(report.requests)),
        ("verdicts", Json::object(verdicts)),
        ("refused_by_both", Json::from(report.refused_by_both)),
        (
            "served_by_preemption",
            Json::from(report.served_by_preemption),
        ),
        ("victims", Json::from(report.victims)),
        ("decision_micros", micros),
        (
            "reasons",
            Json::List(report.reasons.iter().map(reason).collect()),
        ),
        ("idle", Json::List(report.idle.iter().map(idle).collect())),
        (
            "idle_hours",
            Json::List(report.idle_hours.iter().map(hour).collect()),
        ),
    ])
}

fn reason(reason: &ReasonCount) -> Json {
    Json::object([
        ("verdict", Json::from(reason.verdict.as_str())),
        ("reason", Json::from(reason.reason.clone())),
        ("count", Json::from(reason.count)),
        ("beside_others", Json::from(reason.beside_others)),
        ("example", Json::from(reason.example.clone())),
        ("example_reason", Json::from(reason.example_reason.clone())),
    ])
}

fn idle(flavor: &IdleFlavor) -> Json {
    Json::object([
        ("flavor", Json::from(flavor.flavor.clone())),
        ("hours", Json::from(flavor.hours)),
        ("server_hours", Json::from(flavor.server_hours)),
        ("least", Json::from(flavor.least)),
        ("most", Json::from(flavor.most)),
        ("preemptions", Json::from(flavor.preemptions)),
    ])
}

fn hour(hour: &IdleHour) -> Json {
    Json::object([
        ("hour", Json::from(hour.hour.to_string())),
        ("flavor", Json::from(hour.flavor.clone())),
        ("samples", Json::from(u64::from(hour.samples))),
        ("server_hours", Json::from(hour.server_hours())),
        ("least", Json::from(hour.least)),
        ("most", Json::from(hour.most)),
        ("preemptions", Json::from(hour.falls)),
    ])
}
