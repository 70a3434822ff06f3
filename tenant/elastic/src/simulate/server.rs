//! A server and a job as the simulation keeps them.

use super::queue::ShortQueue;
use super::watch::ServerRole;
use std::collections::VecDeque;

/// What a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Nothing: its queues are empty.
    Idle,
    /// Asks a job for a task and will hear that there is none left.
    Asking,
    /// A task of a short job, which began at this time, microseconds.
    Short {
        job: u32,
        began_us: u64,
        task: ShortTask,
    },
    /// A task of a long job.
    Long { job: u32 },
}

/// A task of a short job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ShortTask {
    /// How long it takes, microseconds.
    pub(crate) us: u64,
    /// Its place in the queue that all servers share, where there is one.
    pub(crate) place: u64,
    /// How often it was lost with a server, and when the last time, microseconds.
    pub(crate) losses: u32,
    pub(crate) lost_us: u64,
}

/// May it be given tasks?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Not yet.
    Coming,
    /// Yes.
    Open,
    /// No more; it ends what it has.
    Draining,
    Gone,
}

#[derive(Debug, Clone)]
pub(crate) struct SimulatedServer {
    pub(crate) place: ServerRole,
    pub(crate) standing: Admission,
    pub(crate) doing: Activity,
    /// How many things it has begun; what comes for an earlier one is out of date.
    pub(crate) turn: u32,
    pub(crate) shorts: ShortQueue,
    /// Long tasks that wait: job and duration.
    pub(crate) longs: VecDeque<(u32, u64)>,
    /// When it was asked for, and when it came up, microseconds.
    pub(crate) launched_us: u64,
    pub(crate) up_us: u64,
}

impl SimulatedServer {
    pub(crate) fn new(place: ServerRole, standing: Admission, launched_us: u64) -> Self {
        Self {
            place,
            standing,
            doing: Activity::Idle,
            turn: 0,
            shorts: ShortQueue::default(),
            longs: VecDeque::new(),
            launched_us,
            up_us: launched_us,
        }
    }
}

/// What is known of a job.
#[derive(Debug, Clone, Default)]
pub(crate) struct JobProgress {
    /// Tasks that have not begun, unless they wait in a shared queue; the next one is the last.
    pub(crate) left: Vec<ShortTask>,
    /// Tasks that are done.
    pub(crate) done: u32,
    /// Tasks that run on transient servers now.
    pub(crate) on_transients: u32,
    /// Probes on on-demand servers, or on their way there: queued and parked.
    pub(crate) copies: u32,
    /// Servers where a copy waits for the case that a transient server is interrupted.
    pub(crate) parked: Vec<u32>,
}

impl JobProgress {
    /// Tasks that have not ended and do not run on an on-demand server: each needs a copy there.
    pub(crate) fn uncovered(&self) -> u32 {
        self.left.len() as u32 + self.on_transients
    }
}
