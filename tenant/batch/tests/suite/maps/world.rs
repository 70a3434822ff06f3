//! A small Slurm and a small cloud whose servers hibernate.

use ebbtide_batch::{
    AttemptResult, BatchAction, BatchController, BatchDecisions, BatchWorld, Mark, MemberId, WorkId,
};
use ebbtide_burst::slurm::{BaseState, JobState, Node, SlurmJob};
use ebbtide_burst::{BurstAction, PoolServer, RESTING, Status};
use std::collections::{BTreeMap, BTreeSet};

/// The world moves on in steps of so much, and the service looks at each.
pub(super) const TICK: i64 = 500;
/// A server is up after so much at most.
const BOOT: i64 = 5_000;
pub(super) const BEGUN: i64 = 1_700_000_000_123;

/// What the server of a node suffers: 0 ends it, 1 freezes it for good, others for a while.
pub(super) struct Outage {
    pub(super) node: String,
    pub(super) from: i64,
    pub(super) until: i64,
    pub(super) end: u8,
}

#[derive(Debug)]
struct Server {
    shown: PoolServer,
    up: i64,
}

#[derive(Debug)]
struct Job {
    shown: SlurmJob,
    member: (WorkId, MemberId, u32),
    /// What is left, milliseconds of active time.
    left: i64,
    exit: Option<i32>,
}

/// Everything outside of the controller.
#[derive(Debug)]
pub(super) struct SlurmWorld {
    pub(super) now: i64,
    nodes: Vec<String>,
    drained: BTreeSet<String>,
    servers: Vec<Server>,
    created: i64,
    jobs: Vec<Job>,
    done: BTreeMap<(WorkId, MemberId), (u32, i64)>,
    /// How long the members of each work take, seconds.
    pub(super) lengths: BTreeMap<WorkId, Vec<u64>>,
    /// How much of its reserve each task uses, of a hundred.
    pub(super) longer: u8,
    /// Every task fails with this exit code.
    pub(super) fails: Option<i32>,
    /// The budget of the service is used up.
    pub(super) broke: bool,
    /// Which works ran on nodes that begin with which letter.
    pub(super) used: BTreeSet<(WorkId, char)>,
}

impl SlurmWorld {
    pub(super) fn new(nodes: Vec<String>) -> Self {
        Self {
            now: BEGUN,
            nodes,
            drained: BTreeSet::new(),
            servers: Vec::new(),
            created: 0,
            jobs: Vec::new(),
            done: BTreeMap::new(),
            lengths: BTreeMap::new(),
            longer: 0,
            fails: None,
            broke: false,
            used: BTreeSet::new(),
        }
    }

    pub(super) fn servers(&self) -> Vec<PoolServer> {
        self.servers.iter().map(|one| one.shown.clone()).collect()
    }

    /// When the members of a work that are done were done.
    pub(super) fn done(&self, id: WorkId) -> Vec<i64> {
        let own = self.done.iter().filter(|((work, _), _)| *work == id);
        own.map(|(_, (_, at))| *at).collect()
    }

    pub(super) fn node_of(&self, server: &str) -> String {
        let mut servers = self.servers.iter();
        let own = servers.find(|one| one.shown.id == server);
        own.map_or_else(String::new, |one| one.shown.node.clone())
    }

    /// Whether the server of a node was active, and is frozen now.
    pub(super) fn freeze(&mut self, node: &str) -> bool {
        let mut servers = self.servers.iter_mut();
        let own = servers.find(|one| one.shown.node == node && one.shown.status == Status::Active);
        own.map(|one| one.shown.status = Status::Kept).is_some()
    }

    pub(super) fn create(&mut self, node: &str, status: Status) {
        self.created += 1;
        self.servers.push(Server {
            shown: PoolServer {
                id: format!("server-{}", self.created),
                created_ms: self.now,
                node: node.to_owned(),
                status,
                launched_ms: None,
                deadline_ms: None,
                ended_ms: None,
                taken: false,
                reason: String::new(),
            },
            // Boots differ.
            up: self.now + (self.created * 1_700) % (BOOT + 1),
        });
    }

    fn node(&self, name: &str) -> Node {
        let mut servers = self.servers.iter().map(|one| &one.shown);
        let own = servers.find(|one| one.node == name);
        let mut flags = BTreeSet::from(["CLOUD".to_owned()]);
        flags.extend(match own.map(|one| one.status) {
            None => Some("POWERED_DOWN".to_owned()),
            Some(Status::Coming) => Some("POWERING_UP".to_owned()),
            Some(_) => None,
        });
        flags.extend(self.drained.contains(name).then(|| "DRAIN".to_owned()));
        Node {
            name: name.to_owned(),
            base: BaseState::Idle,
            flags,
            cpus: 2,
            features: Vec::new(),
            weight: 100,
            comment: String::new(),
            // Slurm forgets why a node rests when it comes up.
            reason: own.map_or_else(|| RESTING.to_owned(), |_| String::new()),
            partitions: Vec::new(),
        }
    }

    pub(super) fn look(&self, controller: &mut BatchController) -> BatchDecisions {
        let nodes: Vec<Node> = self.nodes.iter().map(|name| self.node(name)).collect();
        let jobs: Vec<SlurmJob> = self.jobs.iter().map(|one| one.shown.clone()).collect();
        let servers = self.servers();
        let mark = |work, member| {
            let by = self.done.get(&(work, member));
            by.map_or(Mark::None, |(number, _)| Mark::DoneBy(*number))
        };
        let result = |work, member, attempt| {
            let key = (work, member, attempt);
            let own = self.jobs.iter().find(|one| one.member == key);
            let exit = own.and_then(|one| one.exit);
            AttemptResult {
                exit,
                ..AttemptResult::default()
            }
        };
        let world = BatchWorld {
            burst: ebbtide_burst::ClusterSnapshot {
                nodes: &nodes,
                jobs: &jobs,
                instances: &servers,
                budget_used_up: self.broke,
                kept: &[],
            },
            prices: &BTreeMap::new(),
            prices_at: 0,
            paid: &|_| None,
            mark: &mark,
            result: &result,
        };
        controller.look(self.now, &world).unwrap()
    }

    pub(super) fn act(&mut self, made: &BatchDecisions) {
        for action in &made.nodes {
            match action {
                // Asked twice, a node has one server.
                BurstAction::PowerUp { node }
                    if !self.servers.iter().any(|one| one.shown.node == *node) =>
                {
                    self.create(node, Status::Coming);
                }
                BurstAction::PowerDown { node } => {
                    self.drained.remove(node);
                    self.servers.retain(|one| one.shown.node != *node);
                }
                BurstAction::Delete { instance } => {
                    self.servers.retain(|one| one.shown.id != *instance);
                }
                BurstAction::Open { node } => drop(self.drained.remove(node)),
                BurstAction::Drain { node, .. } | BurstAction::Rest { node } => {
                    self.drained.insert(node.clone());
                }
                _ => {}
            }
        }
        for action in &made.jobs {
            match action {
                BatchAction::Start {
                    work,
                    member,
                    attempt,
                    node,
                    ..
                } => {
                    self.start((*work, *member, *attempt), node);
                }
                BatchAction::Stop { job } => self.end(*job),
                other => panic!("{other:?}"),
            }
        }
    }

    fn start(&mut self, member: (WorkId, MemberId, u32), node: &str) {
        let (work, id, attempt) = member;
        let length = self.lengths[&work][id.index] as i64 * 1_000;
        self.used.insert((work, node.chars().next().unwrap()));
        let name = ebbtide_batch::job_name(work, id, attempt);
        let shown = SlurmJob {
            state: JobState::Running,
            state_word: "RUNNING".to_owned(),
            nodes: vec![node.to_owned()],
            submitted_ms: self.now,
            start_ms: self.now,
            ..SlurmJob::waiting(self.jobs.len() as u32 + 1, name)
        };
        self.jobs.push(Job {
            shown,
            member,
            left: length + length * i64::from(self.longer) / 500,
            exit: None,
        });
    }

    fn end(&mut self, job: u32) {
        let now = self.now;
        for one in self.jobs.iter_mut().filter(|one| one.shown.id == job) {
            one.shown.state = JobState::Ended;
            one.shown.state_word = "NODE_FAIL".to_owned();
            one.shown.end_ms = now;
        }
    }

    /// Moves on by a step. The tasks of a frozen server stand still.
    pub(super) fn step(&mut self) {
        self.now += TICK;
        for one in &mut self.servers {
            if one.shown.status == Status::Coming && one.up <= self.now {
                one.shown.status = Status::Active;
                one.shown.launched_ms = Some(self.now);
            }
        }
        let mut ended = Vec::new();
        for one in self.jobs.iter_mut().filter(|one| !one.shown.is_over()) {
            let mut servers = self.servers.iter();
            let own = servers.find(|server| one.shown.nodes.contains(&server.shown.node));
            match own.map(|server| server.shown.status) {
                Some(Status::Active) if one.left > TICK => one.left -= TICK,
                Some(Status::Active) => {
                    one.exit = Some(self.fails.unwrap_or(0));
                    if self.fails.is_none() {
                        let (work, member, number) = one.member;
                        let done = self.done.entry((work, member));
                        done.or_insert((number, self.now));
                    }
                    ended.push(one.shown.id);
                }
                Some(_) => {}
                None => ended.push(one.shown.id),
            }
        }
        for job in ended {
            self.end(job);
        }
    }

    pub(super) fn outages(&mut self, outages: &[Outage]) {
        for outage in outages {
            let due = |at: i64| (self.now - TICK..self.now).contains(&at);
            let mut servers = self.servers.iter();
            let Some(own) = servers.position(|one| one.shown.node == outage.node) else {
                continue;
            };
            let shown = &mut self.servers[own].shown;
            match outage.end {
                0 if due(outage.from) => drop(self.servers.remove(own)),
                1.. if due(outage.from) && shown.status == Status::Active => {
                    shown.status = Status::Kept;
                }
                2.. if due(outage.until) && shown.status == Status::Kept => {
                    shown.status = Status::Active;
                }
                _ => {}
            }
        }
    }
}
