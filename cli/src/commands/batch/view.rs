//! Works as tables.

use ebbtide_batch::WorkReport;
use ebbtide_batch::maps::MapServer;
use ebbtide_batch::view::{
    AttemptView, MemberView, PlanView, ServiceStatus, WorkDetails, WorkSummary,
};
use ebbtide_model::Money;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::listing::Tone;
use ebbtide_shell::output::{Details, Format, Listing, TableCell, number, text};
use ebbtide_shell::render::{optional, span};
use serde_json::Value;
use time::OffsetDateTime;

fn state(word: &str) -> TableCell {
    let tone = match word {
        "done" | "up" | "runs" => Tone::Good,
        "active" | "coming" | "leaving" | "waits" | "hibernated" => Tone::Warn,
        "failed" | "over-budget" => Tone::Bad,
        "cancelled" | "going" | "gone" => Tone::Dim,
        _ => Tone::Plain,
    };
    TableCell::new(word).tone(tone)
}

/// A time that lies ahead or behind: `in 2 h`, `5 min ago`.
fn at(now: OffsetDateTime, ms: Option<i64>) -> TableCell {
    let Some(ms) = ms else { return optional("") };
    let now = i64::try_from(now.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
    let seconds = |ms: i64| span(u64::try_from(ms / 1_000).unwrap_or(0));
    let words = if ms >= now {
        format!("in {}", seconds(ms - now))
    } else {
        format!("{} ago", seconds(now - ms))
    };
    TableCell::new(words).value(ms)
}

fn money(amount: Option<Money>) -> TableCell {
    amount.map_or_else(|| optional(""), TableCell::new)
}

fn row(context: &Context, one: &WorkSummary) -> Vec<TableCell> {
    let now = context.output.now();
    vec![
        TableCell::new(one.id),
        TableCell::new(&one.name),
        state(&one.state),
        TableCell::new(one.members),
        TableCell::new(one.done),
        TableCell::new(one.running),
        at(now, one.deadline_ms),
        TableCell::new(one.spent),
        money(one.budget),
        at(now, Some(one.submitted_ms)),
    ]
}

pub(super) fn list(
    context: &mut Context,
    all: &[WorkSummary],
    body: Value,
) -> Result<(), CliError> {
    let rows = all.iter().map(|one| row(context, one)).collect();
    context.output.listing(Listing {
        columns: vec![
            number("id", "ID"),
            text("name", "Name"),
            text("state", "State"),
            number("members", "Members"),
            number("done", "Done"),
            number("running", "Running"),
            text("deadline_ms", "Deadline").detail(1),
            number("spent", "Spent").detail(2),
            number("budget", "Budget").detail(3),
            text("submitted_ms", "Handed in").detail(4),
        ],
        rows,
        json: Json::from(body),
        none: "there is no work; `ebbtide batch submit` hands some in",
    })
}

fn fields(context: &Context, one: &WorkSummary) -> Vec<(&'static str, TableCell)> {
    let keys = [
        "id",
        "name",
        "state",
        "members",
        "done",
        "running",
        "deadline_ms",
        "spent",
        "budget",
        "submitted_ms",
    ];
    keys.into_iter().zip(row(context, one)).collect()
}

pub(super) fn summary(
    context: &mut Context,
    one: &WorkSummary,
    body: Value,
) -> Result<(), CliError> {
    let fields = fields(context, one);
    context.output.details(Details {
        fields,
        json: Json::from(body),
    })
}

pub(super) fn details(
    context: &mut Context,
    one: &WorkDetails,
    body: Value,
    all: bool,
) -> Result<(), CliError> {
    let mut fields = fields(context, &one.summary);
    fields.push(("dir", TableCell::new(&one.dir)));
    context.output.details(Details {
        fields,
        json: Json::from(body),
    })?;
    if !context.output.is_table() {
        return Ok(());
    }
    maps(context, &one.maps)?;
    let shown = |member: &&MemberView| all || matches!(member.state.as_str(), "runs" | "failed");
    let rows: Vec<Vec<TableCell>> = one.list.iter().filter(shown).map(member).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let columns = [
        text("name", "Member"),
        text("state", "State"),
        number("attempts", "Attempts"),
        text("node", "Node"),
        text("server_type", "Type"),
        text("end", "Last end"),
        number("saved", "Saved"),
        text("parameters", "Parameters"),
    ];
    context.output.table(&columns, &rows)
}

/// The servers of a bag by maps.
fn maps(context: &mut Context, all: &[MapServer]) -> Result<(), CliError> {
    if all.is_empty() {
        return Ok(());
    }
    let row = |one: &MapServer| {
        let cores = one.cores.iter().map(|core| core.join(" "));
        let start = one.latest_start_s;
        vec![
            TableCell::new(&one.node),
            TableCell::new(&one.server_type),
            TableCell::new(one.market.as_str()),
            optional(one.backup_of.as_deref().unwrap_or_default()),
            state(&one.state),
            TableCell::new(one.hibernations),
            optional(&start.map(span).unwrap_or_default()),
            TableCell::new(cores.collect::<Vec<_>>().join(", ")),
        ]
    };
    let columns = [
        text("node", "Node"),
        text("server_type", "Type"),
        text("market", "Market"),
        text("backup_of", "Backup of"),
        text("state", "State"),
        number("hibernations", "Hibernations"),
        number("latest_start_s", "Latest start"),
        text("cores", "Tasks, core by core"),
    ];
    let rows: Vec<Vec<TableCell>> = all.iter().map(row).collect();
    context.output.table(&columns, &rows)
}

pub(super) fn plan(context: &mut Context, one: &PlanView, body: Value) -> Result<(), CliError> {
    context.output.details(Details {
        fields: vec![
            ("name", TableCell::new(&one.name)),
            ("tasks", TableCell::new(one.tasks)),
            ("makespan_s", TableCell::new(span(one.makespan_s))),
            ("deadline_s", TableCell::new(span(one.deadline_s))),
            ("price", TableCell::new(one.price)),
            ("at_most", TableCell::new(one.at_most)),
        ],
        json: Json::from(body),
    })?;
    if context.output.is_table() {
        maps(context, &one.maps)?;
    }
    Ok(())
}

fn member(one: &MemberView) -> Vec<TableCell> {
    let last = one.attempts.last();
    let of = |part: fn(&AttemptView) -> &str| optional(last.map_or("", part));
    let mut ends = one
        .attempts
        .iter()
        .rev()
        .map(|attempt| attempt.end.as_str());
    let end = ends.find(|end| !end.is_empty()).unwrap_or_default();
    let pairs = one
        .parameters
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    vec![
        TableCell::new(&one.name),
        state(&one.state),
        TableCell::new(one.attempts.len()),
        of(|attempt| &attempt.node),
        of(|attempt| &attempt.server_type),
        optional(end),
        TableCell::new(span(u64::try_from(one.saved_ms / 1_000).unwrap_or(0))),
        optional(&pairs.collect::<Vec<_>>().join(" ")),
    ]
}

pub(super) fn report(
    context: &mut Context,
    made: &WorkReport,
    body: Value,
) -> Result<(), CliError> {
    match context.output.format() {
        Format::Json => return context.output.json(&Json::from(body)),
        Format::Value => {
            let ratio = made
                .on_demand
                .as_ref()
                .and_then(|other| other.cost_ratio)
                .map(|ratio| format!("{ratio:.2}"));
            return context.output.line(ratio.as_deref().unwrap_or("-"));
        }
        Format::Table | Format::Markdown => {}
    }
    let seconds = |ms: i64| TableCell::new(span(u64::try_from(ms / 1_000).unwrap_or(0))).value(ms);
    let amount = |micros: u64| TableCell::new(Money::from_micros(micros));
    let columns = [
        text("how", "Servers"),
        number("servers", "Number"),
        number("makespan", "From start to end"),
        number("ran", "Members ran"),
        number("servers_cost", "Servers cost"),
        number("cost", "Of it used"),
    ];
    let mut rows = vec![vec![
        TableCell::new("as it was"),
        TableCell::new(made.servers),
        seconds(made.makespan_ms),
        seconds(made.ran_ms),
        amount(made.servers_micros),
        amount(made.cost_micros),
    ]];
    if let Some(other) = &made.on_demand {
        rows.push(vec![
            TableCell::new("on demand, replayed"),
            TableCell::new(other.servers),
            seconds(other.makespan_ms),
            seconds(made.useful_ms),
            amount(other.servers_micros),
            amount(other.cost_micros),
        ]);
    }
    context.output.table(&columns, &rows)?;
    let ends = made
        .attempts
        .iter()
        .map(|(how, count)| format!("{count} {}", how.replace('_', " ")));
    context.output.line(&format!(
        "{} of {} members done; attempts: {}",
        made.done,
        made.members,
        ends.collect::<Vec<_>>().join(", ")
    ))?;
    if let Some(bag) = made.bag {
        context.output.line(&format!(
            "{} hibernations, {} resumed, {} backups, {} tasks moved",
            bag.hibernations, bag.resumed, bag.backups, bag.moved
        ))?;
    }
    let deadline = match (made.deadline_ms, made.deadline_met) {
        (None, _) => String::new(),
        (Some(_), None) => "; the deadline lies ahead".to_owned(),
        (Some(_), Some(true)) => "; the deadline was met".to_owned(),
        (Some(_), Some(false)) => "; the deadline was missed".to_owned(),
    };
    context.output.line(&format!(
        "overhead {:.1} %{deadline}",
        100.0 * made.overhead
    ))?;
    match made.on_demand.as_ref().map(|other| other.cost_ratio) {
        None => {}
        Some(None) => context
            .output
            .line("costs are compared when all members are done")?,
        Some(Some(ratio)) => context.output.line(&format!(
            "on demand {ratio:.2} times as dear, boots and idle times of servers included"
        ))?,
    }
    Ok(())
}

pub(super) fn status(
    context: &mut Context,
    status: &ServiceStatus,
    body: Value,
) -> Result<(), CliError> {
    let now = context.output.now();
    let rows = status.servers.iter().map(|one| {
        vec![
            TableCell::new(&one.node),
            TableCell::new(&one.server_type),
            state(&one.state),
            at(now, one.launched_ms),
            at(now, one.until_ms),
            optional(&one.members.join(", ")),
            TableCell::new(&one.server),
        ]
    });
    let json = Json::from(body);
    if context.output.format() == Format::Json {
        return context.output.json(&json);
    }
    let rows = rows.collect();
    context.output.listing(Listing {
        columns: vec![
            text("node", "Node"),
            text("server_type", "Type"),
            text("state", "State"),
            text("launched_ms", "Launched"),
            text("until_ms", "Until").detail(2),
            text("members", "Members").detail(1),
            text("server", "Server").on_request(),
        ],
        rows,
        json,
        none: "there is no server",
    })?;
    if let Some(elastic) = &status.elastic {
        context.output.say(&elastic.to_string());
    }
    for (place, code) in &status.faults {
        context
            .output
            .say(&format!("{code} lasts ({place}): see the service's log"));
    }
    context.output.say(&format!(
        "spent on servers in the budget's time: {}",
        status.spent
    ));
    Ok(())
}
