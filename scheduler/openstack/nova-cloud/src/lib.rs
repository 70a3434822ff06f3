//! The cloud in memory: hosts as Nova and Placement know them, and decisions on both states.
//!
//! The crate is pure: no clock, no I/O. The owner of a [`Cloud`] passes it the rows of Nova's
//! databases and the answers of Placement, change by change, and asks it
//!
//! - which hosts Placement would offer for a request ([`Cloud::ask`], [`Cloud::candidates`]),
//! - what Nova would decide on them ([`Cloud::decide`], step by step, so that the caller makes
//!   claims outside of any lock),
//! - why that was decided, after the answer ([`Scheduling::into_record`]),
//! - which victims would have to leave for a normal request that found no capacity
//!   ([`Cloud::plan`]),
//! - both at once, on one state ([`Cloud::decide_once`]).
//!
//! Placement and Nova's database hold the truth. The cloud in memory may be out of date, so a claim
//! verifies each decision.

mod candidates;
mod cloud;
mod error;
mod expected;
mod explain;
mod facts;
mod flavor;
mod one_pass;
mod plan;
mod scheduling;
mod shadow;
mod trees;

pub use candidates::{CandidateHosts, PlacementOnly, PlacementQuery};
pub use cloud::{
    Cloud, CloudSettings, CostModules, Counts, DecisionPlugins, OpenPreemption, PreemptibleUsage,
    PricedServer, RetainedServerState, RetainedServerView, StaleProviders, flavor_view,
};
pub use error::CloudError;
pub use expected::ExpectedInstances;
pub use explain::SchedulingRecord;
pub use facts::{
    Allocations, CellFacts, ComputeFacts, Consumer, HeldFacts, HeldResources, HostRef,
    InstanceRecord, Inventory, ProviderFacts, ProviderLine, ServiceFacts,
};
pub use flavor::{least_resources, preemptible_properties};
pub use one_pass::OnePass;
pub use plan::{
    NoPlan, NoPlanReason, PlanOptions, PlannedInstance, PlannedVictim, PreemptionPlan,
    ProviderSnapshot, SecondBest, VerifyResult,
};
pub use scheduling::{Claim, ClaimResult, Scheduling, SchedulingAction, SelectedHost};
pub use shadow::ShadowChoice;
