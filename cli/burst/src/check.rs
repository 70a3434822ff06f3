//! One look: what is seen, and what is wrong with the cluster's configuration.

use crate::record_file;
use ebbtide_burst::slurm::Node;
use ebbtide_burst::{BurstError, BurstSettings, Manager, World};
use ebbtide_runtime::clock::unix_millis;
use ebbtide_server_pool::ServerPool;
use ebbtide_shell::errors::CliError;
use ebbtide_slurm::Slurm;

/// What `scontrol show config` has to say, and why.
const NEEDED: [(&str, &str, &str); 3] = [
    (
        "ResumeProgram",
        "(null)",
        "ResumeProgram is not set: Slurm could not create instances; see `ebbtide-burst setup`",
    ),
    (
        "SuspendProgram",
        "(null)",
        "SuspendProgram is not set: Slurm could not give instances back; see `ebbtide-burst setup`",
    ),
    (
        "JobRequeue",
        "0",
        "JobRequeue=0: jobs that lose their node would be lost; set JobRequeue=1",
    ),
];

/// Looks.
///
/// # Errors
/// The first thing that is wrong.
pub(crate) async fn run(settings: &BurstSettings, slurm: &Slurm) -> Result<(), CliError> {
    let nodes = slurm.nodes().await?;
    let jobs = slurm.jobs().await?;
    let names = settings.nodes()?;
    let found = |name: &String| nodes.iter().find(|node| node.name == *name);
    for name in &names {
        let node: Option<&Node> = found(name);
        let problem = match node {
            None => format!(
                "node {name} of slurm.nodes is not there; it needs NodeName={} State=CLOUD, and PrivateData=cloud, without which Slurm hides nodes that are away",
                settings.slurm.nodes
            ),
            Some(node) if !node.is_cloud() => {
                format!("node {name} is not State=CLOUD: it would never be powered up")
            }
            Some(_) => continue,
        };
        return Err(BurstError::Cluster { problem }.into());
    }
    let config = slurm.run("scontrol", &["show", "config"]).await?;
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
    let cloud = ServerPool::connect(settings).await?;
    cloud.verify().await?;
    let instances = cloud.servers().await?;
    let budget = record_file::within_budget(settings, &record_file::read(settings)?, unix_millis());
    let world = World {
        nodes: &nodes,
        jobs: &jobs,
        instances: &instances,
        budget_used_up: budget.is_err(),
    };
    let heard = Manager::new(settings)?.look(unix_millis(), &world)?;
    say!(
        "nodes:      {} of the cloud, {} that stay",
        names.len(),
        nodes.len() - names.len()
    );
    say!(
        "jobs:       {} run, {} in all",
        jobs.iter().filter(|job| job.runs()).count(),
        jobs.len()
    );
    say!("instances:  {}", instances.len());
    say!(
        "long-load ratio {:.2}, above {} more are wanted: {} of at most {}",
        heard.ratio.unwrap_or(0.0),
        settings.policy.threshold,
        heard.target,
        settings.elastic()?.budget()
    );
    budget?;
    Ok(())
}
