//! One request on its way, step by step: claims are made by the caller, outside any lock.

use crate::facts::HostRef;
use ebbtide_nova::fault::Fault;
use ebbtide_nova::model::AllocationCandidate;

/// What the caller does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Claim this (`PUT /allocations/{instance}`), then say how it went with [`Scheduling::claimed`].
    Claim(Claim),
    /// Answer with these.
    Done(Vec<Vec<Selected>>),
    /// Take back what these instances claimed, then raise the fault.
    Failed {
        /// What Nova raises, mostly NoValidHost.
        fault: Fault,
        /// Instances whose claims are to be deleted. Empty for faults after which Nova leaves them behind.
        release: Vec<String>,
    },
}

/// A claim to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// For whom.
    pub instance_uuid: String,
    /// Where.
    pub host: HostRef,
    /// What.
    pub candidate: AllocationCandidate,
}

/// How a claim went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// It was written.
    Taken,
    /// It was refused: the next host is tried.
    Refused,
    /// It failed in a way that fails the request (AllocationUpdateFailed).
    Fault(Fault),
}

/// A host for an instance (`Selection`).
#[derive(Debug, Clone, PartialEq)]
pub struct Selected {
    /// Where.
    pub host: HostRef,
    /// What was claimed there, or would be; `None` without Placement.
    pub candidate: Option<AllocationCandidate>,
    /// CPU and memory allocation ratio, where NUMATopologyFilter left them as limits.
    pub limits: Option<(f64, f64)>,
    /// Availability zone.
    pub availability_zone: String,
}

/// One request on its way. Owned: the cloud may change meanwhile, the request goes on with what was true when it began, as in Nova.
#[derive(Debug)]
pub struct Scheduling {
    failed: Option<Fault>,
}

impl Scheduling {
    pub(crate) fn not_yet() -> Self {
        Self {
            failed: Some(Fault::new(
                "NotImplementedError",
                "deciding in memory is not there yet",
            )),
        }
    }

    /// What to do next. Asked again without [`Self::claimed`] it says the same again.
    #[allow(
        clippy::should_implement_trait,
        reason = "a request is no iterator: it waits for claims"
    )]
    pub fn next(&mut self) -> Next {
        let fault = self
            .failed
            .clone()
            .unwrap_or_else(|| Fault::new("NoValidHost", "There are not enough hosts available."));
        Next::Failed {
            fault,
            release: Vec::new(),
        }
    }

    /// Says how the claim went that [`Self::next`] asked for. Without one it does nothing.
    pub fn claimed(&mut self, outcome: Claimed) {
        let _ = outcome;
    }

    /// How many hosts passed the filters for the first instance.
    #[must_use]
    pub fn passing(&self) -> usize {
        0
    }

    /// For each filter that ran for the instance looked at last: its name, hosts before, hosts after. Nova logs these before a
    /// NoValidHost.
    #[must_use]
    pub fn filtered(&self) -> Vec<(String, usize, usize)> {
        Vec::new()
    }
}
