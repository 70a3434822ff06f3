//! `ebbtide audit`: what Placement, Nova and the ledger say, held against each other.

use crate::Context;
use crate::errors::CliError;
use crate::json::Json;
use crate::output::{Cell, Listing, text};
use crate::render::Tone;
use clap::Args;
use ebbtide_nova_door::audit::{self, Report};
use indicatif::ProgressBar;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Reads the ledger of preemptions, Nova's databases and Placement, with the credentials of nova.conf, and names
every disagreement with a code (docs/errors.md) and what to do. It changes nothing. What is under way (a server with a
task, a migration, a victim) is not judged; in a busy cloud run it again before you act. Exit code 1 if there is any.

Examples:
  ebbtide audit --config-file /etc/nova/nova.conf
  ebbtide audit --config-file /etc/nova/nova.conf -o json | jq '.findings[] | {code, subject}'";

/// Options of `audit`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AuditArgs {
    /// nova.conf of a cloud that Ebbtide schedules; several are read as Nova reads them
    #[arg(long, value_name = "FILE", required = true)]
    pub config_file: Vec<PathBuf>,
    /// A folder with more of it
    #[arg(long, value_name = "DIR")]
    pub config_dir: Vec<PathBuf>,
}

/// Asks, looks and shows.
///
/// # Errors
/// [`CliError::Door`] if one of them cannot be read, [`CliError::Disagrees`] if something is found.
pub async fn run(context: &mut Context, args: AuditArgs) -> Result<(), CliError> {
    let conf = ebbtide_nova_door::read_conf(&args.config_file, &args.config_dir)?;
    let bar = if context.output.may_draw() {
        ProgressBar::new(0).with_message("compute nodes")
    } else {
        ProgressBar::hidden()
    };
    let picture = audit::read(&conf, |done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    })
    .await;
    bar.finish_and_clear();
    let report = audit::compare(&picture?);
    show(context, &report)?;
    if report.findings.is_empty() {
        return Ok(());
    }
    let count = report.findings.len();
    Err(CliError::Disagrees(format!("{count} disagreements")))
}

fn show(context: &mut Context, report: &Report) -> Result<(), CliError> {
    let looked = format!(
        "{} compute nodes, {} servers, {} consumers, {} preemptions under way",
        report.hosts, report.servers, report.consumers, report.preemptions
    );
    context.output.say(&looked);
    let rows = report.findings.iter().map(|found| {
        vec![
            Cell::new(found.code).tone(Tone::Bad),
            Cell::new(&found.subject),
            Cell::new(&found.what),
            Cell::new(found.next),
        ]
    });
    let findings = report.findings.iter().map(|found| {
        Json::object([
            ("code", Json::from(found.code)),
            ("subject", Json::from(found.subject.clone())),
            ("what", Json::from(found.what.clone())),
            ("next", Json::from(found.next)),
        ])
    });
    let json = Json::object([
        ("hosts", Json::from(report.hosts as u64)),
        ("servers", Json::from(report.servers as u64)),
        ("consumers", Json::from(report.consumers as u64)),
        ("preemptions", Json::from(report.preemptions as u64)),
        ("findings", Json::List(findings.collect())),
    ]);
    context.output.listing(Listing {
        columns: vec![
            text("code", "CODE"),
            text("subject", "SUBJECT"),
            text("what", "WHAT"),
            text("next", "NEXT"),
        ],
        rows: rows.collect(),
        json,
        none: "All agree.",
    })
}
