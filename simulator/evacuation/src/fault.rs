//! Everything that can go wrong, for counting and for words.

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $words:literal,)+) => {
        /// A kind of fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FaultKind {
            $($(#[$doc])* $name,)+
        }

        impl FaultKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The words for it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $words,)+ }
            }
        }
    };
}

faults! {
    /// A scheduler's process is killed and comes back.
    SchedulerCrash = "scheduler killed",
    /// A scheduler stands still, wakes up and goes on as if nothing had been.
    SchedulerPause = "scheduler paused",
    /// A scheduler's clock is set.
    SchedulerClock = "scheduler's clock set",
    /// An agent's process is killed; sometimes it stays away.
    AgentCrash = "agent killed",
    /// An agent dies in the middle of what it has to do.
    AgentTorn = "agent killed between two effects",
    /// An agent's disk is full: its journal cannot be written.
    AgentDiskFull = "agent's disk full",
    /// An agent's clock is set.
    AgentClock = "agent's clock set",
    /// The agent says that there is more or less room than there is.
    AgentLiesRoom = "agent lies about room",
    /// The agent leaves out servers, or says that there are some that are not.
    AgentLiesServers = "agent lies about servers",
    /// The database refuses a commit.
    CommitFails = "commit failed",
    /// The database takes a commit and the answer is lost.
    CommitUnknown = "commit's answer lost",
    /// The database's disk is full for some time.
    DatabaseDiskFull = "database's disk full",
    /// The broker is away.
    BrokerAway = "broker away",
    /// An agent does not hear the broker.
    PartitionIn = "partition, broker to agent",
    /// The broker does not hear an agent.
    PartitionOut = "partition, agent to broker",
    /// The broker has a message and its confirmation is lost, so that it comes again.
    ConfirmLost = "confirmation lost",
    /// A message comes twice.
    Duplicate = "message duplicated",
    /// A message is overtaken by others.
    Reorder = "message reordered",
    /// A message that need not be kept (a heartbeat) is lost.
    HeartbeatLost = "heartbeat lost",
    /// A call of the hypervisor fails.
    CallFails = "hypervisor call failed",
    /// A call takes effect and answers with an error.
    CallLies = "hypervisor call's answer lost",
    /// A call does not end in time, and takes effect later or never.
    CallTimesOut = "hypervisor call timed out",
    /// A hypervisor does not answer for some time.
    HypervisorStuck = "hypervisor stuck",
    /// The hypervisor has no room although it should.
    NoRoom = "hypervisor without room",
    /// A guest ends behind everybody's back.
    GuestLost = "guest lost",
    /// The answer to a request does not reach the tenant, who repeats the request.
    AnswerLost = "answer to a tenant lost",
    /// The caller cancels the request while it is under way.
    Cancelled = "request cancelled in flight",
    /// Placement does what it is asked and the answer is lost.
    PlacementSilent = "Placement's answer lost",
    /// Placement never hears the question.
    PlacementAway = "Placement away",
    /// Another writer changes what Placement has.
    PlacementChanged = "Placement changed by others",
    /// The ledger cannot be written.
    LedgerAway = "ledger away",
    /// The ledger takes a write and the answer is lost.
    LedgerSilent = "ledger's answer lost",
    /// A second scheduler is started under the name of one that stands still.
    SchedulerTwice = "scheduler started twice",
}

/// How often each kind of fault has been injected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultCounts([u64; FaultKind::ALL.len()]);

impl Default for FaultCounts {
    fn default() -> Self {
        Self([0; FaultKind::ALL.len()])
    }
}

impl FaultCounts {
    pub(crate) fn add(&mut self, fault: FaultKind) {
        if let Some(count) = self.0.get_mut(fault as usize) {
            *count += 1;
        }
    }

    /// Adds those of another world.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }

    /// How many in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Each kind with its number, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (FaultKind, u64)> {
        FaultKind::ALL.iter().copied().zip(self.0)
    }
}
