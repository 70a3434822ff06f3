//! What happens to a job, and what is to be done about it.

use crate::{Moment, Span};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// There is an instance to work on, this old. Also says that the one of a notice stays after all, if its process was ended already.
    Instance {
        /// Time since its launch.
        age: Span,
    },
    /// The process runs: the answer to [`Action::Start`] and [`Action::Restore`].
    Started,
    /// The checkpoint cannot be gone on from, or not here.
    RestoreFailed,
    /// The checkpoint that was begun is complete and on durable storage.
    Saved,
    /// It failed, and is not to be used.
    SaveFailed,
    /// The instance has to leave at `deadline` at the earliest.
    Notice {
        /// The end of its grace period.
        deadline: Moment,
    },
    /// The provider thinks that the instance is more likely to be interrupted than others (EC2's rebalance recommendation).
    Risk,
    /// The notice does not count any more: the instance stays.
    Spared,
    /// The instance is gone, and with it everything that ran there.
    Gone,
    /// The process ended by itself.
    Exited {
        /// Its exit code.
        code: u8,
    },
    /// Somebody else ended the process by a signal that asks any process to go: a machine that is shut down, a lack of memory. The job has not
    /// ended by this.
    Killed {
        /// 128 and the number of the signal, as shells have it.
        code: u8,
    },
    /// The user wants to stop, and perhaps to go on later. A second time: at once.
    Stop,
    /// Nothing but the time: what [`crate::Job::wake_at`] asks for.
    Time,
}

/// Why a checkpoint is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The rhythm says so.
    Planned,
    /// The instance has to leave, and the checkpoint fits before its deadline.
    Notice,
    /// The instance has to leave, and the checkpoint probably does not fit: but without it all unsaved work is lost in any case.
    LastTry,
    /// The provider sees a risk.
    Risk,
    /// The user wants to stop.
    Stop,
}

/// What is to be done, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Start the process from the beginning.
    Start,
    /// Let it go on from this checkpoint.
    Restore(u64),
    /// Write a checkpoint with this number; [`Event::Saved`] or [`Event::SaveFailed`] is the answer.
    Save {
        /// Its number: higher than all before.
        id: u64,
        /// Why.
        why: Why,
    },
    /// Give up the checkpoint that is being written, and remove what there is of it.
    Abandon(u64),
    /// Remove a checkpoint that is not needed any more.
    Discard(u64),
    /// End the process and everything that it started; no [`Event::Exited`] is wanted for it.
    Kill,
    /// Tell the provider that the instance needs no more time.
    Release,
    /// Get another instance, or wait until this one comes back; [`Event::Instance`] is the answer.
    Await,
    /// That was it.
    Finish(Ending),
}

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The process ended by itself: the job is done, or has failed by itself.
    Exited {
        /// Its exit code.
        code: u8,
    },
    /// Somebody else ended the process. It can be gone on with from the last checkpoint.
    Killed {
        /// 128 and the number of the signal.
        code: u8,
    },
    /// The user wanted it. It can be gone on with.
    Stopped {
        /// Whether all work was saved.
        saved: bool,
    },
    /// No checkpoint could be gone on from. They are kept: the reason may be this instance.
    CannotRestore,
}
