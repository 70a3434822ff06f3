//! One look: what is seen, and what is wrong with the cluster's configuration.

use ebbtide_batch_service::check::{cluster, servers};
use ebbtide_batch_service::pool::PoolOptions;
use ebbtide_batch_service::{journal, say};
use ebbtide_burst::{BurstSettings, Load, Manager, World};
use ebbtide_runtime::clock::unix_millis;
use ebbtide_shell::errors::CliError;

/// Looks.
///
/// # Errors
/// The first thing that is wrong.
pub(crate) async fn run(settings: &BurstSettings, pool: &PoolOptions<'_>) -> Result<(), CliError> {
    let names = pool.nodes();
    let (nodes, jobs) = cluster(pool).await?;
    let instances = servers(pool).await?;
    let now = unix_millis();
    let budget = pool.within_budget(&journal::read(&pool.state_dir)?, now);
    let world = World {
        nodes: &nodes,
        jobs: &jobs,
        instances: &instances,
        budget_used_up: budget.is_err(),
        kept: &[],
    };
    let load = Load::of(&world, &names, &settings.slurm);
    let heard = Manager::new(settings)?.look(now, &world, load)?;
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
