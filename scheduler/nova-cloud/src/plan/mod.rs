//! Plans of preemption: who has to leave for a normal request that found no room.

mod group;
mod make;
mod verify;

use crate::expected::Expected;
use crate::facts::{Allocations, Consumer, HostRef};
use crate::scheduling::Selected;
use ebbtide_engine::Budgets;
use ebbtide_model::flavor::InterruptionBehaviour;
use ebbtide_model::{Explanation, Seconds};
use ebbtide_nova::model::AllocationCandidate;
use uuid::Uuid;

/// What a plan has to obey besides the cloud.
#[derive(Debug, Clone, Default)]
pub struct PlanOptions {
    /// What is left of the disruption budgets.
    pub budgets: Budgets,
    /// Instances that are no victims this time, for example because a swap with them was just refused.
    pub spared: Vec<Uuid>,
    /// Compute nodes that are not considered this time.
    pub avoided: Vec<Uuid>,
    /// Members of server groups that are not on their hosts yet.
    pub expected: Expected,
    /// Seed for whatever chance the engine's policy allows.
    pub seed: u64,
}

/// One instance of the request and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedInstance {
    /// The instance.
    pub uuid: Uuid,
    /// Its host.
    pub host: HostRef,
    /// What to claim, as Placement's candidates have it.
    pub candidate: AllocationCandidate,
    /// The same, typed.
    pub allocations: Allocations,
    /// Who leaves for it; empty where there is room.
    pub victims: Vec<Uuid>,
    /// For the reply: the chosen host first, then alternates: hosts of the same cell that pass and
    /// have room without anybody's leaving, because Nova's conductor claims them by itself, and
    /// evicts no server.
    pub selections: Vec<Selected>,
}

/// A preemptible instance that has to leave.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedVictim {
    /// The instance.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// The name of its flavor, for its usage record.
    pub flavor: String,
    /// Its host.
    pub host: HostRef,
    /// What we believe that it has in Placement. A swap empties all of it, but for `keeps`.
    pub allocations: Allocations,
    /// What it goes on having: the disk of a server that is stopped and not deleted. [`Cloud::verify`](crate::Cloud::verify) adds what
    /// the newcomers do not need, for as long as a server that ends is still there.
    pub keeps: Allocations,
    /// Its consumer generation, if it is known. Without one it must not be named in a swap: read the host's consumers first.
    pub generation: Option<i64>,
    /// Who owns it.
    pub project_id: String,
    /// Who made it.
    pub user_id: String,
    /// What happens to it.
    pub interruption: InterruptionBehaviour,
    /// From notice to end.
    pub grace: Seconds,
    /// Microseconds since 1970, UTC.
    pub launched_at: Option<i64>,
    /// What its loss costs, in the cost module's unit.
    pub cost: f64,
}

/// Who was second.
#[derive(Debug, Clone, PartialEq)]
pub struct SecondBest {
    /// Host.
    pub host: String,
    /// Cost of the cheapest sufficient victims there.
    pub cost: Option<f64>,
    /// They.
    pub victims: Vec<Uuid>,
}

/// Everything that has to happen so that a normal request has its room.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// In the order of the request.
    pub instances: Vec<PlannedInstance>,
    /// All who leave, each once. Empty if everything fits after all.
    pub victims: Vec<PlannedVictim>,
    /// What they cost together, in `cost_unit`.
    pub cost: f64,
    /// The cost module's words.
    pub cost_unit: String,
    /// False if a limit cut the search; then `gap` bounds how much cheaper it could be.
    pub optimal: bool,
    /// See `optimal`.
    pub gap: f64,
    /// Who was second, for the first instance that drives somebody out.
    pub second: Option<SecondBest>,
    /// Why; names other tenants' servers, so it is for operators.
    pub explanation: Explanation,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq)]
pub struct NoPlan {
    /// What kind of reason.
    pub reason: NoPlanReason,
    /// In words, for operators.
    pub text: String,
    /// The engine's, as far as it was asked.
    pub explanation: Option<Box<Explanation>>,
}

/// Kinds of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPlanReason {
    /// The request is itself preemptible: it never drives anybody out.
    Preemptible,
    /// The request asks Placement in a way for which h_n is not known: nested or sharing providers, granular groups, devices.
    Unsupported,
    /// No host would have room even without its preemptible instances.
    NoHost,
    /// Nova's filters let none of the hosts pass that would have room.
    Filtered,
    /// The preemptible instances that may leave are not enough: protected, leaving, in a task, budgets.
    NotEnoughVictims,
    /// The request is malformed.
    BadRequest,
}

/// What the truth says about a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The plan can be carried out; generations are filled in.
    Good,
    /// The cloud has changed: tell it the truth and plan again.
    Changed(String),
}

/// The consumers of one provider as Placement has just told them.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderTruth {
    /// The provider.
    pub provider: Uuid,
    /// Its generation.
    pub generation: i64,
    /// Everybody who has something there.
    pub consumers: Vec<Consumer>,
}
