//! The loop: look at Slurm and the cloud, write down what is new, do what the manager says.

use ebbtide_batch_service::accounts::learn_servers;
use ebbtide_batch_service::act::Actor;
use ebbtide_batch_service::faults::{Faults, log};
use ebbtide_batch_service::journal::RecordFile;
use ebbtide_batch_service::pool::PoolOptions;
use ebbtide_batch_service::say;
use ebbtide_burst::slurm::Ageing;
use ebbtide_burst::{BurstEvent, BurstSettings, Load, Manager, RecordEntry, World};
use ebbtide_runtime::clock::unix_millis;
use ebbtide_server_pool::ServerPool;
use ebbtide_shell::errors::CliError;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::MissedTickBehavior;

/// How often Slurm's configuration is read again, milliseconds: operators change it seldom.
const CONFIG_MS: i64 = 600_000;

/// A controller at work.
struct Controller<'a> {
    settings: &'a BurstSettings,
    pool: PoolOptions<'a>,
    /// None while the cloud cannot be reached.
    cloud: Option<Arc<ServerPool>>,
    manager: Manager,
    record_file: RecordFile,
    faults: Faults,
    last: String,
    began: bool,
    observe: bool,
    /// When Slurm's configuration is read next.
    config_due: i64,
}

/// Looks after the cluster until SIGTERM or SIGINT.
///
/// # Errors
/// What makes it impossible from the beginning: settings, the record. What goes wrong later is
/// said, written down, and tried again.
pub(crate) async fn run(
    settings: &BurstSettings,
    pool: PoolOptions<'_>,
    observe: bool,
) -> Result<(), CliError> {
    let mut poll = tokio::time::interval(Duration::from_secs_f64(settings.poll_seconds));
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut controller = Controller {
        manager: Manager::new(settings)?,
        record_file: RecordFile::open(&pool.state_dir)?,
        cloud: None,
        faults: Faults::default(),
        last: String::new(),
        began: false,
        config_due: i64::MIN,
        settings,
        pool,
        observe,
    };
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = poll.tick() => {}
        }
        match controller.reconcile().await {
            Ok(()) => controller.faults.over("look"),
            Err(error) => controller.lasting("look", &error)?,
        }
    }
    say!("ended; the instances that are there stay, and are found again");
    Ok(())
}

impl Controller<'_> {
    async fn reconcile(&mut self) -> Result<(), CliError> {
        let nodes = self.pool.slurm.nodes().await?;
        let jobs = self.pool.slurm.jobs().await?;
        let at = unix_millis();
        let ours = self.pool.nodes();
        let policy = &self.settings.policy;
        if !self.began {
            let stays = nodes.iter().filter(|node| !ours.contains(&node.name));
            let event = BurstEvent::Began {
                stays: stays.map(|node| (node.name.clone(), node.cpus)).collect(),
                preemptible: policy.preemptible_price.micros(),
                on_demand: policy.on_demand_price.micros(),
            };
            self.record_file.note(&RecordEntry { at, event })?;
            self.began = true;
        }
        let record = &mut self.record_file.record;
        let facts = record.learn(at, &jobs, &self.settings.slurm);
        self.record_file.write(&facts)?;
        if self.observe {
            return Ok(());
        }
        // Also after the clock was set back.
        if at >= self.config_due || self.config_due > at + CONFIG_MS {
            let config = self.pool.slurm.run("scontrol", &["show", "config"]).await;
            match config.and_then(|config| Ageing::of(&config)) {
                Ok(ageing) => {
                    self.manager.set_ageing(ageing);
                    self.config_due = at + CONFIG_MS;
                    self.faults.over("config");
                }
                // Jobs may lose their places then, which is no reason to leave nodes alone.
                Err(error) => {
                    let error = CliError::from(error);
                    self.faults
                        .lasting(&mut self.record_file, "config", &error)?;
                }
            }
        }
        let cloud = self.cloud().await?;
        let instances = cloud.servers().await?;
        let manager = &self.manager;
        let own = policy.preemptible_price.micros();
        learn_servers(
            &mut self.record_file,
            &self.pool,
            &cloud,
            &instances,
            |_| own,
            |id| manager.has_come_up(id),
        )
        .await?;
        let budget = self.pool.within_budget(&self.record_file.record, at);
        let world = World {
            nodes: &nodes,
            jobs: &jobs,
            instances: &instances,
            budget_used_up: budget.is_err(),
            kept: &[],
        };
        let load = Load::of(&world, &ours, &self.settings.slurm);
        let heard = self.manager.look(at, &world, load)?;
        match budget {
            Ok(()) => self.faults.over("budget"),
            Err(error) => self.lasting("budget", &error.into())?,
        }
        for error in heard.troubles {
            self.faults.note(&mut self.record_file, &error.into())?;
        }
        let actor = Actor {
            slurm: &self.pool.slurm,
            cloud: &cloud,
            servers: &instances,
            signal: &self.settings.slurm.checkpoint_signal,
        };
        match actor.all(&heard.actions).await {
            Err(error) => self.lasting("act", &error)?,
            // Nothing to do is no sign that what was refused would not be refused again.
            Ok(()) if !heard.actions.is_empty() => self.faults.over("act"),
            Ok(()) => {}
        }
        let there = instances.iter().filter(|one| one.status.is_there()).count();
        let line = format!(
            "long-load ratio {:.2}, {} instances wanted, {there} there",
            heard.ratio.unwrap_or(0.0),
            heard.target
        );
        if line != self.last {
            log(&line);
            self.last = line;
        }
        Ok(())
    }

    async fn cloud(&mut self) -> Result<Arc<ServerPool>, CliError> {
        if let Some(cloud) = &self.cloud {
            return Ok(Arc::clone(cloud));
        }
        let cloud = Arc::new(self.pool.connect().await?);
        self.cloud = Some(Arc::clone(&cloud));
        Ok(cloud)
    }

    fn lasting(&mut self, place: &str, error: &CliError) -> Result<(), CliError> {
        Ok(self.faults.lasting(&mut self.record_file, place, error)?)
    }
}
