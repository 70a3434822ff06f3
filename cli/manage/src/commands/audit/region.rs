//! `ebbtide-manage audit` of a region: its scheduler holds database, memory and agents against each
//! other.

use super::{textfile, verdict};
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json;
use ebbtide_shell::output::{Listing, TableCell, text};
use ebbtide_shell::render::Tone;
use std::path::Path;

/// Asks and shows.
///
/// # Errors
/// What the region says, [`CliError::Disagrees`] if something is found.
pub(super) async fn run(context: &mut Context, metrics: Option<&Path>) -> Result<(), CliError> {
    let request = v1::AuditRequest {};
    let asked = context.region().await?.admin.audit(request).await?;
    let report = asked.into_inner();
    if let Some(path) = metrics {
        textfile::write(
            path,
            report.findings.iter().map(|found| found.code.as_str()),
        )?;
    }
    context.output.say(&format!(
        "{} hosts, {} of them compared with what their agents say; {} servers, {} evacuations under way, {} messages to be sent",
        report.hosts,
        report.compared_hosts,
        report.servers,
        report.evacuations,
        report.unsent_messages
    ));
    if !report.on_duty {
        let who = match report.duty.is_empty() {
            true => "no scheduler is on duty".to_owned(),
            false => format!("{} is on duty", report.duty),
        };
        context.output.say(&format!(
            "This scheduler does not hear the agents: {who}. Ask that one (--endpoint) to have its hosts compared, too."
        ));
    }
    let rows = report.findings.iter().map(|found| {
        vec![
            TableCell::new(&found.code).tone(Tone::Bad),
            TableCell::new(&found.subject),
            TableCell::new(&found.what),
            TableCell::new(&found.next),
        ]
    });
    let rows = rows.collect();
    let count = report.findings.len();
    context.output.listing(Listing {
        columns: vec![
            text("code", "CODE"),
            text("subject", "SUBJECT"),
            text("what", "WHAT"),
            text("next", "NEXT"),
        ],
        rows,
        json: json::message(&report),
        none: "All agree.",
    })?;
    verdict(count)
}
