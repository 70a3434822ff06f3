//! Rules that can be broken on purpose, to show that the simulator would see it.
//!
//! Each is a change of a shell around the real state machines; the machines themselves are never
//! touched.

macro_rules! mutations {
    ($($(#[$doc:meta])* $name:ident, $word:literal, $world:ident, $says:literal;)+) => {
        /// A rule that is broken on purpose.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Mutation {
            $($(#[$doc])* $name,)+
        }

        impl Mutation {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The word by which the command knows it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)+ }
            }

            /// What is broken, in words.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self { $(Self::$name => $says,)+ }
            }

            /// The world whose rule it is.
            #[must_use]
            pub fn world(self) -> crate::WorldKind {
                match self { $(Self::$name => crate::WorldKind::$world,)+ }
            }
        }
    };
}

mutations! {
    /// The outbox is sent before its transaction is durable.
    NoticeBeforeCommit, "notice-before-commit", Region, "messages go out before their transaction is durable";
    /// The region in memory goes on after a commit that failed.
    MemoryAheadOfDatabase, "memory-ahead-of-database", Region, "after a commit that failed the scheduler goes on with what it has in memory";
    /// A commit whose answer was lost counts as refused.
    LostCommitTakenAsRefusal, "lost-commit-taken-as-refusal", Region, "a commit whose answer was lost is taken as refused, and memory goes back";
    /// The lease's epoch is not looked at.
    StaleLeaseAccepted, "stale-lease-accepted", Region, "the database takes commits of a scheduler whose lease was taken over";
    /// What other schedulers wrote is not looked at before deciding.
    NewsNotFollowed, "news-not-followed", Region, "a scheduler writes what it has decided without looking at what others have written";
    /// What was decided early is kept although everything was read anew.
    SpeculationOutlivesMemory, "speculation-outlives-memory", Region, "an early decision is kept although memory was read anew since";
    /// Coming on duty without a look at the database.
    DutyWithoutReading, "duty-without-reading", Region, "a scheduler that comes on duty does not read what is still to be sent";
    /// A repeated request has new identifiers.
    RequestWithoutKey, "request-without-key", Region, "a request that is repeated is a new one: it has no idempotency key";
    /// A repeated notice is a new evacuation.
    NoticeWithoutKey, "notice-without-key", Region, "each delivery of a notice is taken for another evacuation";
    /// The agent acknowledges on receipt.
    AckBeforeEffect, "ack-before-effect", Region, "the agent acknowledges a command when it arrives, and dies before it follows";
    /// The driver is asked before the journal is durable.
    ActBeforeJournal, "act-before-journal", Region, "the hypervisor is asked to end a victim before that is in the journal";
    /// Spares are not followed.
    SpareIgnored, "spare-ignored", Region, "the agent acknowledges a spare and does not follow it";
    /// Spares are not sent.
    SpareForgotten, "spare-forgotten", Region, "the scheduler writes down that a victim is spared and does not say so";
    /// The guest knows is taken for the guest is gone.
    RoomBeforeGone, "room-before-gone", Region, "the room of a victim is given when it has its notice, not when it is gone";
    /// The grace period is not kept.
    GraceCutShort, "grace-cut-short", Region, "the agent does not wait for the grace period";
    /// A notice that comes too late is followed.
    LateNoticeFollowed, "late-notice-followed", Region, "the agent follows a notice after the scheduler has given up on it";
    /// What a start that was given up left behind is not looked after.
    OrphanedStartForgotten, "remains-forgotten", Region, "no message asks the agent to remove what an abandoned start may have left";
    /// The host is chosen by its weights, whatever its victims cost.
    DearerVictims, "dearer-victims", Region, "the host is chosen by its weights, whatever its victims cost";
    /// A decision depends on chance that comes from nowhere.
    ChanceWithoutSeed, "chance-without-seed", Region, "which of two equal hosts is taken depends on chance";
    /// A server that was kept is started as if it were new.
    KeptMadeAnew, "kept-made-anew", Region, "a server that was hibernated is made anew where nothing is left of it";
    /// What is kept on shared storage goes on without its token.
    ResumeWithoutToken, "resume-without-token", Region, "a server that is kept on shared storage resumes although no host has taken its token";
    /// Who was evacuated comes back at once.
    NoStayAway, "no-stay-away", Region, "who had to leave comes back after a second, however often";
    /// A victim that is out of bid has no time between notice and end.
    OutbidWithoutNotice, "outbid-without-notice", Region, "a server that is outbid has no time between notice and end (worlds with a market: seeds from 20,000,000)";
    /// Prices are not read anew.
    PricesForgotten, "prices-forgotten", Region, "a scheduler that reads everything anew does not read the prices (worlds with a market: seeds from 20,000,000)";
    /// The agent believes a fence that has failed, and does not verify that the guest is gone.
    FenceBelieved, "fence-believed", Region, "the word of a fence that lies is taken for a free room";
    /// Victims are told before Placement has taken the swap.
    NoticeBeforeSwap, "notice-before-swap", Nova, "victims are told before Placement has taken the swap";
    /// No answer of Placement counts as a refusal.
    LostAnswerTakenAsRefusal, "lost-answer-taken-as-refusal", Nova, "a swap whose answer was lost is taken as refused";
    /// Placement takes what is old.
    StaleGenerationAccepted, "stale-generation-accepted", Nova, "Placement takes claims with old generations, and does not count";
    /// The ledger looks at neither versions nor owners.
    TwoOwnersOfOneRow, "two-owners-of-one-row", Nova, "two schedulers write one row of the ledger, each what it thinks";
    /// The caller is told before the victims are gone.
    AnswerBeforeGone, "answer-before-gone", Nova, "the caller is told that the room is there before the victims are gone";
    /// A spare that was sent counts as an agent's word.
    SpareTakenForAnswer, "spare-taken-for-answer", Nova, "a preemption that is called off ends before the agents have said that their victims live";
    /// Only Placement's figures count.
    RunningNotCounted, "running-not-counted", Nova, "a victim that still runs counts for nothing once its newcomer is deleted";
    /// More is given than the newcomer needs.
    SurplusGivenAtOnce, "surplus-given-at-once", Nova, "what victims free beyond the newcomer's need is given to others while they still run";
    /// A scheduler of which there is a second one goes on.
    SupersededGoesOn, "superseded-goes-on", Nova, "a scheduler goes on although another one was started under its name";
    /// A scheduler ignores its own undriven row until its next life.
    OwnRowForgotten, "own-row-forgotten", Nova, "a row whose write lost its answer is not driven until its scheduler starts anew";
    /// Usage is written without its key.
    UsageWithoutKey, "usage-without-key", Nova, "a usage record that is written again counts again";
}

impl Mutation {
    /// The first seed of the worlds that have what it breaks.
    #[must_use]
    pub fn first_seed(self) -> u64 {
        match self {
            Self::OutbidWithoutNotice | Self::PricesForgotten => crate::region::MARKETS_FROM,
            // Few worlds have a fence at all: one in some thousand shows it.
            Self::FenceBelieved => 12_000,
            _ => 0,
        }
    }
}

impl std::str::FromStr for Mutation {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL
            .iter()
            .copied()
            .find(|m| m.as_str() == word)
            .ok_or_else(|| {
                let all: Vec<&str> = Self::ALL.iter().map(|m| m.as_str()).collect();
                format!(
                    "there is no rule {word:?} to break; there are: {}",
                    all.join(", ")
                )
            })
    }
}
