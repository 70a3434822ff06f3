//! The list of places.

/// Declares the places once: the enum, the list, and the names.
macro_rules! points {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// A place at which a process can be asked to die.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FailPoint {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl FailPoint {
            /// Every place.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// What it is called in the environment.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

points! {
    // ---- the scheduler ----

    /// A request has got a place with victims; nothing is written.
    ClaimDecided = "claim-decided",
    /// Claim, evacuation and notice are written in the database's transaction, which is not
    /// committed. Not on SQLite.
    ClaimWritten = "claim-written",
    /// Claim, evacuation and notice are durable; the caller has no answer yet.
    ClaimCommitted = "claim-committed",
    /// A notice is about to be handed to the broker.
    NoticeSending = "notice-sending",
    /// The broker has the notice; that is not written.
    NoticeConfirmed = "notice-confirmed",
    /// That is durable: the evacuation is notified.
    NoticeNoted = "notice-noted",
    /// A victim's agent was heard to have told it; nothing is written.
    DrainingHeard = "draining-heard",
    /// That is durable; the report is not acknowledged.
    DrainingCommitted = "draining-committed",
    /// The report is acknowledged.
    DrainingAcknowledged = "draining-acknowledged",
    /// A victim's agent was heard to have ended it; nothing is written.
    EvacuatedHeard = "evacuated-heard",
    /// That is durable, and so is the preemptor's start; the report is not acknowledged, the start
    /// not sent.
    EvacuatedCommitted = "evacuated-committed",
    /// The report is acknowledged.
    EvacuatedAcknowledged = "evacuated-acknowledged",
    /// The broker has the preemptor's start; that is not written.
    StartConfirmed = "start-confirmed",
    /// The preemptor's agent was heard to have started it; nothing is written.
    StartedHeard = "started-heard",
    /// That is durable; the report is not acknowledged.
    StartedCommitted = "started-committed",
    /// The preemptor is being deleted and its victims are to be spared; nothing is written.
    SpareDecided = "spare-decided",
    /// That is durable; the spare is not sent.
    SpareCommitted = "spare-committed",
    /// The broker has the spare; that is not written.
    SpareConfirmed = "spare-confirmed",
    /// A victim's agent was heard to have spared it; nothing is written.
    SparedHeard = "spared-heard",

    // ---- the agent ----

    /// A notice has come; nothing is written.
    NoticeRead = "notice-read",
    /// The notice is in the journal; the guest is not told.
    NoticeJournaled = "notice-journaled",
    /// The guest is told; that is not written.
    GuestTold = "guest-told",
    /// That is in the journal; the scheduler is not told.
    DrainingJournaled = "draining-journaled",
    /// The broker has the report that the grace period runs; the agent has not noted it.
    DrainingReported = "draining-reported",
    /// Half of the line about the end of the grace period is in the journal.
    EndingHalfJournaled = "ending-half-journaled",
    /// The end of the grace period is in the journal; the hypervisor is not asked.
    EndingJournaled = "ending-journaled",
    /// The hypervisor has ended the victim; that is not written.
    VictimEnded = "victim-ended",
    /// The end is in the journal; the scheduler is not told.
    EvacuatedJournaled = "evacuated-journaled",
    /// The broker has the report of the end; the agent has not noted it.
    EvacuatedReported = "evacuated-reported",
    /// That is in the journal; the notice is not acknowledged.
    EvacuatedSettled = "evacuated-settled",
    /// The notice is acknowledged.
    NoticeAcknowledged = "notice-acknowledged",
    /// The preemptor's start has come; nothing is written.
    StartRead = "start-read",
    /// The hypervisor has started the preemptor; that is not written.
    PreemptorStarted = "preemptor-started",
    /// The broker has the report of the start; its command is not acknowledged.
    StartedReported = "started-reported",
    /// A spare has come; nothing is written.
    SpareRead = "spare-read",
    /// The guest is told that it may stay; that is not written.
    GuestSpared = "guest-spared",
    /// The broker has the report that the victim stays; the agent has not noted it.
    SparedReported = "spared-reported",

    // ---- the scheduler on a real Nova ----

    /// A request has got a host with victims; nothing is written.
    NovaPlanned = "nova-planned",
    /// The preemption is in the ledger; Placement does not know of it.
    NovaRecorded = "nova-recorded",
    /// Placement has swapped the allocations; no victim's agent is told.
    NovaSwapped = "nova-swapped",
    /// The broker has a victim's notice; that is not in the ledger.
    NovaNoticed = "nova-noticed",
    /// A victim is gone; the usage record is not written.
    NovaEvacuated = "nova-evacuated",
    /// nova-conductor has its answer.
    NovaReplied = "nova-replied",
}
