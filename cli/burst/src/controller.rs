//! The loop: look at Slurm and the cloud, write down what is new, do what the manager says.

use crate::record_file::{self, RecordFile};
use ebbtide_burst::{
    BurstAction, BurstError, BurstEvent, BurstSettings, Manager, PoolServer, RESTING, RecordEntry,
    World,
};
use ebbtide_runtime::clock::unix_millis;
use ebbtide_server_pool::ServerPool;
use ebbtide_shell::errors::CliError;
use ebbtide_slurm::Slurm;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::MissedTickBehavior;

/// A controller at work.
struct Controller {
    settings: BurstSettings,
    slurm: Slurm,
    /// None while the cloud cannot be reached.
    cloud: Option<Arc<ServerPool>>,
    manager: Manager,
    record_file: RecordFile,
    /// What is wrong now, by its code, and where: so that it is said once.
    wrong: BTreeMap<String, String>,
    last: String,
    began: bool,
    observe: bool,
}

/// Looks after the cluster until SIGTERM or SIGINT.
///
/// # Errors
/// What makes it impossible from the beginning: settings, the record. What goes wrong later is
/// said, written down, and tried again.
pub(crate) async fn run(
    settings: BurstSettings,
    slurm: Slurm,
    observe: bool,
) -> Result<(), CliError> {
    let mut poll = tokio::time::interval(Duration::from_secs_f64(settings.poll_seconds));
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut controller = Controller {
        manager: Manager::new(&settings)?,
        record_file: RecordFile::open(&settings)?,
        cloud: None,
        wrong: BTreeMap::new(),
        last: String::new(),
        began: false,
        settings,
        slurm,
        observe,
    };
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = poll.tick() => {}
        }
        match controller.reconcile().await {
            Ok(()) => controller.clear_fault("look"),
            Err(error) => controller.trouble("look", &error)?,
        }
    }
    say!("ended; the instances that are there stay, and are found again");
    Ok(())
}

impl Controller {
    async fn reconcile(&mut self) -> Result<(), CliError> {
        let nodes = self.slurm.nodes().await?;
        let jobs = self.slurm.jobs().await?;
        let at = unix_millis();
        let ours = self.settings.nodes()?;
        if !self.began {
            let stays = nodes.iter().filter(|node| !ours.contains(&node.name));
            let event = BurstEvent::Began {
                stays: stays.map(|node| (node.name.clone(), node.cpus)).collect(),
                preemptible: self.settings.policy.preemptible_price.micros(),
                on_demand: self.settings.policy.on_demand_price.micros(),
            };
            self.record_file.note(&RecordEntry { at, event })?;
            self.began = true;
        }
        let facts = self
            .record_file
            .record
            .learn(at, &jobs, &self.settings.slurm);
        self.record_file.write(&facts)?;
        if self.observe {
            return Ok(());
        }
        let cloud = self.cloud().await?;
        let instances = cloud.servers().await?;
        self.account(at, &cloud, &instances).await?;
        let budget = record_file::within_budget(&self.settings, &self.record_file.record, at);
        let world = World {
            nodes: &nodes,
            jobs: &jobs,
            instances: &instances,
            budget_used_up: budget.is_err(),
        };
        let heard = self.manager.look(at, &world)?;
        match budget {
            Ok(()) => self.clear_fault("budget"),
            Err(error) => self.trouble("budget", &error.into())?,
        }
        for error in heard.troubles {
            self.note(&error.into())?;
        }
        let (mut first, acts) = (None, !heard.actions.is_empty());
        for action in heard.actions {
            if let Err(error) = self.act(&cloud, &instances, &action).await {
                first.get_or_insert(error);
            }
        }
        match first {
            Some(error) => self.trouble("act", &error)?,
            // Nothing to do is no sign that what was refused would not be refused again.
            None if acts => self.clear_fault("act"),
            None => {}
        }
        let there = instances.iter().filter(|one| one.status.is_there()).count();
        let line = format!(
            "long-load ratio {:.2}, {} instances wanted, {there} there",
            heard.ratio.unwrap_or(0.0),
            heard.target
        );
        if line != self.last {
            self.log(&line);
            self.last = line;
        }
        Ok(())
    }

    async fn cloud(&mut self) -> Result<Arc<ServerPool>, CliError> {
        if let Some(cloud) = &self.cloud {
            return Ok(Arc::clone(cloud));
        }
        let cloud = Arc::new(ServerPool::connect(&self.settings).await?);
        self.cloud = Some(Arc::clone(&cloud));
        Ok(cloud)
    }

    /// Writes down what is new of the instances.
    async fn account(
        &mut self,
        at: i64,
        cloud: &ServerPool,
        listed: &[PoolServer],
    ) -> Result<(), CliError> {
        let mut all = listed.to_vec();
        let record = &self.record_file.record;
        let open = record.lives.iter().filter(|(_, life)| life.end.is_none());
        let missing = open.filter(|(id, _)| !listed.iter().any(|one| one.id == **id));
        for (id, _) in missing {
            // When it ended, and by whose will, is known to the cloud.
            all.extend(cloud.server(id).await?);
        }
        let fresh = listed.iter().any(|one| {
            one.launched_ms.is_some() && !self.record_file.record.lives.contains_key(&one.id)
        });
        let own = self.settings.policy.preemptible_price.micros();
        let hourly = if fresh {
            cloud
                .price()
                .await
                .filter(|price| *price > 0)
                .unwrap_or(own)
        } else {
            own
        };
        let manager = &self.manager;
        let facts = self
            .record_file
            .record
            .learn_instances(at, &all, hourly, |id| manager.has_come_up(id));
        self.record_file.write(&facts)?;
        Ok(())
    }

    async fn act(
        &mut self,
        cloud: &ServerPool,
        instances: &[PoolServer],
        action: &BurstAction,
    ) -> Result<(), CliError> {
        let slurm = &self.slurm;
        let done = match action {
            BurstAction::PowerUp { node } => slurm.node(node, &["state=power_up"]).await,
            BurstAction::Open { node } => slurm.node(node, &["state=undrain"]).await,
            BurstAction::Drain { node, reason } => {
                let reason = format!("reason={reason}");
                slurm.node(node, &["state=drain", &reason]).await
            }
            BurstAction::Rest { node } => {
                let reason = format!("reason={RESTING}");
                slurm.node(node, &["state=drain", &reason]).await
            }
            BurstAction::Down { node, reason } => {
                let reason = format!("reason={reason}");
                slurm.node(node, &["state=down", &reason]).await
            }
            BurstAction::PowerDown { node } => slurm.node(node, &["state=power_down_force"]).await,
            BurstAction::Delete { instance } => {
                let one = instances.iter().find(|one| one.id == *instance);
                match one {
                    Some(one) => cloud.give_back(one).await?,
                    None => cloud.delete(instance).await?,
                }
                Ok(())
            }
            BurstAction::Signal { job } => {
                let signal = format!("--signal={}", self.settings.slurm.checkpoint_signal);
                let job = job.to_string();
                slurm
                    .run("scancel", &["--batch", &signal, &job])
                    .await
                    .map(drop)
            }
            BurstAction::Requeue { job } => {
                let job = job.to_string();
                slurm
                    .run("scontrol", &["requeue", "incomplete", &job])
                    .await
                    .map(drop)
            }
            BurstAction::StartNow { job } => {
                let job = format!("jobid={job}");
                slurm
                    .run("scontrol", &["update", &job, "starttime=now"])
                    .await
                    .map(drop)
            }
            BurstAction::Label { node, label } => {
                let features = label.features.join(",");
                let mut changes = vec![
                    format!("weight={}", label.weight),
                    format!("comment={}", label.comment),
                ];
                if !features.is_empty() {
                    changes.push(format!("availablefeatures={features}"));
                    changes.push(format!("activefeatures={features}"));
                }
                let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
                return Ok(slurm.node(node, &changes).await?);
            }
        };
        // The code is said by `trouble`, once for as long as it lasts; what was not done is said
        // here each time.
        self.log(&match &done {
            Ok(()) => describe(action),
            Err(error) => format!("{}: not done: {error}", describe(action)),
        });
        Ok(done?)
    }

    fn log(&self, words: &str) {
        let at = ebbtide_runtime::clock::utc();
        say!(
            "{:02}:{:02}:{:02}.{:03} {words}",
            at.hour(),
            at.minute(),
            at.second(),
            at.millisecond()
        );
    }

    /// Says and writes down what went wrong.
    fn note(&mut self, error: &CliError) -> Result<(), BurstError> {
        self.log(&format!("{}: {error}", error.code()));
        let event = BurstEvent::Trouble {
            code: error.code().to_owned(),
            words: error.to_string(),
        };
        self.record_file.note(&RecordEntry {
            at: unix_millis(),
            event,
        })
    }

    /// The same for what lasts: once, until it is well again everywhere.
    fn trouble(&mut self, place: &str, error: &CliError) -> Result<(), BurstError> {
        let code = error.code().to_owned();
        if self.wrong.get(place) == Some(&code) {
            return Ok(());
        }
        let known = self.wrong.values().any(|other| *other == code);
        self.wrong.insert(place.to_owned(), code);
        if known {
            self.log(&error.to_string());
            return Ok(());
        }
        self.note(error)
    }

    fn clear_fault(&mut self, place: &str) {
        if let Some(code) = self.wrong.remove(place)
            && !self.wrong.values().any(|other| *other == code)
        {
            self.log(&format!("{code} is over"));
        }
    }
}

fn describe(action: &BurstAction) -> String {
    match action {
        BurstAction::PowerUp { node } => format!("{node}: power up"),
        BurstAction::Open { node } => format!("{node}: takes jobs"),
        BurstAction::Drain { node, reason } => format!("{node}: drain, {reason}"),
        BurstAction::Rest { node } => format!("{node}: rests"),
        BurstAction::Down { node, reason } => format!("{node}: down, {reason}"),
        BurstAction::PowerDown { node } => format!("{node}: power down"),
        BurstAction::Delete { instance } => format!("instance {instance}: delete"),
        BurstAction::Signal { job } => format!("job {job}: signal to save its work"),
        BurstAction::Requeue { job } => format!("job {job}: back into the queue"),
        BurstAction::StartNow { job } => format!("job {job}: may start at once"),
        BurstAction::Label { node, .. } => format!("{node}: label"),
    }
}
