//! `ebbtide-manage upgrade check`: whether a scheduler would start and work with this nova.conf.

use crate::error::ManageError;
use clap::{Args, Subcommand};
use ebbtide_nova_service::upgrade_check::{self, CheckResult, Verdict};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Listing, TableCell, text};
use ebbtide_shell::render::Tone;
use indicatif::ProgressBar;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
As `nova-status upgrade check`: run it before nova-scheduler is replaced, and before each upgrade.
It reads Nova's databases, Placement, the message broker, the ledger and the queues of the agents
with the credentials of nova.conf, and changes nothing.

Exit code 0 if all is ready, 1 for warnings, 2 for failures: a scheduler would not start, or not
work.

Examples:
  ebbtide-manage upgrade check
  ebbtide-manage upgrade check --config-file /etc/nova/nova.conf
  ebbtide-manage upgrade check -o json | jq -r '.[] | select(.result != \"success\") | .next'";

/// How often the line that shows progress moves.
const TICK: Duration = Duration::from_millis(120);

/// The commands under `upgrade`.
#[derive(Debug, Subcommand)]
pub enum UpgradeCommand {
    /// Check configuration, databases, broker, agents and flavors before a switch or an upgrade
    Check(CheckArgs),
}

/// Options of `upgrade check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    /// nova.conf of the cloud; several are read as Nova reads them [default: where Nova looks]
    #[arg(long, value_name = "FILE")]
    pub config_file: Vec<PathBuf>,
    /// A folder with more of it
    #[arg(long, value_name = "DIR")]
    pub config_dir: Vec<PathBuf>,
}

/// Runs a command of `upgrade`.
///
/// # Errors
/// Those of nova.conf; [`ManageError::NotReady`] if not all parts are ready.
pub async fn run(context: &mut Context, command: UpgradeCommand) -> Result<(), CliError> {
    let UpgradeCommand::Check(args) = command;
    let conf = ebbtide_nova_service::read_conf(&args.config_file, &args.config_dir)
        .map_err(ManageError::NovaService)?;
    let bar = match context.output.may_draw() {
        true => ProgressBar::new_spinner()
            .with_message("waiting for Nova's databases, Placement and the broker"),
        false => ProgressBar::hidden(),
    };
    bar.enable_steady_tick(TICK);
    let answered = |part: &str| bar.set_message(format!("{part} has answered"));
    let facts = Box::pin(upgrade_check::read(&conf, answered)).await;
    bar.finish_and_clear();
    let results = upgrade_check::judge(&facts);
    show(context, &results)?;
    let of = |verdict| results.iter().filter(|r| r.result == verdict).count();
    match (of(Verdict::Failure), of(Verdict::Warning)) {
        (0, 0) => Ok(()),
        (failures, warnings) => Err(ManageError::NotReady { failures, warnings }.into()),
    }
}

fn show(context: &mut Context, results: &[CheckResult]) -> Result<(), CliError> {
    let rows = results.iter().map(|result| {
        let (word, tone) = match result.result {
            Verdict::Success => ("success", Tone::Good),
            Verdict::Warning => ("warning", Tone::Warn),
            Verdict::Failure => ("failure", Tone::Bad),
        };
        vec![
            TableCell::new(result.check),
            TableCell::new(word).tone(tone),
            TableCell::new(&result.details),
            TableCell::new(result.next.unwrap_or_default()),
        ]
    });
    let json = results.iter().map(|result| {
        let next = result.next.map_or(Json::Null, Json::from);
        let word = match result.result {
            Verdict::Success => "success",
            Verdict::Warning => "warning",
            Verdict::Failure => "failure",
        };
        Json::object([
            ("check", Json::from(result.check)),
            ("result", Json::from(word)),
            ("details", Json::from(result.details.clone())),
            ("next", next),
        ])
    });
    context.output.listing(Listing {
        columns: vec![
            text("check", "CHECK"),
            text("result", "RESULT"),
            text("details", "DETAILS"),
            text("next", "NEXT"),
        ],
        rows: rows.collect(),
        json: Json::List(json.collect()),
        none: "",
    })
}
