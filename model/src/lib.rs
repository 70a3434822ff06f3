//! The plain data of Ebbtide.
//!
//! What every other crate speaks about: resources, flavors, hosts, servers, requests, decisions,
//! evacuations, and the messages between the scheduler and its agents. Nothing here does I/O, reads
//! a clock or makes a decision; what is here checks itself (a [`ResourceClass`] that exists is
//! well-formed) so that the crates above need not.
//!
//! The engine and the exact copy of Nova's decisions (`integration/nova`) share what neither may
//! change alone: [`host_set`], [`python`] and [`extra_specs_ops`].

pub mod aggregate;
pub mod budget;
pub mod comeback;
pub mod decision;
pub mod error;
pub mod evacuation;
pub mod event;
pub mod extra_specs_ops;
pub mod facts;
pub mod flavor;
pub mod group;
pub mod host;
pub mod host_set;
pub mod idle_hour;
pub mod ids;
pub mod index;
pub mod life;
pub mod life_table;
pub mod message;
pub mod money;
pub mod names;
pub mod past_life;
pub mod price;
pub mod python;
pub mod reclaim;
pub mod reconcile;
pub mod record;
pub mod request;
pub mod request_trace;
pub mod resource;
pub mod server;
pub mod server_metadata;
pub mod settings;
pub mod shadow;
pub mod time;
pub mod toml_text;
pub mod traits;

pub use aggregate::Aggregate;
pub use budget::{BudgetScope, DisruptionBudget};
pub use comeback::{Comeback, SavedState};
pub use decision::{Decision, DecisionOutcome, Explanation, NoValidHost, Placement, Victim};
pub use error::ModelError;
pub use evacuation::{Evacuation, EvacuationCause, EvacuationState};
pub use event::CloudEvent;
pub use facts::{Fact, FactColumn, FactError, Texts};
pub use flavor::{Flavor, FlavorProperties, InterruptionBehaviour};
pub use group::{GroupPolicy, ServerGroup};
pub use host::{Host, HostHealth};
pub use idle_hour::IdleHour;
pub use ids::{AggregateId, DecisionId, EvacuationId, FlavorId, GroupId, MessageId, ServerId};
pub use life::{LifeInterval, LifeState};
pub use life_table::{LifeGroup, LifeTable, LifeTables};
pub use money::Money;
pub use past_life::{LifeEnd, PastLife};
pub use price::PricePoint;
pub use reclaim::{
    Reclaim, ReclaimDeadline, ReclaimState, ReclaimTerms, ReclaimedHost, StayReason,
};
pub use reconcile::{ReconcileAction, ReconcileStep};
pub use request::PlacementRequest;
pub use request_trace::{Comparison, ComparisonVerdict, PartTime, RefusedClaim, RequestTrace};
pub use resource::{Inventory, ResourceClass, Resources};
pub use server::{Server, ServerStatus};
pub use shadow::{DecisionComparison, DecisionSide};
pub use time::{Seconds, Timestamp};
pub use traits::Trait;
