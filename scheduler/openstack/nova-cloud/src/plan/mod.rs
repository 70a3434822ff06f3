//! Preemption plans: which victims leave for a normal request that found no capacity.

mod group;
mod make;
mod needs;
mod needs_columns;
mod tree_needs;
mod verify;
mod verify_trees;

pub(crate) use needs::PCI_FILTER;

use crate::expected::ExpectedInstances;
use crate::facts::{Allocations, Consumer, HostRef};
use crate::scheduling::SelectedHost;
use crate::shadow::ShadowChoice;
use ebbtide_engine::{Budgets, Engine};
use ebbtide_model::flavor::InterruptionBehaviour;
use ebbtide_model::{Explanation, Seconds};
use ebbtide_nova::model::{AllocationCandidate, Options, RequestSpec};
use ebbtide_nova::placement::Query;
use std::sync::Arc;
use uuid::Uuid;

/// Limits of a plan besides the cloud itself.
#[derive(Debug, Clone, Default)]
pub struct PlanOptions {
    /// The rest of the disruption budgets.
    pub budgets: Budgets,
    /// Instances that this plan must not use as victims, for example because Placement just refused
    /// a swap with them.
    pub spared: Vec<Uuid>,
    /// Compute nodes that this plan must not use.
    pub avoided: Vec<Uuid>,
    /// Members of server groups that are not on their hosts yet.
    pub expected: ExpectedInstances,
    /// Seed of the random choices that the engine's policy allows.
    pub seed: u64,
    /// Whether the plan is compared with the one that plugins in shadow make.
    pub compared: bool,
}

/// By what a plan is made.
#[derive(Clone, Copy)]
pub(crate) struct PlanRules<'a> {
    pub(crate) engine: &'a Engine,
    /// Nova's options with the weighers behind its own; `None`: those in use.
    pub(crate) options: Option<&'a Options>,
}

/// One instance of the request and its host.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedInstance {
    pub uuid: Uuid,
    pub host: HostRef,
    /// What to claim, in the form of Placement's allocation candidates.
    pub candidate: AllocationCandidate,
    /// The same, typed.
    pub allocations: Allocations,
    /// The victims that leave for it; empty if the host has enough free capacity.
    pub victims: Vec<Uuid>,
    /// For the reply: the chosen host first, then alternates. An alternate is a host of the same
    /// cell that passes and has enough free capacity without an eviction, because Nova's conductor
    /// claims alternates by itself and evicts no server.
    pub selections: Vec<SelectedHost>,
}

/// A preemptible instance that has to leave.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedVictim {
    /// The instance.
    pub uuid: Uuid,
    pub name: String,
    /// The name of its flavor, for its usage record.
    pub flavor: String,
    pub host: HostRef,
    /// What the victim holds in Placement according to the cloud in memory. A swap removes all of
    /// it except `keeps`.
    pub allocations: Allocations,
    /// What the victim continues to hold: the disk of a server that is stopped and not deleted.
    /// [`Cloud::verify`](crate::Cloud::verify) adds what the newcomers do not need, until the
    /// server is gone.
    pub keeps: Allocations,
    /// Its consumer generation, if known. A swap must not name a victim without one: read the
    /// host's consumers first.
    pub generation: Option<i64>,
    /// Who owns it.
    pub project_id: String,
    /// The user that created it.
    pub user_id: String,
    /// What happens to it.
    pub interruption: InterruptionBehaviour,
    /// Time from notice to end.
    pub grace: Seconds,
    /// Launch time in microseconds since 1970, UTC.
    pub launched_at: Option<i64>,
    /// What its loss costs the provider, in the cost module's unit.
    pub cost: f64,
    /// The NUMA cells, PCI devices and parts of other providers that it frees, in words. Empty if
    /// the request needs none.
    pub frees: Vec<String>,
}

/// The runner-up: the second-best host for an instance of the request.
#[derive(Debug, Clone, PartialEq)]
pub struct SecondBest {
    /// Name of the host.
    pub host: String,
    /// Cost of the host's cheapest sufficient victim set.
    pub cost: Option<f64>,
    /// That victim set.
    pub victims: Vec<Uuid>,
}

/// The hosts, claims and victims that give a normal request its capacity.
#[derive(Debug, Clone, PartialEq)]
pub struct PreemptionPlan {
    /// In the order of the request.
    pub instances: Vec<PlannedInstance>,
    /// All victims, each once. Empty if everything fits without an eviction.
    pub victims: Vec<PlannedVictim>,
    /// Total cost of the victims, in `cost_unit`.
    pub cost: f64,
    /// The cost module's name of its unit.
    pub cost_unit: String,
    /// False if a limit cut the search; then `gap` bounds how much cheaper the optimum could be.
    pub optimal: bool,
    /// See `optimal`.
    pub gap: f64,
    /// The runner-up for the first instance whose host needs an eviction.
    pub second: Option<SecondBest>,
    /// The explanation, for operators: it names other tenants' servers.
    pub explanation: Explanation,
    /// The request, if it needs NUMA cells or PCI devices: [`Cloud::verify`](crate::Cloud::verify)
    /// judges the hosts again.
    pub judged: Option<Arc<RequestSpec>>,
    /// Placement's query, if the claims are in trees of providers: they are searched again.
    pub tree_query: Option<Arc<Query>>,
    /// The comparison with plugins in shadow; see [`PlanOptions::compared`].
    pub shadow: Option<ShadowChoice>,
    /// [`Cloud::trait_changes`](crate::Cloud::trait_changes) when the plan was made.
    pub trait_changes: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NoPlan {
    /// What kind of reason.
    pub reason: NoPlanReason,
    /// In words, for operators.
    pub text: String,
    /// The engine's explanation, if the engine was called.
    pub explanation: Option<Box<Explanation>>,
}

/// Kinds of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPlanReason {
    /// The request is itself preemptible: it never evicts a server.
    Preemptible,
    /// The request's query to Placement has a form for which h_n is not known.
    Unsupported,
    /// No host would have enough capacity even without its preemptible instances.
    NoHost,
    /// Nova's filters reject every host that would have enough capacity.
    Filtered,
    /// The evictable preemptible instances are not enough: protected, leaving, in a task, budgets.
    NotEnoughVictims,
    /// The request is malformed.
    BadRequest,
}

/// The result of [`Cloud::verify`](crate::Cloud::verify).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifyResult {
    /// The plan can be carried out; generations are filled in.
    Good,
    /// The cloud has changed: update it with Placement's current data and plan again.
    Changed(String),
}

/// The consumers of one provider, as just read from Placement.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderSnapshot {
    pub provider: Uuid,
    pub generation: i64,
    /// All consumers with allocations on the provider.
    pub consumers: Vec<Consumer>,
}
