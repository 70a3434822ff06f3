//! What is wrong with the cluster's configuration and with the cloud's.

use crate::pool::PoolOptions;
use ebbtide_burst::slurm::{Node, SlurmJob};
use ebbtide_burst::{BurstError, PoolServer};
use ebbtide_shell::errors::CliError;

/// What `scontrol show config` has to say, and why.
const NEEDED: [(&str, &str, &str); 3] = [
    (
        "ResumeProgram",
        "(null)",
        "ResumeProgram is not set: Slurm could not create instances; see `setup`",
    ),
    (
        "SuspendProgram",
        "(null)",
        "SuspendProgram is not set: Slurm could not give instances back; see `setup`",
    ),
    (
        "JobRequeue",
        "0",
        "JobRequeue=0: jobs that lose their node would be lost; set JobRequeue=1",
    ),
];

/// The nodes and jobs of a cluster that has what the pool needs.
///
/// # Errors
/// [`BurstError::Cluster`] with the first thing that is wrong; those of Slurm.
pub async fn cluster(pool: &PoolOptions<'_>) -> Result<(Vec<Node>, Vec<SlurmJob>), CliError> {
    let nodes = pool.slurm.nodes().await?;
    let jobs = pool.slurm.jobs().await?;
    for name in &pool.nodes() {
        let node: Option<&Node> = nodes.iter().find(|node| node.name == *name);
        let problem = match node {
            None => format!(
                "node {name} is not there; it needs a NodeName line with State=CLOUD, and PrivateData=cloud, without which Slurm hides nodes that are away"
            ),
            Some(node) if !node.is_cloud() => {
                format!("node {name} is not State=CLOUD: it would never be powered up")
            }
            Some(_) => continue,
        };
        return Err(BurstError::Cluster { problem }.into());
    }
    let config = pool.slurm.run("scontrol", &["show", "config"]).await?;
    for (key, wrong, problem) in NEEDED {
        let line = config
            .lines()
            .find(|line| line.trim_start().starts_with(key));
        let value = line
            .and_then(|line| line.split_once('='))
            .map(|(_, value)| value.trim());
        if value.is_none_or(|value| value == wrong) {
            let problem = problem.to_owned();
            return Err(BurstError::Cluster { problem }.into());
        }
    }
    Ok((nodes, jobs))
}

/// The servers of a cloud that has what the pool needs.
///
/// # Errors
/// As [`ebbtide_server_pool::ServerPool::verify`]; those of the cloud.
pub async fn servers(pool: &PoolOptions<'_>) -> Result<Vec<PoolServer>, CliError> {
    let cloud = pool.connect().await?;
    cloud.verify().await?;
    cloud.servers().await
}
