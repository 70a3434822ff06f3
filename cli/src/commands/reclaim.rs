//! `ebbtide host reclaim`, `reclaims` and `return`: hosts that an outside owner takes back.

use clap::Args;
use ebbtide_client::Region;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::backoff::PollBackoff;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json;
use ebbtide_shell::output::{Listing, TableCell, number, text};
use ebbtide_shell::render::{
    Tone, number as decimal, optional, plural, span, state, time_of_day, when, yes,
};
use ebbtide_shell::resolve::HOST_HINT;
use ebbtide_shell::time_argument::{parse_time, rfc3339};
use std::time::Duration;

pub(super) const RECLAIM: &str = "\
The hosts take no new servers, and every preemptible server gets its notice as soon as it may
leave: protected time and disruption budgets hold. Normal servers stay. The reclaim lasts until
`ebbtide host return`. Repeating the command changes nothing.

No server has its grace period beyond the deadline.

Examples:
  ebbtide host reclaim node-7 --owner slurm:1234 --reason \"job 1234\" --deadline 5m --wait
  ebbtide host reclaim node-7 node-8 --owner maintenance --reason \"new memory\" --dry-run
  ebbtide host reclaim node-7 --owner maintenance --reason disks --deadline 2026-12-01T06:00:00Z";
pub(super) const RECLAIMS: &str = "\
A host is \"free\" when no preemptible server is left on it. It is \"blocked\" while preemptible
servers stay that may not leave now; they are named with the reason.

Examples:
  ebbtide host reclaims
  ebbtide host reclaims node-7 -o json";
pub(super) const RETURN: &str = "\
The hosts take servers again. Victims that have not been acted upon are spared. A host that is not
reclaimed stays as it is.

Examples:
  ebbtide host return node-7
  ebbtide host return node-7 --keep-disabled";

/// Time between two looks at a reclaim with `--wait`.
const POLL: Duration = Duration::from_millis(500);

/// Which hosts, for whom, and how.
#[derive(Debug, Args)]
pub struct ReclaimArgs {
    /// Their names
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
    /// Who takes them, for example slurm:1234; only this owner can change the terms
    #[arg(long)]
    owner: String,
    /// Why
    #[arg(long)]
    reason: String,
    /// When grace periods end at the latest: a span (300, 90s, 5m, 2h, 1d) or a time [default:
    /// every server has its own grace period]
    #[arg(long, value_name = "TIME", value_parser = deadline)]
    deadline: Option<Deadline>,
    /// The most that the loss of all servers of a host may cost, in the cost module's unit
    /// [default: no limit]
    #[arg(
        long,
        value_name = "COST",
        default_value_t = 0.0,
        hide_default_value = true
    )]
    max_cost: f64,
    /// Say what would happen, and change nothing
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    /// Wait until the hosts are free of preemptible servers
    #[arg(long)]
    wait: bool,
    /// How long to wait, in seconds
    #[arg(
        long,
        default_value_t = 1800,
        value_name = "SECONDS",
        requires = "wait"
    )]
    wait_timeout: u64,
}

/// Which hosts are returned, and how.
#[derive(Debug, Args)]
pub struct ReturnArgs {
    /// Their names
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
    /// Leave them disabled, for `ebbtide host enable`
    #[arg(long)]
    keep_disabled: bool,
}

/// A deadline as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Deadline {
    After(u32),
    At(String),
}

fn deadline(text: &str) -> Result<Deadline, String> {
    let (digits, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(end) => text.split_at(end),
        None => (text, "s"),
    };
    let factor = match unit {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        "d" => Some(24 * 3600),
        _ => None,
    };
    let seconds = factor.zip(digits.parse::<u32>().ok());
    match seconds.map(|(factor, n)| n.checked_mul(factor)) {
        Some(Some(seconds)) if seconds > 0 => Ok(Deadline::After(seconds)),
        Some(_) => Err("a span is longer than 0 and at most 7d".to_owned()),
        None => {
            let at = parse_time(text).map_err(|problem| {
                format!(
                    "a span is a number with s, m, h or d, for example 5m; or a time: {problem}"
                )
            })?;
            Ok(Deadline::At(rfc3339(at)))
        }
    }
}

/// Takes hosts back.
///
/// # Errors
/// What the region says; with `--wait` that a host is not free in time.
pub(super) async fn reclaim(
    context: &mut Context,
    region: &mut Region,
    args: ReclaimArgs,
) -> Result<(), CliError> {
    let mut all = Vec::with_capacity(args.hosts.len());
    for host in &args.hosts {
        let (deadline_seconds, deadline) = match &args.deadline {
            None => (0, String::new()),
            Some(Deadline::After(seconds)) => (*seconds, String::new()),
            Some(Deadline::At(at)) => (0, at.clone()),
        };
        let request = v1::ReclaimHostRequest {
            name: host.clone(),
            owner: args.owner.clone(),
            reason: args.reason.clone(),
            deadline_seconds,
            deadline,
            max_cost: args.max_cost,
            dry_run: args.dry_run,
        };
        all.push(ask(context, region, request, args.wait).await?);
    }
    if args.wait {
        let limit = Duration::from_secs(args.wait_timeout);
        let waiting = wait(context, region, &mut all);
        if let Ok(done) = tokio::time::timeout(limit, waiting).await {
            done?;
        } else {
            show(context, &all)?;
            let late = all.iter().find(|reclaim| reclaim.state != FREE);
            let late = late.cloned().unwrap_or_default();
            return Err(CliError::NotFree {
                host: late.host,
                state: late.state,
                seconds: limit.as_secs(),
            });
        }
    }
    show(context, &all)
}

/// The state of a host without preemptible servers.
const FREE: &str = "free";

/// Asks for a reclaim. Who waits asks again when the region goes away meanwhile: repeating it
/// changes nothing.
async fn ask(
    context: &mut Context,
    region: &mut Region,
    request: v1::ReclaimHostRequest,
    waits: bool,
) -> Result<v1::HostReclaim, CliError> {
    let mut patience = PollBackoff::default();
    loop {
        let answer = region.admin.reclaim_host(request.clone()).await;
        match answer.map_err(|status| CliError::from(status).hint(HOST_HINT)) {
            Ok(answer) => {
                patience.answered(context, "");
                return Ok(answer.into_inner().reclaim.unwrap_or_default());
            }
            Err(error) if waits && error.is_passing() => patience.pause(context, &error).await,
            Err(error) => return Err(error),
        }
    }
}

/// Waits until all hosts are free of preemptible servers.
///
/// # Errors
/// What the region says, for example that another call has returned the host. A region that is away
/// is asked again.
async fn wait(
    context: &mut Context,
    region: &mut Region,
    all: &mut [v1::HostReclaim],
) -> Result<(), CliError> {
    let mut patience = PollBackoff::default();
    for reclaim in all {
        while reclaim.state != FREE {
            tokio::time::sleep(POLL).await;
            match look(region, &reclaim.host).await {
                Ok(seen) => {
                    patience.answered(context, "");
                    *reclaim = seen;
                }
                Err(error) if error.is_passing() => patience.pause(context, &error).await,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// The reclaim of a host.
async fn look(region: &mut Region, host: &str) -> Result<v1::HostReclaim, CliError> {
    let name = host.to_owned();
    let answer = region
        .admin
        .get_reclaim(v1::GetReclaimRequest { name })
        .await?;
    Ok(answer.into_inner().reclaim.unwrap_or_default())
}

/// Shows the reclaims of all hosts, or of one.
///
/// # Errors
/// What the region says.
pub(super) async fn reclaims(
    context: &mut Context,
    region: &mut Region,
    host: Option<String>,
) -> Result<(), CliError> {
    let all = match host {
        Some(host) => vec![look(region, &host).await?],
        None => {
            let answer = region
                .admin
                .list_reclaims(v1::ListReclaimsRequest {})
                .await?;
            answer.into_inner().reclaims
        }
    };
    show(context, &all)
}

/// Returns hosts.
///
/// # Errors
/// What the region says.
pub(super) async fn give_back(
    region: &mut Region,
    args: ReturnArgs,
) -> Result<Vec<v1::Host>, CliError> {
    let mut hosts = Vec::with_capacity(args.hosts.len());
    for name in args.hosts {
        let request = v1::ReturnHostRequest {
            name,
            keep_disabled: args.keep_disabled,
        };
        let answer = region.admin.return_host(request).await;
        let answer = answer.map_err(|status| CliError::from(status).hint(HOST_HINT))?;
        hosts.push(answer.into_inner().host.unwrap_or_default());
    }
    Ok(hosts)
}

fn show(context: &mut Context, all: &[v1::HostReclaim]) -> Result<(), CliError> {
    let now = context.output.now();
    let row = |reclaim: &v1::HostReclaim| {
        let occupies = |s: &&v1::StayingServer| !matches!(s.reason.as_str(), "normal" | "kept");
        let most = match reclaim.max_cost > 0.0 {
            true => decimal(reclaim.max_cost),
            false => String::new(),
        };
        vec![
            TableCell::new(&reclaim.host),
            match reclaim.state.as_str() {
                FREE => TableCell::new(FREE).tone(Tone::Good),
                other => TableCell::new(other).tone(Tone::Warn),
            },
            TableCell::new(&reclaim.owner),
            TableCell::new(&reclaim.reason),
            TableCell::new(reclaim.leaving),
            TableCell::new(reclaim.staying.iter().filter(occupies).count()),
            when(&reclaim.since, now),
            match reclaim.deadline.as_str() {
                "" => optional(""),
                at => TableCell::new(time_of_day(at)).value(at),
            },
            yes(reclaim.overdue),
            TableCell::new(decimal(reclaim.cost)),
            optional(&most),
        ]
    };
    let listing = Listing {
        columns: vec![
            text("host", "Host"),
            text("state", "State"),
            text("owner", "Owner"),
            text("reason", "Reason").detail(2),
            number("leaving", "Leaving"),
            number("staying", "Staying"),
            text("since", "Since").detail(3),
            text("deadline", "Deadline"),
            text("overdue", "Overdue").detail(1),
            number("cost", "Cost").detail(4),
            number("max_cost", "Max cost").detail(5),
        ],
        rows: all.iter().map(row).collect(),
        json: json::list(all),
        none: "no host is reclaimed",
    };
    context.output.listing(listing)?;
    if !context.output.is_table() || context.output.has_columns() {
        return Ok(());
    }
    for reclaim in all {
        servers(context, reclaim)?;
    }
    Ok(())
}

/// The servers that leave and that stay, each with the reason.
fn servers(context: &mut Context, reclaim: &v1::HostReclaim) -> Result<(), CliError> {
    let mut rows = Vec::new();
    for planned in &reclaim.planned {
        let grace = span(planned.grace_seconds.into());
        rows.push(vec![
            TableCell::new(&planned.server_id),
            TableCell::new(&planned.name),
            TableCell::new(&planned.project_id),
            state("leaves"),
            TableCell::new(format!(
                "with {grace} grace, costs {}",
                decimal(planned.cost)
            )),
        ]);
    }
    for evacuation in &reclaim.evacuations {
        let grace = span(evacuation.grace_seconds.into());
        rows.push(vec![
            TableCell::new(&evacuation.victim_id),
            optional(&evacuation.victim_name),
            TableCell::new(&evacuation.victim_project_id),
            state(&evacuation.state),
            TableCell::new(match evacuation.reason.as_str() {
                "" => format!("{}, {grace} grace", evacuation.cause),
                reason => reason.to_owned(),
            }),
        ]);
    }
    for server in &reclaim.staying {
        rows.push(vec![
            TableCell::new(&server.server_id),
            optional(&server.name),
            optional(&server.project_id),
            TableCell::new("stays"),
            TableCell::new(&server.detail),
        ]);
    }
    if rows.is_empty() {
        return Ok(());
    }
    let title = format!("{} on {}", plural(rows.len(), "server"), reclaim.host);
    context.output.line(&title)?;
    let columns = [
        text("server_id", "Server"),
        text("name", "Name").detail(1),
        text("project_id", "Project").detail(2),
        text("state", "State"),
        text("detail", "Detail"),
    ];
    context.output.table(&columns, &rows)
}

#[cfg(test)]
mod tests;
