//! The cloud in memory: hosts as Nova and Placement know them, decisions on both states.
//!
//! The crate is pure: no clock, no I/O. Whoever holds a [`Cloud`] tells it what Nova's databases and Placement say, row by row and
//! change by change, and asks it
//!
//! - which hosts Placement would offer for a request ([`Cloud::ask`], [`Cloud::candidates`]),
//! - what Nova would decide on them ([`Cloud::decide`], step by step so that claims are made outside of any lock),
//! - who would have to leave for a normal request that found no room ([`Cloud::plan`]).
//!
//! What Placement and Nova's database hold is the truth; this is a belief about it that a claim verifies.

mod candidates;
mod cloud;
mod error;
mod expected;
mod facts;
mod flavor;
mod plan;
mod scheduling;

pub use candidates::{AskPlacement, Candidates, PlacementQuery};
pub use cloud::{Cloud, CloudSettings, CostModules, Counts, OpenPreemption, ToRead};
pub use error::CloudError;
pub use expected::Expected;
pub use facts::{
    Allocations, CellFacts, ComputeFacts, Consumer, HostRef, InstanceRecord, Inventory,
    ProviderFacts, ProviderLine, ServiceFacts,
};
pub use flavor::is_preemptible;
pub use plan::{
    NoPlan, NoPlanReason, Plan, PlanOptions, PlannedInstance, PlannedVictim, ProviderTruth,
    SecondBest, Verdict,
};
pub use scheduling::{Claim, Claimed, Next, Scheduling, Selected};
