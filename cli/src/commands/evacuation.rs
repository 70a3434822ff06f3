//! `ebbtide evacuation`: victims on their way out.

use clap::{Args, Subcommand};
use ebbtide_client::Region;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::globals::ProjectScope;
use ebbtide_shell::json;
use ebbtide_shell::output::{Details, Listing, TableCell, number, text};
use ebbtide_shell::render::{number as decimal, optional, state, when};
use ebbtide_shell::resolve;
use std::collections::BTreeMap;

const LIST: &str = "\
Newest first. The project is the victim's.

Examples:
  ebbtide evacuation list --active
  ebbtide evacuation list --all-projects --host host-B
  ebbtide evacuation list --server web-1        # as victim or as the one who needs the room";
const SHOW: &str = "\
Examples:
  ebbtide evacuation show 0190f5fe-7c00-7a00-8000-000000000002
  ebbtide evacuation show worker-1              # the last one that this server was part of";
const HINT: &str = "`ebbtide evacuation list --all-projects` shows what there is";
/// Up to so many servers are looked up by name for a list; beyond, ids have to do.
const MOST_NAMES: usize = 64;

/// What can be done with evacuations.
#[derive(Debug, Subcommand)]
pub enum EvacuationCommand {
    /// Evacuations, newest first
    #[command(after_help = LIST)]
    List(ListArgs),
    /// One evacuation
    #[command(after_help = SHOW)]
    Show {
        /// Its id, or a server's id or name
        evacuation: String,
    },
}

/// Options of `evacuation list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Whose victims
    #[command(flatten)]
    pub scope: ProjectScope,
    /// Only those on this host
    #[arg(long)]
    pub host: Option<String>,
    /// Only those in this state
    #[arg(long)]
    pub state: Option<String>,
    /// Only those with this victim or preemptor, by name or id
    #[arg(long)]
    pub server: Option<String>,
    /// Only those that have not ended
    #[arg(long)]
    pub active: bool,
    /// At most this many
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

/// Does it.
///
/// # Errors
/// What the region says.
pub async fn run(context: &mut Context, command: EvacuationCommand) -> Result<(), CliError> {
    let mut region = context.region().await?;
    match command {
        EvacuationCommand::List(args) => {
            let server_id = match &args.server {
                Some(text) => resolve::server(&mut region, context, text, true).await?.id,
                None => String::new(),
            };
            // If a server is given, its evacuations are listed whatever the project of the other
            // server is.
            let project_id = if args.server.is_some() {
                String::new()
            } else {
                args.scope.project(context)
            };
            let request = v1::ListEvacuationsRequest {
                host: args.host.unwrap_or_default(),
                project_id,
                state: args.state.unwrap_or_default(),
                server_id,
                active_only: args.active,
                limit: args.limit,
                marker: String::new(),
            };
            let answer = region.servers.list_evacuations(request).await?;
            list(context, &mut region, &answer.into_inner().evacuations).await
        }
        EvacuationCommand::Show { evacuation } => {
            let found = find(context, &mut region, &evacuation).await?;
            show_one(context, &mut region, &found).await
        }
    }
}

/// By evacuation id, or the newest one of a server.
async fn find(
    context: &Context,
    region: &mut Region,
    text: &str,
) -> Result<v1::Evacuation, CliError> {
    if resolve::is_id(text) {
        let request = v1::GetEvacuationRequest {
            id: text.to_owned(),
        };
        match region.servers.get_evacuation(request).await {
            Ok(answer) => return Ok(answer.into_inner().evacuation.unwrap_or_default()),
            Err(status) if status.code() == tonic::Code::NotFound => {}
            Err(status) => return Err(status.into()),
        }
    }
    let server_id = if resolve::is_id(text) {
        text.to_owned()
    } else {
        resolve::server(region, context, text, true).await?.id
    };
    let request = v1::ListEvacuationsRequest {
        server_id,
        limit: 1,
        ..Default::default()
    };
    let newest = region
        .servers
        .list_evacuations(request)
        .await?
        .into_inner()
        .evacuations;
    newest.into_iter().next().ok_or_else(|| CliError::NotFound {
        what: "evacuation",
        name: text.to_owned(),
        place: String::new(),
        next: HINT,
    })
}

/// Names of the servers in some evacuations, as far as they can be had. An evacuation has its
/// victim's name, unless a scheduler of an earlier version began it.
async fn names(region: &mut Region, evacuations: &[v1::Evacuation]) -> BTreeMap<String, String> {
    let known = evacuations.iter().filter(|e| !e.victim_name.is_empty());
    let mut names: BTreeMap<String, String> = known
        .map(|e| (e.victim_id.clone(), e.victim_name.clone()))
        .collect();
    let mut ids: Vec<&String> = evacuations
        .iter()
        .flat_map(|e| [&e.victim_id, &e.preemptor_id])
        .filter(|id| !names.contains_key(*id))
        .collect();
    ids.sort();
    ids.dedup();
    for id in ids.into_iter().filter(|id| !id.is_empty()).take(MOST_NAMES) {
        // A name is a comfort; that it cannot be had is no reason to fail.
        let request = v1::GetServerRequest { id: id.clone() };
        if let Ok(answer) = region.servers.get_server(request).await
            && let Some(server) = answer.into_inner().server
        {
            names.insert(id.clone(), server.name);
        }
    }
    names
}

fn named(names: &BTreeMap<String, String>, id: &str) -> TableCell {
    match names.get(id) {
        Some(name) => TableCell::new(name).value(id),
        None => optional(id),
    }
}

/// Causes of evacuations without a preemptor.
const MAX_LIFETIME: &str = "max-lifetime";
const OUT_OF_BID: &str = "out-of-bid";
const HEADROOM: &str = "headroom";
const RECLAIM: &str = "reclaim";

/// A reclaim with its owner. Tenants do not see the owner.
fn reclaim(evacuation: &v1::Evacuation) -> String {
    match evacuation.reclaim_owner.as_str() {
        "" => RECLAIM.to_owned(),
        owner => format!("{RECLAIM} by {owner}"),
    }
}

/// What an evacuation is for, in words; `None`: for a preemptor.
pub(super) fn purpose(evacuation: &v1::Evacuation) -> Option<String> {
    match evacuation.cause.as_str() {
        MAX_LIFETIME => Some("its maximum lifetime".to_owned()),
        OUT_OF_BID => Some("its maximum price".to_owned()),
        HEADROOM => Some("headroom".to_owned()),
        RECLAIM => Some(reclaim(evacuation)),
        _ => None,
    }
}

fn for_whom(evacuation: &v1::Evacuation, names: &BTreeMap<String, String>) -> TableCell {
    match purpose(evacuation) {
        Some(words) => TableCell::new(words).value(&evacuation.preemptor_id),
        None => named(names, &evacuation.preemptor_id),
    }
}

async fn list(
    context: &mut Context,
    region: &mut Region,
    evacuations: &[v1::Evacuation],
) -> Result<(), CliError> {
    let now = context.output.now();
    let names = if context.output.is_table() {
        names(region, evacuations).await
    } else {
        BTreeMap::new()
    };
    let row = |e: &v1::Evacuation| {
        vec![
            TableCell::new(&e.id),
            named(&names, &e.victim_id),
            TableCell::new(&e.host),
            for_whom(e, &names),
            state(&e.state),
            TableCell::new(&e.behaviour),
            TableCell::new(decimal(e.cost)),
            when(&e.claimed_at, now),
            when(&e.deadline_at, now),
            optional(&e.reason),
        ]
    };
    context.output.listing(Listing {
        columns: vec![
            text("id", "ID").detail(6),
            text("victim_id", "Victim"),
            text("host", "Host"),
            text("preemptor_id", "For"),
            text("state", "State"),
            text("behaviour", "Behaviour").detail(4),
            number("cost", "Cost").detail(3),
            text("claimed_at", "Claimed").detail(5),
            text("deadline_at", "Deadline"),
            text("reason", "Reason").detail(1),
        ],
        rows: evacuations.iter().map(row).collect(),
        json: json::list(evacuations),
        none: "no evacuations",
    })
}

/// One evacuation in the format asked for.
///
/// # Errors
/// [`CliError::Write`].
pub async fn show_one(
    context: &mut Context,
    region: &mut Region,
    evacuation: &v1::Evacuation,
) -> Result<(), CliError> {
    let now = context.output.now();
    let names = if context.output.is_table() {
        names(region, std::slice::from_ref(evacuation)).await
    } else {
        BTreeMap::new()
    };
    let server = |id: &str| match names.get(id) {
        Some(name) => TableCell::new(format!("{name} ({id})")).value(id),
        None => optional(id),
    };
    let e = evacuation;
    context.output.details(Details {
        fields: vec![
            ("id", TableCell::new(&e.id)),
            ("state", state(&e.state)),
            ("reason", optional(&e.reason)),
            ("victim_id", server(&e.victim_id)),
            ("victim_project_id", optional(&e.victim_project_id)),
            ("host", TableCell::new(&e.host)),
            (
                "cause",
                match e.cause.as_str() {
                    RECLAIM => TableCell::new(reclaim(e)).value(&e.cause),
                    cause => TableCell::new(cause),
                },
            ),
            ("preemptor_id", server(&e.preemptor_id)),
            ("decision_id", optional(&e.decision_id)),
            ("behaviour", TableCell::new(&e.behaviour)),
            ("grace_seconds", TableCell::new(e.grace_seconds)),
            ("cost", TableCell::new(decimal(e.cost))),
            ("attempts", TableCell::new(e.attempts)),
            ("claimed_at", when(&e.claimed_at, now)),
            ("notified_at", when(&e.notified_at, now)),
            ("draining_at", when(&e.draining_at, now)),
            ("deadline_at", when(&e.deadline_at, now)),
            ("ended_at", when(&e.ended_at, now)),
        ],
        json: json::message(e),
    })
}
