//! What slurmctld calls: nodes come, nodes go. These programs are done in the time of one call to
//! the region, since slurmctld waits for many of them at a time; what is missing afterwards is seen
//! by the controller.

use crate::pool::PoolOptions;
use ebbtide_burst::BurstError;
use ebbtide_burst::slurm::hosts;
use ebbtide_server_pool::ServerPool;
use ebbtide_shell::errors::CliError;

/// The nodes of a list, all of which have to be ours.
fn ours(pool: &PoolOptions<'_>, list: &str) -> Result<Vec<String>, BurstError> {
    let known = pool.nodes();
    let asked = hosts(list)?;
    match asked.iter().find(|node| !known.contains(node)) {
        Some(node) => Err(BurstError::NotOurs {
            node: node.clone(),
            nodes: known.join(","),
        }),
        None => Ok(asked),
    }
}

/// Creates the instances of nodes. A node that gets none is told to Slurm as down, with the reason,
/// so that its jobs go back into the queue at once.
///
/// # Errors
/// The first node's that got none.
pub async fn resume(pool: &PoolOptions<'_>, list: &str) -> Result<(), CliError> {
    let nodes = ours(pool, list)?;
    let mut first = None;
    let cloud = match begin(pool).await {
        Ok(cloud) => Some(cloud),
        Err(error) => {
            first = Some(error);
            None
        }
    };
    for node in nodes {
        let why = match &cloud {
            Some(cloud) => match create(cloud, &node).await {
                Ok(id) => {
                    say!("{node}: instance {id}");
                    continue;
                }
                Err(error) => {
                    let why = words(&error);
                    first.get_or_insert(error);
                    why
                }
            },
            None => first.as_ref().map(words).unwrap_or_default(),
        };
        let reason = format!("reason=ebbtide-batch: {why}");
        pool.slurm.node(&node, &["state=down", &reason]).await?;
    }
    first.map_or(Ok(()), Err)
}

/// For Slurm, which names the node itself.
fn words(error: &CliError) -> String {
    match error {
        CliError::Burst(BurstError::NoInstance { problem, .. }) => problem.clone(),
        other => format!("{}: {other}", other.code()),
    }
}

async fn begin(pool: &PoolOptions<'_>) -> Result<ServerPool, CliError> {
    pool.budget_on_disk()?;
    pool.connect().await
}

/// Asked twice, a node has one instance.
async fn create(cloud: &ServerPool, node: &str) -> Result<String, CliError> {
    let all = cloud.servers().await?;
    let there = all
        .into_iter()
        .find(|one| one.node == node && one.status.is_there());
    match there {
        Some(one) => Ok(one.id),
        None => cloud.create(node).await,
    }
}

/// Gives the instances of nodes back.
///
/// # Errors
/// The region's; the controller sees what is left, and deletes it.
pub async fn suspend(pool: &PoolOptions<'_>, list: &str) -> Result<(), CliError> {
    let nodes = ours(pool, list)?;
    let cloud = pool.connect().await?;
    let all = cloud.servers().await?;
    for one in all.iter().filter(|one| nodes.contains(&one.node)) {
        cloud.give_back(one).await?;
        say!("{}: instance {} given back", one.node, one.id);
    }
    Ok(())
}

/// Deletes the instances of nodes whose slurmd did not come up within ResumeTimeout. The nodes
/// themselves are the controller's business.
///
/// # Errors
/// The region's.
pub async fn failed(pool: &PoolOptions<'_>, list: &str) -> Result<(), CliError> {
    for node in ours(pool, list)? {
        let instance = "its own".to_owned();
        let error = CliError::from(BurstError::NeverUp { node, instance });
        complain!("{}: {error}", error.code());
    }
    suspend(pool, list).await
}
