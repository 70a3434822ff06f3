//! `ebbtide server group`: servers that belong together, or apart.

use clap::Subcommand;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::globals::ProjectScope;
use ebbtide_shell::json;
use ebbtide_shell::output::{Details, Listing, TableCell, number, text};
use ebbtide_shell::resolve;

const CREATE: &str = "\
Examples:
  ebbtide server group create --policy anti-affinity web
  ebbtide server group create --policy anti-affinity --max-server-per-host 2 db
  ebbtide server group create --policy soft-affinity cache";
const LIST: &str =
    "Examples:\n  ebbtide server group list\n  ebbtide server group list --all-projects";
const DELETE: &str = "Examples:\n  ebbtide server group delete web";

/// What can be done with server groups.
#[derive(Debug, Subcommand)]
pub enum GroupCommand {
    /// A new server group
    #[command(after_help = CREATE)]
    Create {
        /// Together on one host, or apart; the soft ones are wishes
        #[arg(long, value_parser = ["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"])]
        policy: String,
        /// With anti-affinity: how many may share a host
        #[arg(long, default_value_t = 1, value_name = "N")]
        max_server_per_host: u32,
        /// Its name
        name: String,
    },
    /// The server groups of the project
    #[command(after_help = LIST)]
    List(ProjectScope),
    /// Delete server groups
    #[command(after_help = DELETE)]
    Delete {
        /// Names or ids
        #[arg(required = true)]
        groups: Vec<String>,
    },
}

/// Does it.
///
/// # Errors
/// What the region says.
pub async fn run(context: &mut Context, command: GroupCommand) -> Result<(), CliError> {
    let mut region = context.region().await?;
    match command {
        GroupCommand::Create {
            policy,
            max_server_per_host,
            name,
        } => {
            let group = v1::ServerGroup {
                name,
                project_id: context.project.clone(),
                policy,
                max_server_per_host,
                ..Default::default()
            };
            let request = v1::CreateServerGroupRequest { group: Some(group) };
            let answer = region.servers.create_server_group(request).await?;
            let group = answer.into_inner().group.unwrap_or_default();
            context.output.details(Details {
                fields: vec![
                    ("id", TableCell::new(&group.id)),
                    ("name", TableCell::new(&group.name)),
                    ("project_id", TableCell::new(&group.project_id)),
                    ("policy", TableCell::new(&group.policy)),
                    (
                        "max_server_per_host",
                        TableCell::new(group.max_server_per_host),
                    ),
                ],
                json: json::message(&group),
            })
        }
        GroupCommand::List(scope) => {
            let request = v1::ListServerGroupsRequest {
                project_id: scope.project(context),
            };
            let groups = region
                .servers
                .list_server_groups(request)
                .await?
                .into_inner()
                .groups;
            let row = |group: &v1::ServerGroup| {
                vec![
                    TableCell::new(&group.id),
                    TableCell::new(&group.name),
                    TableCell::new(&group.project_id),
                    TableCell::new(&group.policy),
                    TableCell::new(group.max_server_per_host),
                ]
            };
            context.output.listing(Listing {
                columns: vec![
                    text("id", "ID").detail(3),
                    text("name", "Name"),
                    text("project_id", "Project").detail(2),
                    text("policy", "Policy"),
                    number("max_server_per_host", "Most a host").detail(1),
                ],
                rows: groups.iter().map(row).collect(),
                json: json::list(&groups),
                none: "no server groups",
            })
        }
        GroupCommand::Delete { groups } => {
            for text in groups {
                let id = resolve::group_id(&mut region, context, &text).await?;
                let request = v1::DeleteServerGroupRequest { id };
                let answer = region.servers.delete_server_group(request).await;
                answer.map_err(|status| CliError::from(status).hint(resolve::GROUP_HINT))?;
                context.output.say(&format!("deleted server group {text}"));
            }
            Ok(())
        }
    }
}
