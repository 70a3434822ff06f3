//! `ebbtide decision list`: the last decisions.

use crate::decision_view;
use clap::{Args, Subcommand};
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json;
use ebbtide_shell::output::{Listing, TableCell, number, text};
use ebbtide_shell::render::{Tone, when, yes};

const LIST: &str = "\
Newest first.

Examples:
  ebbtide decision list
  ebbtide decision list --server 0190f5fe-7c00-7a00-8000-000000000001
  ebbtide decision list --request req-7ce5bcb8-0b4f-4b63-9d30-1c2b7d8b21f5
  ebbtide decision list --refused --from 2026-11-01T00:00:00Z
  ebbtide decision list --limit 100 -o json
  ebbtide explain $(ebbtide decision list --limit 1 -o value -c id)";

/// What can be done with decisions.
#[derive(Debug, Subcommand)]
pub enum DecisionCommand {
    /// The last decisions, newest first
    #[command(after_help = LIST)]
    List {
        /// How many
        #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Which ones
        #[command(flatten)]
        which: DecisionSelector,
    },
}

/// Which decisions. Everything that is set must fit.
#[derive(Debug, Args)]
pub struct DecisionSelector {
    /// For requests of this project
    #[arg(
        long,
        value_name = "PROJECT",
        default_value = "",
        hide_default_value = true
    )]
    project: String,
    /// About the server with this id
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    server: String,
    /// For the request with this id of OpenStack's services
    #[arg(
        long,
        value_name = "REQ",
        default_value = "",
        hide_default_value = true
    )]
    request: String,
    /// From this time on, RFC 3339
    #[arg(
        long,
        value_name = "TIME",
        default_value = "",
        hide_default_value = true
    )]
    from: String,
    /// Before this time, RFC 3339
    #[arg(
        long,
        value_name = "TIME",
        default_value = "",
        hide_default_value = true
    )]
    before: String,
    /// Only those that found no room
    #[arg(long)]
    refused: bool,
    /// Only those after this one: the last id of the page before
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    marker: String,
}

/// Does it.
///
/// # Errors
/// What the region says.
pub async fn run(context: &mut Context, command: DecisionCommand) -> Result<(), CliError> {
    let DecisionCommand::List { limit, which } = command;
    let request = v1::ListDecisionsRequest {
        limit,
        project_id: which.project,
        server_id: which.server,
        request_id: which.request,
        from: which.from,
        before: which.before,
        refused_only: which.refused,
        marker: which.marker,
    };
    let answer = context
        .region()
        .await?
        .scheduler
        .list_decisions(request)
        .await?;
    let decisions = answer.into_inner().decisions;
    let now = context.output.now();
    let row = |decision: &v1::Decision| {
        let victims: usize = decision.placements.iter().map(|p| p.victims.len()).sum();
        let tone = if decision.no_valid_host.is_some() {
            Tone::Bad
        } else {
            Tone::Plain
        };
        vec![
            TableCell::new(&decision.id),
            when(&decision.at, now),
            TableCell::new(&decision.project_id),
            TableCell::new(&decision.flavor_name),
            yes(decision.preemptible),
            TableCell::new(decision.server_ids.len().max(decision.placements.len())),
            TableCell::new(decision_view::outcome(decision)).tone(tone),
            TableCell::new(victims),
        ]
    };
    context.output.listing(Listing {
        columns: vec![
            text("id", "ID"),
            text("at", "When").detail(1),
            text("project_id", "Project").detail(2),
            text("flavor_name", "Flavor"),
            text("preemptible", "Preemptible").detail(5),
            number("servers", "Servers").detail(4),
            text("outcome", "Outcome"),
            number("victims", "Victims").detail(3),
        ],
        rows: decisions.iter().map(row).collect(),
        json: json::list(&decisions),
        none: "no decisions yet",
    })
}
