//! Events that a simulation reports to its observer.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerRole {
    /// On demand, for long and short jobs.
    General,
    /// On demand, for short jobs only.
    ShortOnly,
    /// Preemptible, for short jobs only.
    Transient,
}

/// Something that happened. Jobs are numbered as in the trace, servers over all kinds; a transient
/// server's number is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEvent {
    /// A job came.
    Arrived {
        job: u32,
        /// By its mean.
        long: bool,
    },
    /// A task begins.
    Began {
        job: u32,
        server: u32,
        /// What that is.
        place: ServerRole,
        /// When it runs, a message's way later than now, microseconds.
        at_us: u64,
        /// How long it takes, microseconds.
        task_us: u64,
    },
    /// A task is done.
    Ended { job: u32, server: u32 },
    /// A server was interrupted and took a task with it, which has to begin anew.
    Lost { job: u32, server: u32 },
    /// A transient server was asked for.
    Launched { server: u32 },
    /// It takes tasks.
    Up { server: u32 },
    /// It takes no new tasks.
    Draining { server: u32 },
    /// It takes tasks again.
    Kept { server: u32 },
    /// It was given back.
    Released { server: u32 },
    /// The provider took it.
    Interrupted { server: u32 },
}

/// An observer of a simulation.
pub trait Watch {
    /// Receives an event and its time in microseconds. Times never decrease.
    fn record(&mut self, at_us: u64, what: WatchEvent);
}

/// An observer that ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoWatch;

impl Watch for NoWatch {
    fn record(&mut self, _: u64, _: WatchEvent) {}
}
