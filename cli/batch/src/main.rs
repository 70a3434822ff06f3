//! `ebbtide-batch`: the batch service beside slurmctld, and the programs that slurmctld calls.

mod service;

use clap::Parser;
use ebbtide_batch::BatchSettings;
use ebbtide_batch_service::args::{Cli, Task};
use ebbtide_batch_service::pool::PoolOptions;
use ebbtide_batch_service::program::finish;
use ebbtide_batch_service::{check, say, storage};
use ebbtide_burst::ClusterSnapshot;
use ebbtide_runtime::clock::unix_millis;
use ebbtide_shell::errors::CliError;
use service::elastic::ElasticPartition;
use service::fault::ServiceError;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    finish(run(Cli::parse()))
}

async fn run(cli: Cli) -> Result<(), CliError> {
    if let Task::Bag { .. } = cli.task {
        let words = "the service runs bags by maps: `ebbtide batch submit FILE`, after `maps = true` in [[types]] of its file; see docs/tenants/bags.md#run-it";
        return Err(CliError::Usage(words.to_owned()));
    }
    let settings = read(&cli.config)?;
    let pool = PoolOptions::new(&settings).map_err(ServiceError::from)?;
    match cli.task {
        Task::Run { observe } => Box::pin(service::run(&settings, pool, observe)).await,
        Task::Bag { .. } => Ok(()),
        Task::Check => Box::pin(look(&settings, &pool)).await,
        Task::Pool(task) => Box::pin(task.carry_out(&pool, &cli.config)).await,
    }
}

fn read(path: &Path) -> Result<BatchSettings, CliError> {
    let text = std::fs::read_to_string(path).map_err(storage("read", path))?;
    // A credential of systemd is a file itself.
    let file_of = ebbtide_service_manager::credential_file;
    Ok(BatchSettings::parse_with(&text, file_of)
        .map_err(|error| ServiceError::in_file(path, error))?)
}

async fn look(settings: &BatchSettings, pool: &PoolOptions<'_>) -> Result<(), CliError> {
    let (nodes, jobs) = check::cluster(pool).await?;
    let servers = check::servers(pool).await?;
    for ty in settings.server_types().map_err(ServiceError::from)? {
        let market = if ty.preemptible {
            "preemptible"
        } else {
            "on demand"
        };
        say!(
            "type {}: {} nodes, flavor {}, {market}{}",
            ty.name,
            ty.nodes.len(),
            ty.flavor,
            if ty.maps { ", for bags by maps" } else { "" }
        );
    }
    say!(
        "nodes:   {} of the cloud of {} in all",
        pool.nodes().len(),
        nodes.len()
    );
    say!(
        "jobs:    {} run, {} in all",
        jobs.iter().filter(|job| job.runs()).count(),
        jobs.len()
    );
    say!("servers: {}", servers.len());
    let budget = pool.budget_on_disk();
    if let Some(mut elastic) = ElasticPartition::new(settings).map_err(ServiceError::from)? {
        let world = ClusterSnapshot {
            nodes: &nodes,
            jobs: &jobs,
            instances: &servers,
            budget_used_up: budget.is_err(),
            kept: &[],
        };
        elastic.look(unix_millis(), &world)?;
        elastic.view.iter().for_each(|view| say!("{view}"));
    }
    Ok(budget?)
}
