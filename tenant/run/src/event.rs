//! Events of a job, and the actions that follow.

use crate::{RunTime, Span};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEvent {
    /// An instance of this age is available. Also reports that an instance with notice stays after
    /// all, if its process was ended already.
    Instance {
        /// Time since its launch.
        age: Span,
    },
    /// The process runs: the answer to [`RunAction::Start`] and [`RunAction::Restore`].
    Started,
    /// The job cannot continue from the checkpoint, or not on this instance.
    RestoreFailed,
    /// The requested checkpoint is complete and on durable storage.
    Saved,
    /// The checkpoint failed and must not be used.
    SaveFailed,
    /// The instance ends at `deadline` at the earliest.
    Notice {
        /// The end of its grace period.
        deadline: RunTime,
    },
    /// The provider considers an interruption of this instance more likely than of others (EC2's
    /// rebalance recommendation).
    Risk,
    /// The job is to be saved now, and goes on.
    Save,
    /// The notice is withdrawn: the instance stays.
    Spared,
    /// The instance is gone, and with it everything that ran there.
    Gone,
    /// The process ended by itself.
    Exited {
        /// Its exit code.
        code: u8,
    },
    /// Another process ended the process with a termination signal, for example because the machine
    /// shuts down or runs out of memory. The job is not finished.
    Killed {
        /// 128 plus the number of the signal, as in shells.
        code: u8,
    },
    /// The user wants to stop, and perhaps to continue later. A second request stops at once.
    Stop,
    /// Only time has passed: the event that [`crate::RunJob::wake_at`] asks for.
    Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointReason {
    /// The rhythm requires it.
    Planned,
    /// The instance has notice, and the checkpoint fits before its deadline.
    Notice,
    /// The instance has notice, and the checkpoint probably does not fit, but without it all
    /// unsaved work is lost in any case.
    LastTry,
    /// The provider reports a risk.
    Risk,
    /// The user wants to stop.
    Stop,
    /// The user or a service asked for it; the job goes on.
    Asked,
}

/// Actions for the caller, to be carried out in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunAction {
    /// Start the process from the beginning.
    Start,
    /// Restore the process from this checkpoint.
    Restore(u64),
    /// Write a checkpoint with this number; the answer is [`RunEvent::Saved`] or
    /// [`RunEvent::SaveFailed`].
    Save {
        /// Its number: higher than all earlier ones.
        id: u64,
        why: CheckpointReason,
    },
    /// Abort the checkpoint in progress, and remove its parts.
    Abandon(u64),
    /// Remove a checkpoint that is no longer needed.
    Discard(u64),
    /// End the process and all its descendants; the job expects no [`RunEvent::Exited`] for it.
    Kill,
    /// Tell the provider that the instance needs no more time.
    Release,
    /// Get another instance, or wait until this one returns; the answer is [`RunEvent::Instance`].
    Await,
    /// The run has ended.
    Finish(RunEnd),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// The process ended by itself: the job is done or has failed.
    Exited {
        /// Its exit code.
        code: u8,
    },
    /// Another process ended the process. The job can continue from the last checkpoint.
    Killed {
        /// 128 plus the number of the signal.
        code: u8,
    },
    /// The user stopped the job. It can continue later.
    Stopped {
        /// Whether all work was saved.
        saved: bool,
    },
    /// The job could not continue from any checkpoint. They are kept: the reason may be this
    /// instance.
    CannotRestore,
}
