//! A region of real processes for end-to-end tests: a scheduler, its agents, a broker, a database.
//!
//! The programs are those that `cargo build --workspace --bins` made; `EBBTIDE_BIN_DIR` says where
//! they are, else they are looked for beside the tests.

mod environment;
mod page;
mod peer;
pub mod region;

pub use environment::ProcessEnvironment;
pub use page::get_raw;
pub use peer::Peer;
pub use region::{Database, Region, RegionOptions, bin};
