//! Jobs, from `squeue --json`.

use super::{answer, hosts, set};
use crate::error::BurstError;
use serde::Deserialize;
use std::collections::BTreeSet;

/// What a job is doing, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// Waits.
    Pending,
    /// Has its nodes, which are being made ready.
    Configuring,
    /// Runs.
    Running,
    /// Its processes are being cleaned up; it may have ended, or be on its way back to the queue.
    Completing,
    /// Has its nodes, and is stopped there.
    Suspended,
    /// It ended well.
    Completed,
    /// It ended in another way: it failed, was cancelled, ran out of time or memory.
    Ended,
}

/// A job, or one element of a job array that has left the array's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmJob {
    /// Slurm's number of it.
    pub id: u32,
    /// The number of its array; 0 without one.
    pub array: u32,
    /// Its index in its array.
    pub task: Option<u32>,
    /// True for the row of an array that stands for all elements that still wait.
    pub waits_for_many: bool,
    /// How many jobs the row stands for: elements of an array that still wait, or 1.
    pub count: u32,
    pub name: String,
    /// Its partition; several, with commas between, while it waits for any of them.
    pub partition: String,
    /// What it is doing.
    pub state: JobState,
    /// In Slurm's word.
    pub state_word: String,
    /// Why it waits, in Slurm's word.
    pub reason: String,
    /// Whether Slurm holds it because slurmd could not launch it.
    pub launch_failed: bool,
    /// Its nodes; none while it waits.
    pub nodes: Vec<String>,
    /// How many nodes it wants or has.
    pub node_count: u32,
    /// How many processors it wants or has, over all nodes.
    pub cpus: u32,
    /// How often it was put back into the queue.
    pub restarts: u32,
    /// When it was submitted.
    pub submitted_ms: i64,
    /// When it was started, or, while it waits, before when it may not; 0 if nothing is known.
    pub start_ms: i64,
    /// When it ended, or will at the latest; 0 if nothing is known.
    pub end_ms: i64,
    /// From when on it may be started; 0 if nothing is known.
    pub eligible_ms: i64,
    /// Since when its priority grows with its age; 0 if nothing is known.
    pub accrue_ms: i64,
    /// By how much its user or an operator lowered its priority.
    pub nice: i32,
    /// The longest that it may run, minutes; none without a limit.
    pub limit_minutes: Option<u64>,
    /// Whether Slurm may put it back into the queue: a batch job that did not refuse.
    pub requeues: bool,
}

impl SlurmJob {
    /// A batch job of one processor that waits on nothing and of which nothing else is known: what
    /// a stand-in for Slurm begins with.
    #[must_use]
    pub fn waiting(id: u32, name: impl Into<String>) -> Self {
        Self {
            id,
            array: 0,
            task: None,
            waits_for_many: false,
            count: 1,
            name: name.into(),
            partition: String::new(),
            state: JobState::Pending,
            state_word: "PENDING".to_owned(),
            reason: String::new(),
            launch_failed: false,
            nodes: Vec::new(),
            node_count: 1,
            cpus: 1,
            restarts: 0,
            submitted_ms: 0,
            start_ms: 0,
            end_ms: 0,
            eligible_ms: 0,
            accrue_ms: 0,
            nice: 0,
            limit_minutes: None,
            requeues: false,
        }
    }

    /// What `scontrol update` calls it. An array's number alone would mean all its elements, and
    /// one of them has that number.
    #[must_use]
    pub fn reference(&self) -> String {
        match self.task {
            Some(task) if self.array > 0 => format!("{}_{task}", self.array),
            _ => self.id.to_string(),
        }
    }

    /// Whether it has nodes that it uses.
    #[must_use]
    pub fn runs(&self) -> bool {
        matches!(
            self.state,
            JobState::Running | JobState::Configuring | JobState::Suspended
        )
    }

    /// Whether it has ended for good.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.state, JobState::Completed | JobState::Ended)
    }

    /// Whether it holds something on this node.
    #[must_use]
    pub fn is_on(&self, node: &str) -> bool {
        (self.runs() || self.state == JobState::Completing) && self.nodes.iter().any(|n| n == node)
    }
}

#[derive(Debug, Deserialize)]
struct Rows {
    jobs: Vec<Row>,
}

/// As Slurm writes it. Times are seconds since 1970.
#[derive(Debug, Deserialize)]
struct Row {
    job_id: u32,
    array_job_id: Option<u32>,
    #[serde(default)]
    array_task_id: Option<u64>,
    array_task_string: Option<String>,
    #[serde(default)]
    name: Option<String>,
    partition: String,
    job_state: String,
    state_reason: Option<String>,
    #[serde(default)]
    state_description: Option<String>,
    nodes: Option<String>,
    node_count: Option<u64>,
    cpus: Option<u64>,
    restart_cnt: Option<u64>,
    submit_time: u64,
    start_time: Option<u64>,
    end_time: Option<u64>,
    eligible_time: Option<u64>,
    accrue_time: Option<u64>,
    #[serde(default)]
    nice: Option<u64>,
    time_limit: Option<u64>,
    #[serde(default)]
    requeue: Option<bool>,
    #[serde(default)]
    batch_flag: Option<bool>,
}

/// How Slurm describes the state of a job that it holds because slurmd could not launch it.
const LAUNCH_FAILED: &str = "launch failed requeued held";

/// No time is later than the year 9999, seconds.
const LAST_SECOND: u64 = 253_402_300_799;

/// Milliseconds; 0 for what is not set.
fn millis(seconds: Option<u64>) -> i64 {
    let seconds = set(seconds).unwrap_or(0).min(LAST_SECOND);
    i64::try_from(seconds).unwrap_or(0) * 1_000
}

/// Slurm 22.05 writes a negative `nice` as an unsigned number of 32 bits, and null for 0.
fn signed(value: Option<u64>) -> i32 {
    let bits = u32::try_from(value.unwrap_or(0)).unwrap_or(0);
    i32::from_ne_bytes(bits.to_ne_bytes())
}

fn small(value: Option<u64>) -> u32 {
    u32::try_from(set(value).unwrap_or(0)).unwrap_or(u32::MAX)
}

/// How many numbers a list of array elements has: `2-3`, `1,4-9`, `1-9%2` (at most two at a time).
/// Slurm cuts long lists off with dots; what is cut off is not counted.
fn elements(list: &str) -> u32 {
    let list = list.split_once('%').map_or(list, |(list, _)| list);
    let count = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let to = to.split_once(':').map_or(to, |(to, _)| to);
        match (from.trim().parse::<u32>(), to.trim().parse::<u32>()) {
            (Ok(from), Ok(to)) if from <= to => (to - from).saturating_add(1),
            _ => 0,
        }
    };
    let each = list.split(',').map(count);
    each.fold(0u32, u32::saturating_add).max(1)
}

/// The jobs in an answer of `squeue --json`.
///
/// # Errors
/// [`BurstError::Answer`] for what is no such answer, [`BurstError::Hosts`] for nodes that cannot
/// be read.
pub fn jobs(text: &str) -> Result<Vec<SlurmJob>, BurstError> {
    let rows: Rows = answer("squeue --json", text)?;
    let mut seen = BTreeSet::new();
    let all = rows.jobs.into_iter();
    // A job is one, however often it is there.
    all.filter(|row| seen.insert(row.job_id)).map(job).collect()
}

fn job(row: Row) -> Result<SlurmJob, BurstError> {
    let state = match row.job_state.as_str() {
        // Put back, and not yet eligible; held.
        "PENDING" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "SPECIAL_EXIT" => {
            JobState::Pending
        }
        "CONFIGURING" => JobState::Configuring,
        "RUNNING" | "RESIZING" | "SIGNALING" | "STAGE_OUT" => JobState::Running,
        "COMPLETING" | "STOPPED" => JobState::Completing,
        "SUSPENDED" => JobState::Suspended,
        "COMPLETED" => JobState::Completed,
        "FAILED" | "CANCELLED" | "TIMEOUT" | "NODE_FAIL" | "PREEMPTED" | "BOOT_FAIL"
        | "DEADLINE" | "OUT_OF_MEMORY" | "REVOKED" => JobState::Ended,
        other => {
            let word: String = other.chars().take(40).collect();
            return Err(BurstError::Answer {
                program: "squeue --json".to_owned(),
                problem: format!(
                    "job {} is in state {word:?}, which Slurm 22.05 has not",
                    row.job_id
                ),
            });
        }
    };
    let list = row.array_task_string.unwrap_or_default();
    let waits_for_many = state == JobState::Pending && !list.is_empty();
    let (nodes, start) = match state {
        // Where it was before does not matter any more.
        JobState::Pending => (Vec::new(), row.start_time),
        _ => (hosts(&row.nodes.unwrap_or_default())?, row.start_time),
    };
    Ok(SlurmJob {
        id: row.job_id,
        array: row.array_job_id.unwrap_or(0),
        task: set(row.array_task_id).and_then(|task| u32::try_from(task).ok()),
        waits_for_many,
        count: if waits_for_many { elements(&list) } else { 1 },
        name: row.name.unwrap_or_default(),
        partition: row.partition,
        state,
        state_word: row.job_state,
        reason: row.state_reason.unwrap_or_default(),
        launch_failed: state == JobState::Pending
            && row.state_description.as_deref() == Some(LAUNCH_FAILED),
        nodes,
        node_count: small(row.node_count),
        cpus: small(row.cpus),
        restarts: small(row.restart_cnt),
        submitted_ms: millis(Some(row.submit_time)),
        start_ms: millis(start),
        end_ms: millis(row.end_time),
        eligible_ms: millis(row.eligible_time),
        accrue_ms: millis(row.accrue_time),
        nice: signed(row.nice),
        limit_minutes: set(row.time_limit),
        // Slurm counts in its batch flag and shows it as false from the second on: a job that was
        // put back before is a batch job.
        requeues: row.requeue.unwrap_or(false)
            && (row.batch_flag.unwrap_or(false) || small(row.restart_cnt) > 0),
    })
}
