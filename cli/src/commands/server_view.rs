//! How servers look.

use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json;
use ebbtide_shell::output::{Details, Listing, ListingColumn, TableCell, text};
use ebbtide_shell::render::{Tone, optional, pairs, state, when, yes};

fn columns(with_project: bool) -> Vec<ListingColumn> {
    let mut columns = vec![text("id", "ID").detail(3), text("name", "Name")];
    if with_project {
        columns.push(text("project_id", "Project").detail(1));
    }
    columns.extend([
        text("state", "State"),
        text("state_since", "Since").detail(5),
        text("state_until", "Until").detail(2),
        text("host", "Host"),
        text("flavor_name", "Flavor").detail(4),
        text("preemptible", "Preemptible").detail(6),
        text("state_reason", "Reason"),
        text("status", "Status").on_request(),
        text("created_at", "Created").on_request(),
    ]);
    columns
}

fn rows(context: &Context, servers: &[v1::Server], with_project: bool) -> Vec<Vec<TableCell>> {
    let now = context.output.now();
    let row = |server: &v1::Server| {
        let mut cells = vec![TableCell::new(&server.id), TableCell::new(&server.name)];
        if with_project {
            cells.push(TableCell::new(&server.project_id));
        }
        cells.extend([
            state(&server.state),
            when(&server.state_since, now),
            when(&server.state_until, now),
            optional(&server.host),
            TableCell::new(&server.flavor_name),
            preemptible(server),
            optional(&server.state_reason),
            state(&server.status),
            when(&server.created_at, now),
        ]);
        cells
    };
    servers.iter().map(row).collect()
}

fn preemptible(server: &v1::Server) -> TableCell {
    let cell = yes(server.preemptible);
    if server.preemptible {
        cell.tone(Tone::Warn)
    } else {
        cell
    }
}

/// Servers in the format asked for.
///
/// # Errors
/// [`CliError::Write`].
pub fn list(
    context: &mut Context,
    servers: &[v1::Server],
    with_project: bool,
) -> Result<(), CliError> {
    let listing = Listing {
        columns: columns(with_project),
        rows: rows(context, servers, with_project),
        json: json::list(servers),
        none: "no servers",
    };
    context.output.listing(listing)
}

/// Servers as an inner table.
///
/// # Errors
/// [`CliError::Write`].
pub fn table(context: &mut Context, servers: &[v1::Server]) -> Result<(), CliError> {
    let columns = columns(true);
    let shown = |cells: Vec<TableCell>| {
        let cells = cells.into_iter().zip(&columns);
        cells
            .filter(|(_, c)| !c.on_request)
            .map(|(cell, _)| cell)
            .collect()
    };
    let rows: Vec<Vec<TableCell>> = rows(context, servers, true)
        .into_iter()
        .map(shown)
        .collect();
    let columns: Vec<ListingColumn> = columns.iter().copied().filter(|c| !c.on_request).collect();
    context.output.table(&columns, &rows)
}

/// One server.
///
/// # Errors
/// [`CliError::Write`].
pub fn show(context: &mut Context, server: &v1::Server) -> Result<(), CliError> {
    let details = details(context, server);
    context.output.details(details)
}

/// One server as fields.
#[must_use]
pub fn details(context: &Context, server: &v1::Server) -> Details {
    let now = context.output.now();
    let fault = match (server.fault_code.as_str(), server.fault_message.as_str()) {
        ("", "") => optional(""),
        (code, message) => TableCell::new(format!("{code}: {message}")).tone(Tone::Bad),
    };
    Details {
        fields: vec![
            ("id", TableCell::new(&server.id)),
            ("name", TableCell::new(&server.name)),
            ("project_id", TableCell::new(&server.project_id)),
            ("state", state(&server.state)),
            ("state_since", when(&server.state_since, now)),
            ("state_until", when(&server.state_until, now)),
            ("state_reason", optional(&server.state_reason)),
            ("max_price", optional(&server.max_price)),
            ("status", state(&server.status)),
            ("fault", fault),
            ("host", optional(&server.host)),
            ("flavor_name", TableCell::new(&server.flavor_name)),
            ("resources", optional(&pairs(&server.resources))),
            ("preemptible", preemptible(server)),
            ("interruption", optional(&server.interruption)),
            ("group_id", optional(&server.group_id)),
            ("availability_zone", optional(&server.availability_zone)),
            ("decision_id", optional(&server.decision_id)),
            ("evacuation_id", optional(&server.evacuation_id)),
            ("deadline_at", when(&server.deadline_at, now)),
            ("created_at", when(&server.created_at, now)),
            ("launched_at", when(&server.launched_at, now)),
            ("ended_at", when(&server.ended_at, now)),
        ],
        json: json::message(server),
    }
}
