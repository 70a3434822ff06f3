//! A small Slurm, a small cloud and a shared directory. Times are milliseconds.

use ebbtide_batch::{
    AttemptResult, BatchController, BatchDecisions, BatchSettings, BatchWorld, Mark, MemberId,
    PUT_BACK, WorkId,
};
use ebbtide_burst::slurm::{BaseState, JobState, Node, SlurmJob};
use ebbtide_burst::{ClusterSnapshot, PoolServer, RESTING, Status};
use std::collections::{BTreeMap, BTreeSet};

mod act;

/// The world moves on in steps of so much.
pub(crate) const TICK: i64 = 500;
/// A server is up after so much.
pub(crate) const BOOT: i64 = 6_000;
/// Prices are asked for so often, and when the controller wants them.
const PRICES: i64 = 20_000;
/// From a notice to the end.
const GRACE: i64 = 8_000;

pub(crate) const SETTINGS: &str = r#"
state_dir = "/var/lib/ebbtide-batch"
listen = "unix:/run/ebbtide-batch.sock"
[slurm]
[region]
endpoint = "http://127.0.0.1:7470"
project = "batch"
[[types]]
name = "spot"
nodes = "p[1-4]"
flavor = "p.node"
market = "preemptible"
vcpus = 2
memory_mb = 4000
price = "0.10"
model = "uniform:max=24"
[[types]]
name = "normal"
nodes = "d[1-2]"
flavor = "node"
market = "on-demand"
vcpus = 2
memory_mb = 4000
price = "0.30"
[policy]
spare_seconds = 10
boot_seconds = 8
launch_seconds = 60
launch_again_seconds = 2
checkpoint_seconds = 3
margin_seconds = 10
length_seconds = 60
"#;

pub(crate) fn settings() -> BatchSettings {
    BatchSettings::parse(SETTINGS).unwrap()
}

/// What does not answer. The shell does not look then, and the rest of the world goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Away {
    /// The API of the cloud takes no connection.
    CloudRefuses,
    /// The API of the cloud carries requests out, and its answers do not come.
    CloudHangs,
    /// slurmctld. What runs on nodes goes on.
    Slurm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Power {
    Off,
    Starting,
    Up,
    Stopping { until: i64 },
}

#[derive(Debug)]
struct Host {
    power: Power,
    drain: bool,
    down: bool,
    reason: String,
    comment: String,
    weight: u64,
}

#[derive(Debug)]
struct Server {
    shown: PoolServer,
    up: i64,
    gone: Option<i64>,
}

#[derive(Debug)]
struct RunningJob {
    job: SlurmJob,
    work: WorkId,
    member: MemberId,
    attempt: u32,
    /// What is left to do, milliseconds.
    left: i64,
    from: i64,
    saves: Option<i64>,
    /// When its checkpoint is complete.
    checkpoint: Option<i64>,
}

/// Everything outside of the controller.
#[derive(Debug)]
pub(crate) struct Sim {
    pub(crate) now: i64,
    hosts: BTreeMap<String, Host>,
    servers: Vec<Server>,
    jobs: Vec<RunningJob>,
    next: u32,
    /// Marks, and how often each was made.
    marks: BTreeMap<(WorkId, MemberId), u32>,
    pub(crate) ended: BTreeMap<(WorkId, MemberId), usize>,
    results: BTreeMap<(WorkId, MemberId, u32), AttemptResult>,
    /// How long each member works.
    pub(crate) lengths: BTreeMap<(WorkId, MemberId), i64>,
    pub(crate) saves: bool,
    /// Members whose command fails as often as it is tried.
    pub(crate) failing: BTreeSet<(WorkId, MemberId)>,
    /// The cloud has no capacity for preemptible servers.
    pub(crate) full: bool,
    /// No node comes up on a new server.
    pub(crate) broken: bool,
    pub(crate) broke: bool,
    /// What an hour of a preemptible server costs from some time on, millionths; in order.
    pub(crate) prices: Vec<(i64, u64)>,
    /// The cloud does not say prices.
    pub(crate) silent: bool,
    prices_at: i64,
    /// Checkpoints of each member.
    numbers: BTreeMap<(WorkId, MemberId), u64>,
    /// Servers that are gone: node, launch, end.
    pub(crate) lives: Vec<(String, i64, i64)>,
    /// What does not answer now.
    pub(crate) away: Option<Away>,
    pub(crate) most_servers: usize,
    pub(crate) used: BTreeSet<String>,
}

impl Sim {
    pub(crate) fn new() -> Self {
        let names = ["p1", "p2", "p3", "p4", "d1", "d2"];
        let host = |name: &str| {
            let host = Host {
                power: Power::Off,
                drain: true,
                down: false,
                reason: RESTING.to_owned(),
                comment: String::new(),
                weight: 100,
            };
            (name.to_owned(), host)
        };
        Self {
            now: 1_000_000,
            hosts: names.map(host).into_iter().collect(),
            servers: Vec::new(),
            jobs: Vec::new(),
            next: 1,
            marks: BTreeMap::new(),
            ended: BTreeMap::new(),
            results: BTreeMap::new(),
            lengths: BTreeMap::new(),
            saves: false,
            failing: BTreeSet::new(),
            full: false,
            broken: false,
            broke: false,
            prices: Vec::new(),
            silent: false,
            prices_at: 0,
            numbers: BTreeMap::new(),
            lives: Vec::new(),
            away: None,
            most_servers: 0,
            used: BTreeSet::new(),
        }
    }

    pub(crate) fn nodes(&self) -> Vec<Node> {
        let each = self.hosts.iter().map(|(name, host)| {
            let mut flags = BTreeSet::from(["CLOUD".to_owned()]);
            let mut flag = |on: bool, name: &str| flags.extend(on.then(|| name.to_owned()));
            flag(host.drain, "DRAIN");
            flag(host.power == Power::Off, "POWERED_DOWN");
            flag(host.power == Power::Starting, "POWERING_UP");
            flag(
                matches!(host.power, Power::Stopping { .. }),
                "POWERING_DOWN",
            );
            let works = self.jobs.iter().any(|one| one.job.is_on(name));
            let base = match (host.down, works) {
                (true, _) => BaseState::Down,
                (false, true) => BaseState::Mixed,
                (false, false) => BaseState::Idle,
            };
            Node {
                name: name.clone(),
                base,
                flags,
                cpus: 2,
                features: Vec::new(),
                weight: host.weight,
                comment: host.comment.clone(),
                reason: host.reason.clone(),
                partitions: vec!["batch".to_owned()],
            }
        });
        each.collect()
    }

    /// What an hour of a preemptible server costs.
    pub(crate) fn price(&self, at: i64) -> Option<u64> {
        let known = self.prices.iter().rev().find(|(from, _)| *from <= at);
        known.map(|(_, price)| *price)
    }

    pub(crate) fn look(&mut self, controller: &mut BatchController) -> BatchDecisions {
        let servers: Vec<PoolServer> = self.servers.iter().map(|one| one.shown.clone()).collect();
        let due = self.now >= self.prices_at + PRICES;
        let wanted = controller.wants_prices(self.now, self.prices_at, &servers);
        if !self.silent && (due || wanted) {
            self.prices_at = self.now;
        }
        let price = self.price(self.prices_at);
        let prices = price.map(|price| ("p.node".to_owned(), price));
        let prices = prices.into_iter().collect();
        let nodes = self.nodes();
        let jobs: Vec<SlurmJob> = self.jobs.iter().map(|one| one.job.clone()).collect();
        let mark = |work, member| {
            let by = self.marks.get(&(work, member)).copied();
            by.map_or(Mark::None, Mark::DoneBy)
        };
        let result = |work, member, attempt| {
            let left = self.results.get(&(work, member, attempt)).copied();
            left.unwrap_or_default()
        };
        let world = BatchWorld {
            burst: ClusterSnapshot {
                nodes: &nodes,
                jobs: &jobs,
                instances: &servers,
                budget_used_up: self.broke,
                kept: &[],
            },
            prices: &prices,
            prices_at: self.prices_at,
            paid: &|_| None,
            mark: &mark,
            result: &result,
        };
        controller.look(self.now, &world).unwrap()
    }

    pub(crate) fn tick(&mut self) {
        self.now += TICK;
        let now = self.now;
        for one in &mut self.servers {
            if one.shown.status == Status::Coming && one.up <= now {
                one.shown.status = Status::Active;
                one.shown.launched_ms = Some(now);
            }
            // slurmd registers with slurmctld as soon as that is there.
            let registers = !self.broken && self.away != Some(Away::Slurm);
            if registers && one.shown.status == Status::Active {
                let host = self.hosts.get_mut(&one.shown.node).unwrap();
                if host.power == Power::Starting {
                    (host.power, host.down) = (Power::Up, false);
                }
            }
            if one.shown.deadline_ms.is_some_and(|at| at <= now) {
                one.gone.get_or_insert(now);
            }
        }
        let mut gone = Vec::new();
        for one in &self.servers {
            if one.gone.is_some_and(|at| at <= now) {
                gone.push(one.shown.node.clone());
                let launch = one.shown.launched_ms.unwrap_or(now);
                self.lives.push((one.shown.node.clone(), launch, now));
            }
        }
        self.servers
            .retain(|one| one.gone.is_none_or(|at| at > now));
        for node in gone {
            self.kill(&node);
        }
        let slurm = self.away != Some(Away::Slurm);
        for host in self.hosts.values_mut().filter(|_| slurm) {
            if matches!(host.power, Power::Stopping { until } if until <= now) {
                host.power = Power::Off;
            }
        }
        self.run_jobs();
        self.most_servers = self.most_servers.max(self.servers.len());
    }

    /// What ran on a node is lost with it.
    fn kill(&mut self, node: &str) {
        for one in self.jobs.iter_mut().filter(|one| one.job.is_on(node)) {
            one.job.state = JobState::Ended;
            one.job.state_word = "NODE_FAIL".to_owned();
            one.job.end_ms = self.now;
        }
    }

    fn run_jobs(&mut self) {
        let now = self.now;
        for at in 0..self.jobs.len() {
            let node = self.jobs[at].job.nodes.first().cloned();
            let one = &mut self.jobs[at];
            match (one.job.state, node) {
                (JobState::Pending, _) => {
                    let wanted = one.job.reason.clone();
                    let host = &self.hosts[&wanted];
                    let takes = host.power == Power::Up && !host.drain && !host.down;
                    if takes && self.away != Some(Away::Slurm) {
                        one.job.state = JobState::Running;
                        one.job.state_word = "RUNNING".to_owned();
                        one.job.nodes = vec![wanted.clone()];
                        one.job.start_ms = now;
                        self.used.insert(wanted);
                    }
                }
                (JobState::Running, Some(_)) => {
                    one.left -= TICK;
                    let key = (one.work, one.member);
                    let ran = now - one.job.start_ms;
                    if one.checkpoint.is_some_and(|at| at <= now) {
                        one.checkpoint = None;
                        let number = self.numbers.entry(key).or_default();
                        *number += 1;
                        let left = AttemptResult {
                            exit: None,
                            saved: one.from + ran,
                            checkpoint: *number,
                        };
                        self.results
                            .insert((one.work, one.member, one.attempt), left);
                    }
                    let end = if one.left <= 0 && self.failing.contains(&key) {
                        Some((JobState::Ended, "FAILED", 3))
                    } else if one.left <= 0 {
                        let made = !self.marks.contains_key(&key);
                        if made {
                            self.marks.insert(key, one.attempt);
                            *self.ended.entry(key).or_default() += 1;
                        }
                        Some((JobState::Completed, "COMPLETED", 0))
                    } else if one.saves.is_some_and(|at| at <= now) {
                        Some((JobState::Ended, "FAILED", PUT_BACK))
                    } else {
                        None
                    };
                    if let Some((state, word, exit)) = end {
                        let saved = if exit == PUT_BACK { one.from + ran } else { 0 };
                        let number = self.numbers.entry(key).or_default();
                        *number += u64::from(exit == PUT_BACK);
                        let left = AttemptResult {
                            exit: Some(exit),
                            saved,
                            checkpoint: *number,
                        };
                        self.results
                            .insert((one.work, one.member, one.attempt), left);
                        one.job.state = state;
                        one.job.state_word = word.to_owned();
                        one.job.end_ms = now;
                    }
                }
                _ => {}
            }
        }
    }

    /// The provider takes one of the servers that are up: with notice, or without.
    pub(crate) fn take(&mut self, at: usize, notice: bool) {
        let now = self.now;
        let mut there: Vec<&mut Server> = self
            .servers
            .iter_mut()
            .filter(|one| one.shown.status == Status::Active && one.shown.node.starts_with('p'))
            .collect();
        if there.is_empty() {
            return;
        }
        let at = at % there.len();
        let one = &mut there[at];
        if notice {
            one.shown.status = Status::Leaving;
            one.shown.deadline_ms = Some(now + GRACE);
        } else {
            one.gone = Some(now);
        }
    }

    /// When the server of a node was launched; `None` if there is none.
    pub(crate) fn launched(&self, node: &str) -> Option<i64> {
        let mut servers = self.servers.iter();
        servers
            .find(|one| one.shown.node == node)?
            .shown
            .launched_ms
    }

    pub(crate) fn servers(&self) -> usize {
        self.servers.len()
    }

    /// The state of everything, for a failed test.
    pub(crate) fn picture(&self) -> String {
        let hosts = self.hosts.iter().map(|(name, host)| {
            let (power, drain, down) = (host.power, host.drain, host.down);
            format!(
                "{name} {power:?} drain={drain} down={down} {:?}",
                host.reason
            )
        });
        let servers = self.servers.iter();
        let servers = servers.map(|one| format!("{} {:?}", one.shown.node, one.shown.status));
        let jobs = self.jobs.iter().filter(|one| !one.job.is_over());
        let jobs = jobs.map(|one| {
            format!(
                "{} {} {:?}",
                one.job.name, one.job.state_word, one.job.nodes
            )
        });
        let all = hosts.chain(servers).chain(jobs);
        format!("{:#?}\nfull: {}", all.collect::<Vec<_>>(), self.full)
    }
}
