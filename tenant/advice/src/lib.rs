//! Advice of a region to its tenants on how long preemptible servers live, without data on single
//! tenants.
//!
//! Input are lives that have ended and lives that continue. Output are a model, its forecast for a
//! server of some age, a backtest of the model with past lives, and a checkpoint schedule for a
//! job. All times are in hours. The crate does no I/O and reads no clock and no random numbers: the
//! same lives and the same time give the same advice.
//!
//! [`pool`] decides which data of other tenants an answer may use, before any computation. The
//! results are rounded in addition ([`limits`]).

mod advice;
pub mod calibration;
pub mod chance;
mod error;
mod knowledge;
pub mod life;
pub mod limits;
mod model;
pub mod pool;
mod schedule;

pub use advice::{Advice, Chance, CurvePoint, Known, Question, Tested, ToldBefore};
pub use error::AdviceError;
pub use knowledge::{Knowledge, Scope};
pub use life::Life;
pub use model::{Chosen, choose};
pub use pool::{Asker, Kept, Pool, Whose};
pub use schedule::Schedule;
