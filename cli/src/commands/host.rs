//! `ebbtide host`: compute hosts.

use crate::commands::reclaim::{self, ReclaimArgs, ReturnArgs};
use crate::commands::server_view;
use clap::Subcommand;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json;
use ebbtide_shell::output::{Details, Listing, TableCell, number, text};
use ebbtide_shell::render::{Tone, number as decimal, optional, plural, state, when};
use ebbtide_shell::resolve::HOST_HINT;

const LIST: &str = "\
Free amounts are given twice: \"free (all)\", where all servers count, is what a preemptible server
can get; \"free (normal only)\", where only normal servers count, is what a normal one can get.

Examples:
  ebbtide host list
  ebbtide host list -o value -c name -c health";
const SHOW: &str = "Examples:\n  ebbtide host show host-B\n  ebbtide host show host-B -o json";
const DISABLE: &str = "\
Servers that run there go on; no new ones come.

Examples:
  ebbtide host disable host-B --reason \"new memory, back on Monday\"";
const ENABLE: &str = "Examples:\n  ebbtide host enable host-B";

const REMOVE: &str = "\
First drain the host (`ebbtide host reclaim`), delete the servers that stay, and stop the agent. A
host whose machine is lost is removed in the same way: servers that were deleted since its agent is
silent go with it. The removed host's agent is refused if it comes back.

Examples:
  ebbtide host remove host-B";
const READMIT: &str = "\
The host is registered again with the next heartbeat of its agent.

Examples:
  ebbtide host readmit host-B";

/// What can be done with hosts.
#[derive(Debug, Subcommand)]
pub enum HostCommand {
    /// All hosts
    #[command(after_help = LIST)]
    List,
    /// One host, its resources and its servers
    #[command(after_help = SHOW)]
    Show {
        /// Its name
        host: String,
    },
    /// Put no new servers on a host
    #[command(after_help = DISABLE)]
    Disable {
        /// Its name
        host: String,
        /// Why, for the colleagues
        #[arg(long)]
        reason: String,
    },
    /// Put servers on a host again
    #[command(after_help = ENABLE)]
    Enable {
        /// Its name
        host: String,
    },
    /// Remove a host for good: its record, its agent's queue
    #[command(after_help = REMOVE)]
    Remove {
        /// Its name
        host: String,
    },
    /// Let a removed host register again
    #[command(after_help = READMIT)]
    Readmit {
        /// Its name
        host: String,
    },
    /// Take hosts back for a batch job or a maintenance: their preemptible servers leave
    #[command(after_help = reclaim::RECLAIM)]
    Reclaim(ReclaimArgs),
    /// Hosts that are reclaimed, and how far they are
    #[command(after_help = reclaim::RECLAIMS)]
    Reclaims {
        /// Only this one
        host: Option<String>,
    },
    /// Return reclaimed hosts: they take servers again
    #[command(after_help = reclaim::RETURN)]
    Return(ReturnArgs),
}

/// Does it.
///
/// # Errors
/// What the region says.
pub async fn run(context: &mut Context, command: HostCommand) -> Result<(), CliError> {
    let mut region = context.region().await?;
    let hint = |status: tonic::Status| CliError::from(status).hint(HOST_HINT);
    match command {
        HostCommand::List => {
            let answer = region.admin.list_hosts(v1::ListHostsRequest {}).await?;
            list(context, &answer.into_inner().hosts)
        }
        HostCommand::Show { host } => {
            let request = v1::GetHostRequest { name: host };
            let answer = region
                .admin
                .get_host(request)
                .await
                .map_err(hint)?
                .into_inner();
            show(context, &answer.host.unwrap_or_default(), &answer.servers)
        }
        HostCommand::Disable { host, reason } => {
            let request = v1::DisableHostRequest { name: host, reason };
            let answer = region.admin.disable_host(request).await.map_err(hint)?;
            one(context, &answer.into_inner().host.unwrap_or_default())
        }
        HostCommand::Enable { host } => {
            let request = v1::EnableHostRequest { name: host };
            let answer = region.admin.enable_host(request).await.map_err(hint)?;
            one(context, &answer.into_inner().host.unwrap_or_default())
        }
        HostCommand::Remove { host } => {
            let request = v1::RemoveHostRequest { name: host.clone() };
            let answer = region.admin.remove_host(request).await.map_err(hint)?;
            removed(context, &host, &answer.into_inner());
            Ok(())
        }
        HostCommand::Readmit { host } => {
            let request = v1::ReadmitHostRequest { name: host.clone() };
            region.admin.readmit_host(request).await.map_err(hint)?;
            let line = format!("host {host} registers again with its agent's next heartbeat");
            context.output.say(&line);
            Ok(())
        }
        HostCommand::Reclaim(args) => reclaim::reclaim(context, &mut region, args).await,
        HostCommand::Reclaims { host } => reclaim::reclaims(context, &mut region, host).await,
        HostCommand::Return(args) => {
            let hosts = reclaim::give_back(&mut region, args).await?;
            match hosts.as_slice() {
                [host] => one(context, host),
                hosts => list(context, hosts),
            }
        }
    }
}

/// What was removed, and what an administrator of the broker has to remove.
fn removed(context: &mut Context, host: &str, left: &v1::RemoveHostResponse) {
    let output = &mut context.output;
    output.say(&format!("removed host {host}"));
    let queue = &left.queue;
    if left.queue_deleted {
        output.say(&format!("deleted queue {queue}"));
    } else {
        output.say(&format!(
            "queue {queue} is still at the broker: {}; there: rabbitmqctl delete_queue {queue}",
            left.queue_problem
        ));
    }
    if !left.login.is_empty() {
        let login = &left.login;
        output.say(&format!(
            "the agent's login is still valid at the broker; there: rabbitmqctl delete_user {login}"
        ));
    }
}

fn usage<'a>(host: &'a v1::Host, class: &str) -> Option<&'a v1::ResourceUsage> {
    host.resources
        .iter()
        .find(|usage| usage.resource_class == class)
}

/// A free amount; negative while victims drain.
fn free(amount: Option<i64>) -> TableCell {
    match amount {
        Some(amount) if amount < 0 => TableCell::new(amount).tone(Tone::Warn),
        Some(amount) => TableCell::new(amount),
        None => optional(""),
    }
}

fn list(context: &mut Context, hosts: &[v1::Host]) -> Result<(), CliError> {
    let now = context.output.now();
    let row = |host: &v1::Host| {
        let (cpu, ram) = (usage(host, "VCPU"), usage(host, "MEMORY_MB"));
        vec![
            TableCell::new(&host.name),
            state(&host.health),
            optional(&host.availability_zone),
            TableCell::new(host.normal_servers),
            TableCell::new(host.preemptible_servers),
            free(cpu.map(|u| u.free_full)),
            free(cpu.map(|u| u.free_normal)),
            free(ram.map(|u| u.free_full)),
            free(ram.map(|u| u.free_normal)),
            when(&host.last_seen, now),
            optional(&host.disabled_reason),
        ]
    };
    let listing = Listing {
        columns: vec![
            text("name", "Name"),
            text("health", "Health"),
            text("availability_zone", "Zone").detail(3),
            number("normal_servers", "Normal").detail(1),
            number("preemptible_servers", "Preemptible").detail(1),
            number("vcpu_free_full", "VCPU free (all)"),
            number("vcpu_free_normal", "VCPU free (normal only)"),
            number("ram_free_full", "MiB free (all)"),
            number("ram_free_normal", "MiB free (normal only)"),
            text("last_seen", "Seen").detail(5),
            text("disabled_reason", "Disabled because").detail(2),
        ],
        rows: hosts.iter().map(row).collect(),
        json: json::list(hosts),
        none: "no hosts; start an agent on one (docs/operate/operator-guide.md)",
    };
    context.output.listing(listing)
}

fn details(context: &Context, host: &v1::Host) -> Details {
    let now = context.output.now();
    Details {
        fields: vec![
            ("name", TableCell::new(&host.name)),
            ("health", state(&host.health)),
            ("disabled_reason", optional(&host.disabled_reason)),
            ("availability_zone", optional(&host.availability_zone)),
            ("aggregates", optional(&host.aggregates.join(", "))),
            ("traits", optional(&host.traits.join(", "))),
            ("storage", optional(&host.storage)),
            ("normal_servers", TableCell::new(host.normal_servers)),
            (
                "preemptible_servers",
                TableCell::new(host.preemptible_servers),
            ),
            ("last_seen", when(&host.last_seen, now)),
            ("created_at", when(&host.created_at, now)),
        ],
        json: json::message(host),
    }
}

fn one(context: &mut Context, host: &v1::Host) -> Result<(), CliError> {
    let details = details(context, host);
    context.output.details(details)
}

fn show(context: &mut Context, host: &v1::Host, servers: &[v1::Server]) -> Result<(), CliError> {
    let mut details = details(context, host);
    details.json = details.json.with("servers", json::list(servers));
    context.output.details(details)?;
    if !context.output.is_table() || context.output.has_columns() {
        return Ok(());
    }
    resources(context, &host.resources)?;
    if servers.is_empty() {
        context.output.say("no servers");
        return Ok(());
    }
    context.output.line(&plural(servers.len(), "server"))?;
    server_view::table(context, servers)
}

/// The table of both states, class by class.
///
/// # Errors
/// [`CliError::Write`].
pub fn resources(context: &mut Context, usages: &[v1::ResourceUsage]) -> Result<(), CliError> {
    let row = |usage: &v1::ResourceUsage| {
        vec![
            TableCell::new(&usage.resource_class),
            TableCell::new(usage.total),
            TableCell::new(usage.reserved),
            TableCell::new(decimal(usage.allocation_ratio)),
            TableCell::new(usage.capacity),
            TableCell::new(usage.normal),
            TableCell::new(usage.preemptible),
            TableCell::new(usage.leaving),
            free(Some(usage.free_full)),
            free(Some(usage.free_normal)),
        ]
    };
    let columns = [
        text("resource_class", "Resource class"),
        number("total", "Total").detail(1),
        number("reserved", "Reserved").detail(2),
        number("allocation_ratio", "Ratio").detail(3),
        number("capacity", "Capacity"),
        number("normal", "Normal"),
        number("preemptible", "Preemptible"),
        number("leaving", "Leaving"),
        number("free_full", "Free (all)"),
        number("free_normal", "Free (normal only)"),
    ];
    let rows: Vec<_> = usages.iter().map(row).collect();
    context.output.table(&columns, &rows)
}
