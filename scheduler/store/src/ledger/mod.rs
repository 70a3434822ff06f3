//! The ledger of preemptions on a real Nova, which several schedulers share.
//!
//! Placement holds the truth about room; the ledger holds what we are about to do: which newcomers get the room of which
//! victims, and how far that is. A row is written before anything happens elsewhere, and every further step moves it from one
//! version to the next, so that of two schedulers that work on one row only one gets on. A victim is in one open row at most,
//! which a unique key sees to. Rows of a scheduler that died are adopted by another one.
//!
//! The tables can live in a database of their own, or beside those of a [`Store`](crate::Store): their names and the table of
//! their migrations are theirs alone. Times are the database's clock.

mod error;
mod owner;
mod row;
mod usage;

pub use error::LedgerError;
pub use owner::{Owner, OwnerSeen};
pub use row::{Ledger, LedgerRow, NewRow, Written};
pub use usage::{NewUsage, UsageFilter, UsageRecord};
