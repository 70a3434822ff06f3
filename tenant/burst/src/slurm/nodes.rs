//! Nodes, from `sinfo --json`.

use super::{answer, set};
use crate::error::BurstError;
use serde::Deserialize;
use std::collections::BTreeSet;

/// What a node is doing, its flags apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseState {
    /// Nothing.
    Idle,
    /// Some of its processors work.
    Mixed,
    /// All of them.
    Allocated,
    /// Slurm has marked the node down: the node does not answer, or an operator or a program set
    /// this state.
    Down,
    /// Anything else: unknown after a start of slurmctld, an error, planned for the future.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    /// What it is doing.
    pub base: BaseState,
    /// Slurm's flags: CLOUD, DRAIN, POWERED_DOWN and so on.
    pub flags: BTreeSet<String>,
    /// Its processors.
    pub cpus: u32,
    /// Its features, as they are now.
    pub features: Vec<String>,
    /// Its weight: nodes of less weight are used first.
    pub weight: u64,
    pub comment: String,
    /// Why it is down or drained.
    pub reason: String,
    pub partitions: Vec<String>,
}

impl Node {
    fn has(&self, flag: &str) -> bool {
        self.flags.contains(flag)
    }

    /// Whether it is a node of the cloud: it may not be there.
    #[must_use]
    pub fn is_cloud(&self) -> bool {
        self.has("CLOUD")
    }

    /// Whether it is not there, and Slurm knows that.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.has("POWERED_DOWN") && !self.is_starting()
    }

    /// Whether Slurm has asked for it and waits for its slurmd.
    #[must_use]
    pub fn is_starting(&self) -> bool {
        self.has("POWER_UP") || self.has("POWERING_UP")
    }

    /// Whether it is being given back.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.has("POWER_DOWN") || self.has("POWERING_DOWN")
    }

    /// Whether Slurm has given it up.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.base == BaseState::Down
    }

    /// Whether it takes no new jobs.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.has("DRAIN")
    }

    /// Whether a job's processes are being cleaned up on it.
    #[must_use]
    pub fn is_completing(&self) -> bool {
        self.has("COMPLETING")
    }

    /// Whether its slurmd has answered and it is neither coming nor going.
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(
            self.base,
            BaseState::Idle | BaseState::Mixed | BaseState::Allocated
        ) && !self.has("POWERED_DOWN")
            && !self.has("NOT_RESPONDING")
            && !self.is_starting()
            && !self.is_stopping()
    }

    /// Whether it takes new jobs.
    #[must_use]
    pub fn in_service(&self) -> bool {
        self.is_up() && !self.is_drained()
    }
}

#[derive(Debug, Deserialize)]
struct Rows {
    nodes: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    name: String,
    state: String,
    state_flags: Vec<String>,
    cpus: u64,
    #[serde(default)]
    active_features: Option<String>,
    #[serde(default)]
    weight: Option<u64>,
    #[serde(default)]
    comment: Option<String>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    partitions: Vec<String>,
}

/// The nodes in an answer of `sinfo --json`, each once.
///
/// # Errors
/// [`BurstError::Answer`] for what is no such answer.
pub fn nodes(text: &str) -> Result<Vec<Node>, BurstError> {
    let rows: Rows = answer("sinfo --json", text)?;
    let mut seen = BTreeSet::new();
    let all = rows.nodes.into_iter();
    // A node of two partitions may be there twice.
    Ok(all
        .filter(|row| seen.insert(row.name.clone()))
        .map(node)
        .collect())
}

fn node(row: Row) -> Node {
    let base = match row.state.as_str() {
        "idle" => BaseState::Idle,
        "mixed" => BaseState::Mixed,
        "allocated" => BaseState::Allocated,
        "down" => BaseState::Down,
        _ => BaseState::Other,
    };
    let features = row.active_features.unwrap_or_default();
    let words = features.split(',').filter(|word| !word.is_empty());
    Node {
        name: row.name,
        base,
        flags: row.state_flags.into_iter().collect(),
        cpus: u32::try_from(row.cpus).unwrap_or(u32::MAX),
        features: words.map(str::to_owned).collect(),
        weight: set(row.weight).unwrap_or(0),
        comment: row.comment.unwrap_or_default(),
        reason: row.reason.unwrap_or_default(),
        partitions: row.partitions,
    }
}
