//! What the servers of a run are like on an OpenStack, and the cloud that they come from.

use clap::Args;
use ebbtide_burst::OpenStackSettings;
use ebbtide_server_pool::ServerPool;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use std::path::PathBuf;

/// Options of servers.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Servers of an OpenStack")]
pub(super) struct OrderArgs {
    /// Their image, name or id
    #[arg(long, value_name = "IMAGE", requires = "flavor")]
    image: Option<String>,
    /// Their network: auto, none, or a name or id
    #[arg(
        long,
        default_value = "auto",
        value_name = "NETWORK",
        requires = "image"
    )]
    network: String,
    /// Key pair
    #[arg(long, value_name = "KEY", requires = "image")]
    key_name: Option<String>,
    /// A security group, may be given several times [default: the project's]
    #[arg(long, value_name = "GROUP", requires = "image")]
    security_group: Vec<String>,
    /// A file for cloud-init
    #[arg(long, value_name = "FILE", requires = "image")]
    user_data: Option<PathBuf>,
    /// Availability zone [default: any]
    #[arg(long, value_name = "ZONE", requires = "flavor")]
    zone: Option<String>,
}

impl OrderArgs {
    /// Connects to the OpenStack that the command line or variables name, else to the region.
    pub(super) async fn pool(
        &self,
        context: &mut Context,
        creates: bool,
    ) -> Result<ServerPool, CliError> {
        let Some(request) = context.cloud_request.take() else {
            if self.image.is_some() {
                let problem = "--image is for servers of an OpenStack; say which: --os-cloud";
                return Err(CliError::Usage(problem.to_owned()));
            }
            let talk = format!("region {}", context.endpoint);
            context.output.say_at_terminal(&talk);
            let region = context.region().await?;
            return Ok(ServerPool::of_region(
                region,
                context.project.clone(),
                self.zone.clone(),
            ));
        };
        if creates && self.image.is_none() {
            let problem = "a server of an OpenStack needs an image: --image";
            return Err(CliError::Usage(problem.to_owned()));
        }
        let settings = OpenStackSettings {
            cloud: request.name,
            clouds_file: None,
            region_name: request.region,
            image: self.image.clone().unwrap_or_default(),
            network: self.network.clone(),
            user_data: self.user_data.clone(),
            key_name: self.key_name.clone(),
            security_groups: self.security_group.clone(),
            zone: self.zone.clone(),
        };
        ServerPool::of_openstack(&settings).await
    }
}
