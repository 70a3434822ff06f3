//! The distributions, one file each.

mod bathtub;
mod empirical;
mod exponential;
mod gompertz_makeham;
mod phases;
mod uniform;
mod weibull;

pub use bathtub::Bathtub;
pub use empirical::Empirical;
pub use exponential::Exponential;
pub use gompertz_makeham::GompertzMakeham;
pub use phases::{Phase, Phases};
pub use uniform::Uniform;
pub use weibull::Weibull;
