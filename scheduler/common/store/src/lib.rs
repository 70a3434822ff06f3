//! The durable state of a scheduler, in SQL through sea-orm.
//!
//! One [`Store`] uses one database: an SQLite file, MariaDB or PostgreSQL, with the same tables and
//! the same behaviour. A region's decisions come in as a list of
//! [changes](ebbtide_model::record::Change). [`Store::commit`] writes the list in one transaction,
//! all or nothing. [`Store::load`] returns everything that a restarted region needs to continue.
//! There are also reads for the API, and [`Store::purge`] deletes old records.
//!
//! Invariants:
//! - On SQLite only the holder of the [`Lease`] writes: every commit checks the epoch of the lease
//!   inside its transaction. On the other databases the scheduler that has the [`WriteTransaction`]
//!   writes, one after another, and all the others follow; the lease says which scheduler is on
//!   duty.
//! - A commit that returned `Ok` survives whatever the durability of the database survives. A
//!   commit that returned [`StoreError::Unavailable`] may or may not have been written; its caller
//!   repeats it unchanged.
//! - The store reads no clock: every time comes in as a [`Timestamp`](ebbtide_model::Timestamp).
//!
//! sea-orm and its drivers are used in this crate and in no other.

mod batch;
mod classify;
mod commit;
mod config;
mod connect;
mod database;
mod decisions;
mod error;
mod lease;
pub mod ledger;
mod lives;
mod load;
mod log;
mod logins;
mod migration;
mod plugins;
mod price_store;
mod private;
mod purge;
mod read;
mod restored;
mod row;
mod sql;
mod store;
mod tables;
mod url;
mod write_transaction;

pub use config::{DatabaseUrl, Durability, StoreConfig};
pub use decisions::DecisionStore;
pub use error::StoreError;
pub use lease::Lease;
pub use lives::LifeStore;
pub use log::CommitChanges;
pub use migration::SchemaState;
pub use plugins::{PluginRow, PluginStore};
pub use price_store::PriceStore;
pub use purge::{OldRecord, PurgeCounts, PurgeKind};
pub use read::{DecisionFilter, EvacuationFilter, LifeFilter, MAX_PAGE, PriceFilter, ServerFilter};
pub use store::Store;
pub use url::Backend;
pub use write_transaction::{KEEP_LOG, WriteTransaction};
