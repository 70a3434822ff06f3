//! The six schemes, one file each; [`crate::scheme()`] lists them.

mod acc;
mod adapt;
mod edge;
mod hour;
mod none;
mod opt;

pub use acc::Acc;
pub use adapt::Adaptive;
pub use edge::Edge;
pub use hour::Hour;
pub use none::NoCheckpoints;
pub use opt::Optimal;
