//! The check before the switch from nova-scheduler, and before an upgrade.
//!
//! [`read`] asks Nova's databases, Placement, Nova's API, the broker and the ledger, and changes
//! nothing.
//! [`judge`] is pure: it says of each part whether the scheduler would start and work with it.

mod judge;
mod read;

pub use judge::judge;
pub(crate) use read::agents as agent_queues;
pub use read::read;

use ebbtide_bus::QueueUse;
use ebbtide_model::Seconds;
use ebbtide_nova_db::{FlavorSpecs, NovaRelease, SchedulerRecord};
use ebbtide_store::SchemaState;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What was read, or the error with its code.
pub type CheckInput<T> = Result<T, String>;

/// What a check reads.
#[derive(Debug, Clone)]
pub struct UpgradeFacts {
    /// Errors for which a scheduler would refuse nova.conf.
    pub configuration: Vec<String>,
    /// Nova's databases.
    pub nova: CheckInput<NovaFacts>,
    /// Placement's newest microversion.
    pub placement: CheckInput<String>,
    /// Whether the user of `[placement]` may do in Nova's API what an administrator may; `None`:
    /// nothing needs that.
    pub compute: Option<CheckInput<()>>,
    /// The broker of `[DEFAULT] transport_url`; the queue on which requests wait, if it exists.
    pub messages: CheckInput<Option<QueueUse>>,
    /// The ledger's tables; `None`: `[ebbtide] connection` is not set.
    pub ledger: Option<CheckInput<SchemaState>>,
    /// The queue of each compute host's agent, where it exists; `None` as for the ledger, or where
    /// the hosts are not known.
    pub agents: Option<CheckInput<BTreeMap<String, Option<QueueUse>>>>,
    /// What nova.conf says without effect in the release that the scheduler would decide as; or
    /// why that release refuses it.
    pub differences: CheckInput<Vec<String>>,
    /// The major version of Nova that the scheduler would decide as.
    pub deciding_as: u32,
    /// Whether `[ebbtide] nova_release` names it. Else the services' records show it.
    pub release_is_named: bool,
    /// The grace period of flavors that say nothing.
    pub default_grace: Seconds,
}

/// What Nova's databases say.
#[derive(Debug, Clone, Default)]
pub struct NovaFacts {
    /// Cells in which hosts are looked for.
    pub cells: usize,
    /// Those that do not answer: name and error.
    pub silent_cells: Vec<(String, String)>,
    /// The release that the services' records show.
    pub release: Option<NovaRelease>,
    /// The lowest version of a nova-compute; 0: there is none.
    pub oldest_compute: i64,
    /// Whether computes that are too old are tolerated.
    pub tolerates_old_computes: bool,
    /// Hosts with a nova-compute.
    pub computes: BTreeSet<String>,
    /// Records of schedulers, Nova's and ours.
    pub schedulers: Vec<SchedulerRecord>,
    /// Hosts of schedulers whose last heartbeat is younger than `service_down_time`.
    pub schedulers_up: BTreeSet<String>,
    /// All flavors.
    pub flavors: Vec<FlavorSpecs>,
}

/// What a check says of one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Ready.
    Success,
    /// The scheduler starts; something does less than one may expect.
    Warning,
    /// The scheduler does not start, or cannot work.
    Failure,
}

/// One line of the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// The part that was checked.
    pub check: &'static str,
    /// How it is.
    pub result: Verdict,
    /// What was found.
    pub details: String,
    /// What the operator can do, where something is to be done.
    pub next: Option<&'static str>,
}
