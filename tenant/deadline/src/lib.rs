//! A job with a deadline on preemptible and on-demand servers: when to wait, when to take which.
//!
//! After Wu et al., *Can't Be Late: Optimizing Spot Instance Savings under Deadlines* (NSDI 2024;
//! "the paper"), with a policy of our own beside the paper's.
//!
//! - [`DeadlineJob`] is the work, the deadline, the changeover delay and the prices; a job that is
//!   accepted can be done in time.
//! - [`Decider`] is asked at each poll: [`JobFacts`] in (time, progress, server, availability), a
//!   [`Decision`] out. [`PolicyKind`] lists the policies. [`SafeDecisions`] is the safety net under
//!   all of them.
//! - [`Series`] is a record of availability, [`read_runs`] reads records, [`simulate`] plays a job
//!   on one.
//! - [`optimum`] is the least cost when the whole record is known beforehand.
//!
//! ```
//! use ebbtide_deadline::{DeadlineJob, Decider, Decision, History, HourPrices, JobFacts};
//! use ebbtide_deadline::{JobServer, JobTerms, PolicyKind};
//! use ebbtide_model::Money;
//!
//! let prices = HourPrices {
//!     spot: Money::from_micros(920_000),
//!     on_demand: Money::from_micros(3_060_000),
//! };
//! let (work, deadline) = (48 * 3_600, 60 * 3_600);
//! // A live caller may learn of a loss a whole poll interval late.
//! let (changeover, poll, loss_lag) = (720, 60, 60);
//! let job = DeadlineJob::new(JobTerms { work, deadline, changeover, poll, loss_lag, prices })?;
//! let mut decider = Decider::new(job, PolicyKind::Planned, &History::default())?;
//! let facts = JobFacts { now: 0, done: 0, held: JobServer::Nothing, spot_available: true };
//! assert_eq!(decider.decide(&facts), Decision::Spot);
//! # Ok::<(), ebbtide_deadline::DeadlineError>(())
//! ```
//!
//! Times are whole seconds, costs exact. Nothing here reads a clock, draws a number or touches a
//! file.

mod availability;
mod error;
mod facts;
mod guard;
mod job;
mod optimum;
mod plan;
mod policies;
mod read;
mod series;
mod simulate;

pub use availability::History;
pub use error::DeadlineError;
pub use facts::{Decision, JobFacts, JobServer};
pub use guard::SafeDecisions;
pub use job::{DeadlineJob, HourPrices, JobCost, JobTerms, LONGEST_SECONDS};
pub use optimum::optimum;
pub use policies::{Decider, MOST_SLICES, PolicyKind};
pub use read::{RecordedSeries, SeriesKind, read_runs};
pub use series::Series;
pub use simulate::{JobEnd, JobState, simulate};
