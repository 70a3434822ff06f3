//! What a region tells its tenants of how long preemptible servers live, without telling whose.
//!
//! From lives that are over and those that go on: a model, what it says of a server of some age, how well it would have said the same
//! of past lives, and when a job should write checkpoints. Hours everywhere. No I/O, no clock, no chance: the same lives and the same
//! time give the same advice.
//!
//! What tenants must not learn of one another is decided in [`pool`], before anything is computed; what is computed is coarse on top of it
//! ([`limits`]).

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
