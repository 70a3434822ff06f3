//! The replay without a region.

use super::Job;
use crate::error::LabError;
use crate::progress::ReplayProgress;
use ebbtide_config::ConfigError;
use ebbtide_engine::{EngineConfig, RankingPolicy};
use ebbtide_model::Seconds;
use ebbtide_model::flavor::DEFAULT_GRACE;
use ebbtide_runtime::clock;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_simulator::ReplayReport;
use ebbtide_simulator::offline::{OfflineOptions, replay};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is wrong with a file of models.
fn of_model(error: ConfigError) -> CliError {
    match error {
        ConfigError::Model { path, source, .. } => CliError::lifetimes(&path, source),
        other => CliError::Usage(other.to_string()),
    }
}

/// Replays against the engine alone.
pub(super) fn run(context: &mut Context, job: &Job) -> Result<ReplayReport, CliError> {
    let cloud = &job.args.cloud;
    let policy = match cloud.policy.as_str() {
        "first-fit" => RankingPolicy::FirstFit,
        "nova" => RankingPolicy::Nova,
        _ => RankingPolicy::Tiered,
    };
    let mut engine = EngineConfig {
        policy,
        ..EngineConfig::default()
    };
    if let Some(module) = &cloud.cost_module {
        engine.cost_module.clone_from(module);
    }
    engine.weighers.extend(cloud.weighers.iter().cloned());
    engine.lifetime_model.clone_from(&cloud.lifetime_model);
    engine
        .interruption_model
        .clone_from(&cloud.interruption_model);
    engine.risk_horizon_seconds = cloud.horizon;
    ebbtide_config::read_models(&mut engine).map_err(of_model)?;
    let options = OfflineOptions {
        hosts: (0..cloud.hosts)
            .map(|number| job.pattern.host(number))
            .collect(),
        host_cpu: cloud.host_cpu,
        host_mem_gb: cloud.host_mem_gb,
        engine,
        preemptible: job.share,
        grace: job.args.grace.map_or(DEFAULT_GRACE, Seconds),
        sample_every: job.args.sample_every,
        short_seconds: f64::from(cloud.horizon),
    };
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let _listener = ebbtide_runtime::task::spawn("interrupts", async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stopped.store(true, Ordering::Relaxed);
        }
    });
    let mut progress = ReplayProgress::new(context, job.trace.events.len());
    let started = clock::instant();
    let mut tell = |done: usize| {
        progress.set(context, done, "");
        if stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let report = replay(
        &job.trace,
        &options,
        job.recorded.as_ref(),
        &|| started.elapsed(),
        &mut tell,
    );
    progress.end();
    let mut report = report.map_err(LabError::Sim)?;
    report.trace = job.args.file.display().to_string();
    Ok(report)
}
