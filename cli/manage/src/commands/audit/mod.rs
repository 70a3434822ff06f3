//! `ebbtide-manage audit`: what database, memory and agents say, or Placement, Nova and the ledger,
//! held against each other.

mod region;
mod textfile;

use crate::error::ManageError;
use clap::Args;
use ebbtide_nova_service::audit::{self, AuditReport};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Listing, TableCell, text};
use ebbtide_shell::render::Tone;
use indicatif::ProgressBar;
use std::path::PathBuf;
use std::time::Duration;

/// The rest before what was found is looked at once more. Placement takes a write within a second.
const SECOND_LOOK: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Without a file it asks the region: its scheduler holds the database, its own memory and what
the agents said last against each other. With nova.conf it reads the ledger of preemptions, Nova's
databases and Placement, with the credentials there. Every disagreement is named with a code
(docs/reference/errors.md) and what to do. It changes nothing. What is under way (a server that
comes or leaves, a task, a migration) is not judged, and what is found is looked at once more a
second later; in a busy cloud run it again before you act.
Exit code 1 if there is any.

Examples:
  ebbtide-manage audit
  ebbtide-manage audit --config-file /etc/nova/nova.conf
  ebbtide-manage audit --metrics /var/lib/prometheus/node-exporter/ebbtide.prom
  ebbtide-manage audit --config-file /etc/nova/nova.conf -o json | jq '.findings[] | {code, subject}'";

/// Options of `audit`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AuditArgs {
    /// nova.conf of a cloud that Ebbtide schedules; several are read as Nova reads them
    #[arg(long, value_name = "FILE")]
    pub config_file: Vec<PathBuf>,
    /// A folder with more of it
    #[arg(long, value_name = "DIR", requires = "config_file")]
    pub config_dir: Vec<PathBuf>,
    /// Also writes what was found as metrics, for the node exporter's textfile collector
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
}

/// Asks, looks and shows.
///
/// # Errors
/// What the region says; [`ManageError::NovaService`] if one of them cannot be read,
/// [`CliError::Disagrees`] if something is found.
pub async fn run(context: &mut Context, args: AuditArgs) -> Result<(), CliError> {
    if args.config_file.is_empty() {
        return region::run(context, args.metrics.as_deref()).await;
    }
    let conf = ebbtide_nova_service::read_conf(&args.config_file, &args.config_dir)
        .map_err(ManageError::NovaService)?;
    let bar = node_bar(context);
    let mut report = audit::read(&conf, bar.progress())
        .await
        .map(|p| audit::compare(&p));
    if report
        .as_ref()
        .is_ok_and(|report| !report.findings.is_empty())
    {
        // The three are not read at one moment: what is true a little later, too, is no step that
        // was seen half done.
        tokio::time::sleep(SECOND_LOOK).await;
        let again = audit::read(&conf, bar.progress())
            .await
            .map(|p| audit::compare(&p));
        report = report.and_then(|report| Ok(report.confirmed_by(&again?)));
    }
    bar.finish();
    let report = report.map_err(ManageError::NovaService)?;
    if let Some(path) = &args.metrics {
        textfile::write(path, report.findings.iter().map(|found| found.code))?;
    }
    show(context, &report)?;
    verdict(report.findings.len())
}

/// Shows how many compute nodes were read.
pub(super) struct NodeBar(ProgressBar);

pub(super) fn node_bar(context: &Context) -> NodeBar {
    NodeBar(match context.output.may_draw() {
        true => ProgressBar::new(0).with_message("compute nodes"),
        false => ProgressBar::hidden(),
    })
}

impl NodeBar {
    pub(super) fn progress(&self) -> impl Fn(usize, usize) {
        let bar = self.0.clone();
        move |done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        }
    }

    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// An exit code that scripts can use.
fn verdict(count: usize) -> Result<(), CliError> {
    match count {
        0 => Ok(()),
        1 => Err(CliError::Disagrees("1 disagreement".to_owned())),
        n => Err(CliError::Disagrees(format!("{n} disagreements"))),
    }
}

fn show(context: &mut Context, report: &AuditReport) -> Result<(), CliError> {
    let looked = format!(
        "{} compute nodes, {} servers, {} consumers, {} preemptions under way",
        report.hosts, report.servers, report.consumers, report.preemptions
    );
    context.output.say(&looked);
    let rows = report.findings.iter().map(|found| {
        vec![
            TableCell::new(found.code).tone(Tone::Bad),
            TableCell::new(&found.subject),
            TableCell::new(&found.what),
            TableCell::new(found.next),
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
