//! `ebbtide server`: what tenants own.

use crate::commands::server_create::{self, CreateArgs};
use crate::commands::server_group::{self, GroupCommand};
use crate::commands::{server_view, wait};
use clap::{Args, Subcommand};
use ebbtide_client::pages;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::globals::ProjectScope;
use ebbtide_shell::render::relative;
use ebbtide_shell::resolve;
use std::time::Duration;

const LIST: &str = "\
Examples:
  ebbtide server list
  ebbtide server list --all-projects --host host-B
  ebbtide server list --status waiting -o value -c id
  ebbtide server list --deleted            # also those that are gone";
const SHOW: &str = "\
By name, a server that is gone is shown if no other has the name.

Examples:
  ebbtide server show web-1
  ebbtide server show 0190f5fe-7c00-7a00-8000-000000000001 -o json";
const DELETE: &str = "\
Deleting a server that waits for capacity spares the victims that have not acted yet.

Examples:
  ebbtide server delete web-1 web-2
  ebbtide server delete --wait web-1";
const RELEASE: &str = "\
The server ends now instead of at the end of its grace period, which frees its capacity early.

Examples:
  ebbtide server release worker-1";

/// How long `server delete --wait` waits for one server. The agent's grace period does not apply to
/// deletions by the owner.
const DELETE_TIMEOUT: Duration = Duration::from_secs(600);

/// What can be done with servers.
#[derive(Debug, Subcommand)]
pub enum ServerCommand {
    /// New servers, all or nothing
    #[command(after_help = server_create::EXAMPLES)]
    Create(CreateArgs),
    /// The servers of the project
    #[command(after_help = LIST)]
    List(ListArgs),
    /// One server
    #[command(after_help = SHOW)]
    Show {
        /// Name or id
        server: String,
    },
    /// Delete servers
    #[command(after_help = DELETE)]
    Delete {
        /// Names or ids
        #[arg(required = true)]
        servers: Vec<String>,
        /// Wait until they are gone
        #[arg(long)]
        wait: bool,
    },
    /// Give a server under evacuation up before its grace period ends
    #[command(after_help = RELEASE)]
    Release {
        /// Name or id
        server: String,
    },
    /// Server groups
    #[command(subcommand)]
    Group(GroupCommand),
}

/// Options of `server list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Whose
    #[command(flatten)]
    pub scope: ProjectScope,
    /// Only those with this status
    #[arg(long)]
    pub status: Option<String>,
    /// Only those on this host
    #[arg(long)]
    pub host: Option<String>,
    /// Only those with this name
    #[arg(long)]
    pub name: Option<String>,
    /// Also those that are gone: preempted, deleted
    #[arg(long, alias = "include-gone")]
    pub deleted: bool,
    /// At most this many
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
}

/// Does it.
///
/// # Errors
/// What the region says.
pub async fn run(context: &mut Context, command: ServerCommand) -> Result<(), CliError> {
    match command {
        ServerCommand::Create(args) => server_create::run(context, args).await,
        ServerCommand::List(args) => list(context, args).await,
        ServerCommand::Show { server } => {
            let mut region = context.region().await?;
            let server = resolve::server(&mut region, context, &server, true).await?;
            server_view::show(context, &server)
        }
        ServerCommand::Delete { servers, wait } => delete(context, &servers, wait).await,
        ServerCommand::Release { server } => release(context, &server).await,
        ServerCommand::Group(command) => server_group::run(context, command).await,
    }
}

async fn list(context: &mut Context, args: ListArgs) -> Result<(), CliError> {
    let mut region = context.region().await?;
    let request = v1::ListServersRequest {
        project_id: args.scope.project(context),
        status: args.status.unwrap_or_default(),
        host: args.host.unwrap_or_default(),
        name: args.name.unwrap_or_default(),
        include_gone: args.deleted,
        ..Default::default()
    };
    let servers = pages::servers_where(&mut region, request, args.limit).await?;
    server_view::list(context, &servers, args.scope.all_projects)
}

async fn delete(context: &mut Context, servers: &[String], wait: bool) -> Result<(), CliError> {
    let mut region = context.region().await?;
    let mut deleted = Vec::new();
    for text in servers {
        let id = resolve::server_id(&mut region, context, text).await?;
        let request = v1::DeleteServerRequest { id };
        let answer = region.servers.delete_server(request).await;
        let answer = answer.map_err(|status| CliError::from(status).hint(resolve::SERVER_HINT))?;
        let server = answer.into_inner().server.unwrap_or_default();
        context
            .output
            .say(&format!("server {text} is {}", server.status));
        deleted.push(server);
    }
    if wait {
        for server in deleted {
            let gone = wait::until(context, &mut region, &server.id, DELETE_TIMEOUT, |status| {
                matches!(status, "deleted" | "preempted")
            });
            let server = gone.await?;
            context
                .output
                .say(&format!("server {} is {}", server.name, server.status));
        }
    }
    Ok(())
}

async fn release(context: &mut Context, text: &str) -> Result<(), CliError> {
    let mut region = context.region().await?;
    let id = resolve::server_id(&mut region, context, text).await?;
    let request = v1::ReleaseServerRequest { id };
    let answer = region.servers.release_server(request).await;
    let answer = answer.map_err(|status| CliError::from(status).hint(resolve::SERVER_HINT))?;
    let evacuation = answer.into_inner().evacuation.unwrap_or_default();
    let now = context.output.now();
    let instead = if evacuation.deadline_at.is_empty() {
        String::new()
    } else {
        format!(
            " (its grace period would have ended {})",
            relative(&evacuation.deadline_at, now)
        )
    };
    context
        .output
        .say(&format!("released server {text}{instead}"));
    super::evacuation::show_one(context, &mut region, &evacuation).await
}
