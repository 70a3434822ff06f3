//! A small Slurm 22.05 and a small region, with all that goes wrong in them. Times are
//! milliseconds; the world's time is not the clock's, which may be set back.

mod act;
mod region;
mod slurm;

use crate::common;
use ebbtide_burst::slurm::{BaseState, JobState, Node, SlurmJob};
use ebbtide_burst::{BurstAction, ClusterSnapshot, PoolServer, Status};
use std::collections::BTreeSet;

/// The world moves on in steps of so much.
const TICK: i64 = 250;
/// Slurm's SuspendTimeout.
const SUSPEND: i64 = 2_000;
/// Slurm's ResumeTimeout: shorter than the controller's patience of 60 s.
const RESUME: i64 = 40_000;
/// Slurm's SlurmdTimeout.
const SLURMD: i64 = 60_000;
/// What a job that was put back waits for, by AuthInfo=cred_expire.
const EXPIRE: i64 = 120_000;
/// How long processes are cleaned up.
const CLEAN: i64 = 750;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Power {
    Off,
    Starting { since: i64 },
    Up,
    Stopping { until: i64 },
}

#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) cloud: bool,
    pub(crate) power: Power,
    pub(crate) down: bool,
    pub(crate) drain: bool,
    pub(crate) reason: String,
    pub(crate) comment: String,
    /// Since when its slurmd has not answered.
    pub(crate) silent: Option<i64>,
    /// Until when it does not answer although it is there.
    pub(crate) deaf_until: i64,
    /// Whether this controller has not asked for it when it was started: Slurm did so by itself, or
    /// another controller.
    pub(crate) foreign: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) job: SlurmJob,
    /// How long it runs.
    pub(crate) lasts: i64,
    /// Since when it runs.
    pub(crate) since: i64,
    /// Its processes are cleaned up by then, and what it is then.
    pub(crate) cleaned: Option<(i64, JobState)>,
    /// How often it has come to its end.
    pub(crate) ends: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) shown: PoolServer,
    pub(crate) ready: i64,
    pub(crate) boots: bool,
    pub(crate) gone: Option<i64>,
}

/// What happens by itself, later.
#[derive(Debug, Clone)]
pub(crate) enum Later {
    Do(BurstAction),
    Resume(String),
    Suspend(String),
}

/// How the region and the way to Slurm are just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Weather {
    /// The region has no place: the resume program says so.
    pub(crate) refuses: bool,
    /// It takes the order, and fails.
    pub(crate) fails: bool,
    /// What it starts does not boot.
    pub(crate) broken: bool,
    /// How much longer everything takes there.
    pub(crate) slow: i64,
    /// The suspend program cannot reach it.
    pub(crate) away: bool,
    /// No more may be spent.
    pub(crate) broke: bool,
}

pub(crate) struct Sim {
    pub(crate) now: i64,
    /// By how much the clock is wrong.
    pub(crate) skew: i64,
    pub(crate) hosts: Vec<Host>,
    pub(crate) work: Vec<Work>,
    pub(crate) servers: Vec<Server>,
    pub(crate) later: Vec<(i64, Later)>,
    pub(crate) weather: Weather,
    /// Whether Slurm gives back once more what is away.
    pub(crate) again: bool,
    pub(crate) next: u32,
}

impl Sim {
    pub(crate) fn new(again: bool) -> Self {
        let host = |name: String, cloud: bool| Host {
            name,
            cloud,
            power: if cloud { Power::Off } else { Power::Up },
            down: false,
            drain: false,
            reason: String::new(),
            comment: String::new(),
            silent: None,
            deaf_until: 0,
            foreign: false,
        };
        let stay = (1..=2).map(|at| host(format!("s{at}"), false));
        let cloud = (1..=8).map(|at| host(format!("c{at}"), true));
        Self {
            now: 1_000_000,
            skew: 0,
            hosts: stay.chain(cloud).collect(),
            work: Vec::new(),
            servers: Vec::new(),
            later: Vec::new(),
            weather: Weather::default(),
            again,
            next: 1,
        }
    }

    /// What the controller's clock says.
    pub(crate) fn clock(&self) -> i64 {
        self.now + self.skew
    }

    /// Time passes.
    pub(crate) fn pass(&mut self, ms: i64) {
        let end = self.now + ms;
        while self.now < end {
            self.now = end.min(self.now + TICK);
            let due: Vec<(i64, Later)> = {
                let now = self.now;
                let (due, rest) = self.later.drain(..).partition(|(at, _)| *at <= now);
                self.later = rest;
                due
            };
            for (_, one) in due {
                match one {
                    Later::Do(action) => {
                        self.act(&action);
                        // It may have been given up meanwhile.
                        if let BurstAction::PowerUp { node } = action {
                            self.host(&node).foreign = true;
                        }
                    }
                    Later::Resume(node) => self.resume(&node),
                    Later::Suspend(node) => self.suspend(&node),
                }
            }
            self.region();
            self.slurm();
            self.schedule();
        }
    }

    pub(crate) fn submit(&mut self, partition: &str, lasts: i64, requeues: bool) -> u32 {
        let id = self.next;
        self.next += 1;
        let mut job = common::job(id, partition, "");
        job.eligible_ms = 0;
        job.requeues = requeues;
        self.work.push(Work {
            job,
            lasts,
            since: 0,
            cleaned: None,
            ends: 0,
        });
        id
    }

    pub(crate) fn nodes(&self) -> Vec<Node> {
        self.hosts.iter().map(|host| self.node(host)).collect()
    }

    fn node(&self, host: &Host) -> Node {
        let mut flags = BTreeSet::new();
        let mut flag = |set: bool, name: &str| {
            if set {
                flags.insert(name.to_owned());
            }
        };
        let starting = matches!(host.power, Power::Starting { .. });
        flag(host.cloud, "CLOUD");
        flag(host.power == Power::Off, "POWERED_DOWN");
        flag(starting, "POWERING_UP");
        flag(
            matches!(host.power, Power::Stopping { .. }),
            "POWERING_DOWN",
        );
        flag(host.drain, "DRAIN");
        flag(host.silent.is_some() || starting, "NOT_RESPONDING");
        let mine = || self.work.iter().filter(|work| work.job.is_on(&host.name));
        let completing = mine().any(|work| work.job.state == JobState::Completing);
        flag(completing, "COMPLETING");
        let base = match (host.down, mine().any(|work| work.job.runs())) {
            (true, _) => BaseState::Down,
            (false, true) => BaseState::Allocated,
            (false, false) => BaseState::Idle,
        };
        let mut node = common::node(&host.name, base, &[]);
        node.flags = flags;
        node.reason.clone_from(&host.reason);
        node.comment.clone_from(&host.comment);
        node
    }

    /// As squeue shows them: what ended stays for a while in Slurm, but not in its list.
    pub(crate) fn jobs(&self) -> Vec<SlurmJob> {
        let shown = self.work.iter().filter(|work| !work.job.is_over());
        let mut jobs: Vec<SlurmJob> = shown.map(|work| work.job.clone()).collect();
        for job in &mut jobs {
            // Slurm's clock is the controller's.
            job.start_ms += self.skew;
            job.eligible_ms += self.skew;
        }
        jobs
    }

    pub(crate) fn instances(&self) -> Vec<PoolServer> {
        let mut all: Vec<PoolServer> = self.servers.iter().map(|one| one.shown.clone()).collect();
        for one in &mut all {
            one.deadline_ms = one.deadline_ms.map(|at| at + self.skew);
        }
        all
    }

    pub(crate) fn see<T>(&self, look: impl FnOnce(&ClusterSnapshot<'_>) -> T) -> T {
        let (nodes, jobs, instances) = (self.nodes(), self.jobs(), self.instances());
        look(&ClusterSnapshot {
            nodes: &nodes,
            jobs: &jobs,
            instances: &instances,
            budget_used_up: self.weather.broke,
            kept: &[],
        })
    }

    /// Whether something on the region's side runs this node.
    fn alive(&self, node: &str) -> bool {
        self.servers.iter().any(|one| {
            one.shown.node == node
                && one.boots
                && one.ready <= self.now
                && matches!(one.shown.status, Status::Active | Status::Leaving)
        })
    }

    pub(crate) fn host(&mut self, node: &str) -> &mut Host {
        let at = self.hosts.iter().position(|host| host.name == node);
        &mut self.hosts[at.unwrap()]
    }

    /// The state of everything, for who reads a failure.
    pub(crate) fn picture(&self) -> String {
        let mut text = format!(
            "at {} (clock {}) {:?}\n",
            self.now,
            self.clock(),
            self.weather
        );
        for host in self.hosts.iter() {
            let jobs: Vec<String> = (self.work.iter().filter(|one| one.job.is_on(&host.name)))
                .map(|one| format!("{}:{:?}", one.job.id, one.job.state))
                .collect();
            let servers: Vec<String> = (self.servers.iter())
                .filter(|one| one.shown.node == host.name)
                .map(|one| format!("{}:{:?}", one.shown.id, one.shown.status))
                .collect();
            text += &format!(
                "  {} {:?} down={} drain={} silent={:?} {:?} {jobs:?} {servers:?}\n",
                host.name, host.power, host.down, host.drain, host.silent, host.reason
            );
        }
        text
    }
}
