//! The service: one loop that looks at Slurm and the cloud, runs works and the elastic partition,
//! and answers the calls of tenants between its looks.

mod answers;
mod api;
pub(crate) mod elastic;
pub(crate) mod fault;
mod health;
mod marks;
mod metrics;
mod rehearsal;
mod shell;
mod start;

use crate::service::answers::Call;
use crate::service::health::Health;
use crate::service::shell::Service;
use ebbtide_batch::BatchSettings;
use ebbtide_batch_service::faults::log;
use ebbtide_batch_service::pool::PoolOptions;
use ebbtide_batch_service::say;
use ebbtide_service_manager as service_manager;
use ebbtide_shell::errors::CliError;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

/// Calls that wait for the loop at most.
const CALLS: usize = 64;

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// What makes it impossible from the beginning: settings, the book, the address. What goes wrong
/// later is reported, written down, and tried again.
pub(crate) async fn run(
    settings: &BatchSettings,
    pool: PoolOptions<'_>,
    observe: bool,
) -> Result<(), CliError> {
    let mut poll = tokio::time::interval(Duration::from_secs_f64(settings.poll_seconds));
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut service = Service::open(settings, pool, observe)?;
    let (sender, mut calls) = mpsc::channel::<Call>(CALLS);
    let _api = api::serve(settings, sender).await?;
    let health = Health::new(settings);
    let _pages = health.serve(settings.http.listen).await?;
    let seen = health.clone();
    let _watchdog = service_manager::watch(move || {
        let alive = seen.is_alive();
        async move { alive }
    });
    log(&format!("serving at {}", settings.listen));
    service_manager::ready(&format!("serving at {}", settings.listen));
    loop {
        health.beat();
        // A latest start of a backup is not waited for until the next poll.
        let due = service.wake_in();
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            Some(call) = calls.recv() => service.answer(call),
            () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => {
                service.look().await?;
                health.looked(&mut service);
            }
            _ = poll.tick() => {
                // Callers that wait are answered first: a look may take as long as the cloud.
                for _ in 0..CALLS {
                    let Ok(call) = calls.try_recv() else { break };
                    service.answer(call);
                }
                service.look().await?;
                health.looked(&mut service);
            }
        }
    }
    service_manager::stopping();
    say!("ended; servers stay, jobs go on, and are found again");
    Ok(())
}
