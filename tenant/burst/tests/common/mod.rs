//! A cluster of two nodes that stay and six of the cloud, in words.
#![allow(dead_code)] // Each test file uses its part.

use ebbtide_burst::slurm::{BaseState, JobState, Node, SlurmJob};
use ebbtide_burst::{
    BurstAction, ClusterSnapshot, Decisions, ElasticSettings, Load, Manager, NodeTimes, PoolServer,
    Status,
};

pub(crate) const SETTINGS: &str = r#"
nodes = "c[1-6]"
flavor = "p.node"
long_partitions = ["long"]
short_servers = 2
on_demand_price = "0.30"
preemptible_price = "0.10"
threshold = 0.25
release_seconds = 0
margin_seconds = 3
"#;
const TIMES: NodeTimes = NodeTimes {
    launch_seconds: 60.0,
    launch_again_seconds: 30.0,
    checkpoint_seconds: 2.0,
};

pub(crate) fn settings() -> ElasticSettings {
    toml::from_str(SETTINGS).unwrap()
}

pub(crate) fn manager() -> Manager {
    manager_of(SETTINGS)
}

/// The manager of other settings.
pub(crate) fn manager_of(text: &str) -> Manager {
    let settings: ElasticSettings = toml::from_str(text).unwrap();
    Manager::new(settings.manager_options(TIMES).unwrap()).unwrap()
}

pub(crate) fn node(name: &str, base: BaseState, flags: &[&str]) -> Node {
    Node {
        name: name.to_owned(),
        base,
        flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        cpus: 2,
        features: Vec::new(),
        weight: 100,
        comment: String::new(),
        reason: String::new(),
        partitions: vec!["short".to_owned()],
    }
}

/// s1 and s2 that stay, c1 to c6 that rest.
pub(crate) fn cluster() -> Vec<Node> {
    let stay = (1..=2).map(|at| node(&format!("s{at}"), BaseState::Idle, &[]));
    let rest = (1..=6).map(|at| resting(&format!("c{at}")));
    stay.chain(rest).collect()
}

pub(crate) fn resting(name: &str) -> Node {
    node(name, BaseState::Idle, &["CLOUD", "POWERED_DOWN", "DRAIN"])
}

pub(crate) fn up(name: &str) -> Node {
    node(name, BaseState::Idle, &["CLOUD"])
}

pub(crate) fn job(id: u32, partition: &str, on: &str) -> SlurmJob {
    let nodes: Vec<String> = Some(on)
        .filter(|on| !on.is_empty())
        .map(str::to_owned)
        .into_iter()
        .collect();
    let running = !nodes.is_empty();
    SlurmJob {
        partition: partition.to_owned(),
        state: if running {
            JobState::Running
        } else {
            JobState::Pending
        },
        state_word: if running { "RUNNING" } else { "PENDING" }.to_owned(),
        nodes,
        cpus: 2,
        submitted_ms: 1_000,
        start_ms: if running { 2_000 } else { 0 },
        eligible_ms: 1_000,
        accrue_ms: 1_000,
        requeues: true,
        ..SlurmJob::waiting(id, format!("job{id}"))
    }
}

pub(crate) fn instance(node: &str, status: Status) -> PoolServer {
    PoolServer {
        id: format!("id-{node}"),
        created_ms: 0,
        node: node.to_owned(),
        status,
        launched_ms: Some(1_000),
        deadline_ms: None,
        ended_ms: None,
        taken: false,
        reason: String::new(),
    }
}

/// A look at a world with the load that it has.
pub(crate) fn look(manager: &mut Manager, now: i64, world: &ClusterSnapshot<'_>) -> Decisions {
    let settings = settings();
    let load = Load::of(world, &settings.group().unwrap().nodes, &settings);
    manager.look(now, world, load).unwrap()
}

/// What stands in a world, to be changed and looked at.
#[derive(Default)]
pub(crate) struct Scene {
    pub(crate) nodes: Vec<Node>,
    pub(crate) jobs: Vec<SlurmJob>,
    pub(crate) instances: Vec<PoolServer>,
    pub(crate) broke: bool,
}

impl Scene {
    /// Both nodes that stay work on long jobs: with a threshold of a quarter, six more are wanted.
    pub(crate) fn busy() -> Self {
        Self {
            nodes: cluster(),
            jobs: vec![job(1, "long", "s1"), job(2, "long", "s2")],
            ..Self::default()
        }
    }

    pub(crate) fn set(&mut self, node: Node) {
        let at = self.nodes.iter().position(|one| one.name == node.name);
        self.nodes[at.unwrap()] = node;
    }

    pub(crate) fn world(&self) -> ClusterSnapshot<'_> {
        ClusterSnapshot {
            nodes: &self.nodes,
            jobs: &self.jobs,
            instances: &self.instances,
            budget_used_up: self.broke,
            kept: &[],
        }
    }

    pub(crate) fn look(&self, manager: &mut Manager, seconds: i64) -> Decisions {
        look(manager, seconds * 1_000, &self.world())
    }

    /// All six nodes are up on their instances, and the manager knows.
    pub(crate) fn grown(manager: &mut Manager) -> Self {
        let mut scene = Self::busy();
        scene.look(manager, 0);
        for at in 1..=6 {
            let name = format!("c{at}");
            scene.set(up(&name));
            scene.instances.push(instance(&name, Status::Active));
        }
        scene.look(manager, 10);
        scene
    }
}

/// The actions that are not about labels, in short.
pub(crate) fn said(heard: &Decisions) -> Vec<String> {
    let each = heard.actions.iter().filter_map(|action| {
        Some(match action {
            BurstAction::PowerUp { node } => format!("power up {node}"),
            BurstAction::Open { node } => format!("open {node}"),
            BurstAction::Drain { node, .. } => format!("drain {node}"),
            BurstAction::Rest { node } => format!("rest {node}"),
            BurstAction::Down { node, .. } => format!("down {node}"),
            BurstAction::PowerDown { node } => format!("power down {node}"),
            BurstAction::Delete { instance } => format!("delete {instance}"),
            BurstAction::Signal { job } => format!("signal {job}"),
            BurstAction::Requeue { job } => format!("requeue {job}"),
            BurstAction::StartNow { job } => format!("start {job}"),
            BurstAction::KeepPlace { job, nice } => format!("nice {nice} {job}"),
            BurstAction::Release { job } => format!("release {job}"),
            BurstAction::Label { .. } => return None,
        })
    });
    each.collect()
}
