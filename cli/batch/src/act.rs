//! Carries out actions on Slurm and on the pool.

use crate::faults::log;
use ebbtide_burst::{BurstAction, PoolServer, RESTING};
use ebbtide_server_pool::ServerPool;
use ebbtide_shell::errors::CliError;
use ebbtide_slurm::Slurm;

/// Where actions are carried out.
#[derive(Debug, Clone, Copy)]
pub struct Actor<'a> {
    /// The cluster.
    pub slurm: &'a Slurm,
    pub cloud: &'a ServerPool,
    /// Its servers, as they were seen.
    pub servers: &'a [PoolServer],
    /// The signal that tells a batch script to save its work.
    pub signal: &'a str,
}

impl Actor<'_> {
    /// Carries all of them out. One that fails does not keep the others from being tried.
    ///
    /// # Errors
    /// The first that failed.
    pub async fn all(&self, actions: &[BurstAction]) -> Result<(), CliError> {
        let mut first = Ok(());
        for action in actions {
            let done = self.one(action).await;
            if first.is_ok() {
                first = done;
            }
        }
        first
    }

    async fn one(&self, action: &BurstAction) -> Result<(), CliError> {
        let slurm = self.slurm;
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
                let one = self.servers.iter().find(|one| one.id == *instance);
                match one {
                    Some(one) => self.cloud.give_back(one).await?,
                    None => self.cloud.delete(instance).await?,
                }
                Ok(())
            }
            BurstAction::Signal { job } => {
                let signal = format!("--signal={}", self.signal);
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
            BurstAction::KeepPlace { job, nice } => {
                let (job, nice) = (format!("jobid={job}"), format!("nice={nice}"));
                slurm
                    .run("scontrol", &["update", &job, &nice])
                    .await
                    .map(drop)
            }
            BurstAction::Release { job } => {
                let job = job.to_string();
                slurm.run("scontrol", &["release", &job]).await.map(drop)
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
        // `Faults` reports the code, once for as long as it lasts; what was not done is reported
        // here each time.
        log(&match &done {
            Ok(()) => describe(action),
            Err(error) => format!("{}: not done: {error}", describe(action)),
        });
        Ok(done?)
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
        BurstAction::KeepPlace { job, nice } => {
            format!("job {job}: keeps its place in the queue, nice {nice}")
        }
        BurstAction::Release { job } => {
            format!("job {job}: its launch failed; it may be launched again")
        }
        BurstAction::Label { node, .. } => format!("{node}: label"),
    }
}
