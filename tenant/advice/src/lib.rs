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
mod error;
mod flavor_model;
pub mod life;
pub mod limits;
mod model;
pub mod observed_share;
pub mod pool;
mod schedule;

pub use advice::{
    Advice, AdviceQuery, CurvePoint, ForecastBand, ForecastTest, InterruptionChance, ModelFigures,
};
pub use error::AdviceError;
pub use flavor_model::{FlavorModel, FlavorScope};
pub use life::LifeRecord;
pub use model::{SelectedModel, choose};
pub use pool::{LifeOwners, LifePool, Retention, Viewer};
pub use schedule::Schedule;
