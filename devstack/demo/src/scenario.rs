//! A table of the paper, loaded into a running region.

use anyhow::{Context, Result, bail};
use ebbtide_engine::papers::{PaperInstance, PaperTable};
use ebbtide_model::flavor::{GRACE_SECONDS, PREEMPTIBLE};
use ebbtide_model::{Seconds, Timestamp};
use ebbtide_proto::v1;
use ebbtide_proto::v1::admin_client::AdminClient;
use ebbtide_proto::v1::servers_client::ServersClient;
use std::collections::HashMap;
use std::time::Duration;
use tonic::transport::Channel;

/// Who owns what the story makes.
pub const PROJECT: &str = "paper";
/// The tenant whose normal request needs room.
pub const TENANT: &str = "science";
/// How long hosts and servers may take to come up.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often the region is asked meanwhile.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// The name of a flavor of the paper's sizes, `S`, `M` or `L`.
#[must_use]
pub fn flavor_name(size: &str, preemptible: bool) -> String {
    let name = match size {
        "S" => "small",
        "M" => "medium",
        _ => "large",
    };
    if preemptible {
        format!("p.{name}")
    } else {
        name.to_owned()
    }
}

/// Makes the paper's flavors, preemptible and normal.
///
/// # Errors
/// What the region answers.
pub async fn create_flavors(admin: &mut AdminClient<Channel>, grace: Seconds) -> Result<()> {
    for (size, vcpus, ram_mb, disk_gb) in
        [("S", 1, 2000, 20), ("M", 2, 4000, 40), ("L", 4, 8000, 80)]
    {
        for preemptible in [false, true] {
            let extra_specs = if preemptible {
                HashMap::from([
                    (PREEMPTIBLE.to_owned(), "true".to_owned()),
                    (GRACE_SECONDS.to_owned(), grace.0.to_string()),
                ])
            } else {
                HashMap::new()
            };
            let name = flavor_name(size, preemptible);
            let flavor = v1::Flavor {
                name,
                vcpus,
                ram_mb,
                disk_gb,
                extra_specs,
                ..v1::Flavor::default()
            };
            admin
                .create_flavor(v1::CreateFlavorRequest {
                    flavor: Some(flavor),
                })
                .await?;
        }
    }
    Ok(())
}

/// Waits until every host of the table is up.
///
/// # Errors
/// A host that does not come.
pub async fn wait_for_hosts(admin: &mut AdminClient<Channel>, table: &PaperTable) -> Result<()> {
    let wait = async {
        loop {
            let hosts = admin
                .list_hosts(v1::ListHostsRequest {})
                .await?
                .into_inner()
                .hosts;
            let is_up = |name: &str| hosts.iter().any(|h| h.name == name && h.health == "up");
            if table.hosts.iter().all(|h| is_up(&h.name)) {
                return Ok::<(), anyhow::Error>(());
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .context("the agents of the four hosts did not register in time")?
}

/// Starts the table's instances on their hosts, as old as the paper says, and waits until all run.
///
/// # Errors
/// What the region answers, or a server that does not start.
pub async fn load(
    admin: &mut AdminClient<Channel>,
    servers: &mut ServersClient<Channel>,
    table: &PaperTable,
    now: Timestamp,
) -> Result<()> {
    let mut wanted = Vec::new();
    for host in &table.hosts {
        let groups = [(&host.normal, false), (&host.preemptible, true)];
        for (instances, preemptible) in groups {
            for instance in instances {
                let request = adopt(instance, &host.name, preemptible, now);
                let server = admin.adopt_server(request).await?.into_inner().server;
                wanted.push(server.map(|s| s.id).unwrap_or_default());
            }
        }
    }
    let wait = async {
        loop {
            let filter = v1::ListServersRequest {
                project_id: PROJECT.to_owned(),
                ..Default::default()
            };
            let all = servers.list_servers(filter).await?.into_inner().servers;
            if let Some(broken) = all.iter().find(|s| s.status == "error") {
                bail!(
                    "server {} did not start: {}",
                    broken.name,
                    broken.fault_message
                );
            }
            if wanted
                .iter()
                .all(|id| all.iter().any(|s| s.id == *id && s.status == "active"))
            {
                return Ok(());
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .context("the servers of the scenario did not start in time")?
}

fn adopt(
    instance: &PaperInstance,
    host: &str,
    preemptible: bool,
    now: Timestamp,
) -> v1::AdoptServerRequest {
    v1::AdoptServerRequest {
        id: String::new(),
        name: instance.id.clone(),
        project_id: PROJECT.to_owned(),
        flavor: flavor_name(&instance.size, preemptible),
        host: host.to_owned(),
        launched_at: now
            .minus(Seconds(instance.minutes.saturating_mul(60)))
            .to_string(),
        start_now: true,
        group: String::new(),
    }
}
