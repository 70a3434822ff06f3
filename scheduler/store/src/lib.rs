//! The durable state of a scheduler, in SQL through sea-orm.
//!
//! One [`Store`] speaks to one database: an SQLite file, MariaDB or PostgreSQL, with the same tables and the same behaviour.
//! What a region decides comes in as a list of [changes](ebbtide_model::record::Change) and is written by
//! [`Store::commit`] in one transaction, all or nothing; [`Store::load`] gives a restarted region everything that it needs to
//! go on. Beside that there are reads for the API, and [`Store::purge`] for what is long over.
//!
//! Invariants:
//! - On SQLite only the holder of the [`Lease`] writes: every commit checks the lease's epoch inside its transaction. On the others whoever has
//!   the [`WriteTurn`] writes, one after another, and everybody follows; the lease says who is on duty.
//! - A commit that returned `Ok` survives whatever the database's durability survives; one that returned
//!   [`StoreError::Unavailable`] may or may not have been written, and is repeated by its caller as it is.
//! - Nothing here reads a clock: every time comes in as a [`Timestamp`](ebbtide_model::Timestamp).
//!
//! sea-orm and its drivers are used in this crate and in no other.

mod batch;
mod classify;
mod commit;
mod config;
mod connect;
mod database;
mod error;
mod lease;
pub mod ledger;
mod load;
mod log;
mod migration;
mod plugins;
mod private;
mod purge;
mod read;
mod row;
mod schema;
mod sql;
mod store;
mod turn;
mod url;

pub use config::{DatabaseUrl, Durability, StoreConfig};
pub use error::StoreError;
pub use lease::Lease;
pub use log::News;
pub use plugins::PluginRow;
pub use purge::{Kind, OldRecord, Purged};
pub use read::{DecisionFilter, EvacuationFilter, LifeFilter, MAX_PAGE, PriceFilter, ServerFilter};
pub use store::Store;
pub use turn::{KEEP_LOG, WriteTurn};
pub use url::Backend;
