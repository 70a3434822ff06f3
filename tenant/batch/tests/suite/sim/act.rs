//! What the controller's actions do to Slurm and the cloud.

use super::{Away, BOOT, Power, RunningJob, Server, Sim};
use ebbtide_batch::{BatchAction, BatchController, BatchDecisions, job_name};
use ebbtide_burst::slurm::{JobState, SlurmJob};
use ebbtide_burst::{BurstAction, PoolServer, RESTING, Status};

impl Sim {
    pub(crate) fn act(&mut self, controller: &BatchController, made: &BatchDecisions) {
        for action in &made.nodes {
            self.act_on_node(action);
        }
        for action in &made.jobs {
            self.act_on_job(controller, action);
        }
    }

    fn act_on_node(&mut self, action: &BurstAction) {
        let now = self.now;
        // A deletion goes to the cloud, everything else to slurmctld, which calls the cloud.
        let cloud_only = matches!(action, BurstAction::Delete { .. });
        let refuses = self.away == Some(Away::CloudRefuses);
        if self.away == Some(Away::Slurm) && !cloud_only || refuses && cloud_only {
            return;
        }
        match action {
            BurstAction::PowerUp { node } => {
                let preemptible = node.starts_with('p');
                let host = self.hosts.get_mut(node).unwrap();
                if host.power != Power::Off || host.down {
                    return;
                }
                host.power = Power::Starting;
                let silent = self.away.is_some();
                let refused = self.full && preemptible || self.broke;
                if refused || silent {
                    host.power = Power::Up;
                    let why = if silent { "no answer" } else { "no valid host" };
                    (host.down, host.reason) = (true, format!("ebbtide-batch: {why}"));
                }
                // Asked twice, a node has one server.
                let there = |one: &Server| one.shown.node == *node && one.shown.status.is_there();
                if refused || refuses || self.servers.iter().any(there) {
                    return;
                }
                let shown = PoolServer {
                    id: format!("i{:04}", self.next),
                    created_ms: now,
                    node: node.clone(),
                    status: Status::Coming,
                    launched_ms: None,
                    deadline_ms: None,
                    ended_ms: None,
                    taken: false,
                    reason: String::new(),
                };
                self.next += 1;
                self.servers.push(Server {
                    shown,
                    up: now + BOOT,
                    gone: None,
                });
            }
            BurstAction::Open { node } => self.hosts.get_mut(node).unwrap().drain = false,
            BurstAction::Drain { node, reason } => {
                let host = self.hosts.get_mut(node).unwrap();
                (host.drain, host.reason) = (true, reason.clone());
            }
            BurstAction::Rest { node } => {
                let host = self.hosts.get_mut(node).unwrap();
                (host.drain, host.reason) = (true, RESTING.to_owned());
            }
            BurstAction::Down { node, reason } => {
                self.kill(node);
                let host = self.hosts.get_mut(node).unwrap();
                (host.down, host.reason) = (true, reason.clone());
                if host.power == Power::Starting {
                    host.power = Power::Up;
                }
            }
            BurstAction::PowerDown { node } => {
                self.kill(node);
                let host = self.hosts.get_mut(node).unwrap();
                if host.power != Power::Off || host.down {
                    host.power = Power::Stopping { until: now + 1_000 };
                    (host.down, host.drain) = (false, false);
                }
                for one in self
                    .servers
                    .iter_mut()
                    .filter(|one| one.shown.node == *node && !refuses)
                {
                    one.shown.status = Status::Going;
                    one.gone.get_or_insert(now + 1_000);
                }
            }
            BurstAction::Delete { instance } => {
                for one in self
                    .servers
                    .iter_mut()
                    .filter(|one| one.shown.id == *instance)
                {
                    one.shown.status = Status::Going;
                    one.gone.get_or_insert(now + 1_000);
                }
            }
            BurstAction::Label { node, label } => {
                let host = self.hosts.get_mut(node).unwrap();
                host.comment.clone_from(&label.comment);
                host.weight = label.weight;
            }
            BurstAction::Signal { .. }
            | BurstAction::Requeue { .. }
            | BurstAction::KeepPlace { .. }
            | BurstAction::Release { .. }
            | BurstAction::StartNow { .. } => {
                panic!("{action:?}: jobs of the service are never requeued")
            }
        }
    }

    fn act_on_job(&mut self, controller: &BatchController, action: &BatchAction) {
        let now = self.now;
        if self.away == Some(Away::Slurm) {
            return;
        }
        match action {
            BatchAction::Start {
                work,
                member,
                attempt,
                node,
                ..
            } => {
                let id = self.next;
                self.next += 1;
                let book = &controller.book().works[work];
                let from = book.member(*member).saved;
                let job = SlurmJob {
                    partition: "batch".to_owned(),
                    reason: node.clone(),
                    cpus: book.work.stage(*member).cpus,
                    submitted_ms: now,
                    eligible_ms: now,
                    accrue_ms: now,
                    ..SlurmJob::waiting(id, job_name(*work, *member, *attempt))
                };
                let length = self
                    .lengths
                    .get(&(*work, *member))
                    .copied()
                    .unwrap_or(20_000);
                self.jobs.push(RunningJob {
                    job,
                    work: *work,
                    member: *member,
                    attempt: *attempt,
                    left: length - from,
                    from,
                    saves: None,
                    checkpoint: None,
                });
            }
            BatchAction::Save { job } => {
                let saves = self.saves;
                for one in self.jobs.iter_mut().filter(|one| one.job.id == *job) {
                    assert!(saves, "a member that cannot be saved is told to save");
                    one.saves.get_or_insert(now + 1_000);
                }
            }
            BatchAction::Checkpoint { job } => {
                let saves = self.saves;
                for one in self.jobs.iter_mut().filter(|one| one.job.id == *job) {
                    assert!(saves, "a member that cannot be saved is told to save");
                    one.checkpoint.get_or_insert(now + 1_000);
                }
            }
            BatchAction::Stop { job } => {
                for one in self.jobs.iter_mut().filter(|one| one.job.id == *job) {
                    if !one.job.is_over() {
                        one.job.state = JobState::Ended;
                        one.job.state_word = "CANCELLED".to_owned();
                        one.job.end_ms = now;
                    }
                }
            }
        }
    }
}
