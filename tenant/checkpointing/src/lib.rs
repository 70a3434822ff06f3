//! Spot prices, bids, and when to checkpoint: what a tenant of preemptible capacity with a price
//! can work out beforehand.
//!
//! After Khatua and Mukherjee, *Application-centric resource provisioning for Amazon EC2 spot
//! instances* (2012; "the ACC paper"), which compares five known checkpoint schemes (Yi, Kondo and
//! Andrzejak, *Reducing costs of spot instances via checkpointing in the Amazon Elastic Compute
//! Cloud*, 2010) with its own.
//!
//! - [`PriceHistory`] is a price over time, checked; [`read_series`] reads many of them from CSV
//!   text.
//! - [`spiky_market`] makes a history from a seed, with rare spikes as in 2015.
//! - [`Availability`] says when an instance with a bid can run; [`bill`] what it costs, to the
//!   millionth of a dollar.
//! - [`Scheme`] is a checkpoint policy; [`SchemeKind`] lists the six: NONE, OPT, HOUR, EDGE, ADAPT,
//!   ACC.
//! - [`run`] plays one job through a history; [`compare`] plays one from each of many starts with
//!   all schemes.
//! - [`advise`] chooses a scheme by a backtest on one history, and says what the choice is worth on
//!   prices that it has not seen.
//! - [`BidLifetimes`] is the failure density that a history shows for a bid;
//!   [`expected_execution_time`] is the paper's equation 8. [`algorithm_one`] is its Algorithm 1 to
//!   the letter; [`choose`] is ours, which searches bids.
//! - [`PaidHours`] has the decision points of an instance's hours and [`decide`] what ACC does
//!   there: the simulator and the live services decide by it.
//!
//! Times are whole seconds since 1970 in UTC, spans whole seconds, prices and sums
//! [`ebbtide_model::Money`]. Nothing here reads a clock or touches a file; chance comes from a
//! seed.

mod advise;
mod algorithm_one;
mod availability;
mod bid_lifetimes;
mod bill;
mod choose;
mod compare;
mod error;
mod event;
mod expected;
mod history;
mod markets;
mod paid_hours;
mod read;
mod run;
mod scheme;
pub mod schemes;
mod summary;
mod terms;

pub use advise::{SchemeAdvice, advise};
pub use algorithm_one::{AlgorithmOne, BidType, algorithm_one, application_bid};
pub use availability::{Availability, Period};
pub use bid_lifetimes::BidLifetimes;
pub use bill::{Bill, HOUR_SECONDS, TerminatedBy, bill};
pub use choose::{BidGoal, BidOffer, Candidate, choose, offers};
pub use compare::{BidComparison, OptComparison, SchemeResult, Starts, band, bids, compare};
pub use error::CheckpointingError;
pub use event::{Event, EventKind, events};
pub use expected::expected_execution_time;
pub use history::PriceHistory;
pub use markets::spiky_market;
pub use paid_hours::{DecisionPoint, PaidHours, decide};
pub use read::{RepeatedRows, Series, read_series};
pub use run::{CheckpointedJob, JobEnd, JobResult, Market, run};
pub use scheme::{Scheme, SchemeAction, SchemeKind, SchemeView, scheme};
pub use summary::{SchemeSummary, Spread, over_bids, over_series};
pub use terms::{AccReading, Adapt, AdaptKnowledge, CheckpointTerms};
