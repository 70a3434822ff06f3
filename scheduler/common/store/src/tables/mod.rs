//! The tables, one a file: their columns, and the values that a record fills them with. How they
//! are made is in [`migration`](crate::migration).
//!
//! Invariants:
//! - The column `record` holds the whole record as JSON and is the truth. The other columns are
//!   copies of what is filtered, sorted or joined by, written in the same statement.
//! - Identifiers are their text of 36 characters: the same in all three databases, readable in any
//!   SQL shell, and what logs and commands show. (Native types differ: `uuid`, `binary(16)`, none.
//!   They would save 20 bytes a row and index entry.)
//! - Times are milliseconds since 1970 in a `bigint`, states are their words.
//! - A table has no unique key but the one that its rows are written by: `ON DUPLICATE KEY` of
//!   MariaDB matches any of them.

mod aggregates;
mod budgets;
mod decisions;
mod evacuations;
mod flavors;
mod hosts;
mod idle_hours;
mod lives;
mod outbox;
mod prices;
mod restore_marks;
mod server_groups;
mod servers;

pub(crate) use aggregates::AGGREGATES;
pub(crate) use budgets::{BUDGETS, scope};
pub(crate) use decisions::{DECISION_SERVERS, DECISIONS, NO_VALID_HOST};
pub(crate) use evacuations::EVACUATIONS;
pub(crate) use flavors::FLAVORS;
pub(crate) use hosts::HOSTS;
pub(crate) use idle_hours::IDLE_HOURS;
pub(crate) use lives::LIVES;
pub(crate) use outbox::OUTBOX;
pub(crate) use prices::PRICES;
pub(crate) use restore_marks::{RESTORE_MARK, RESTORE_MARKS};
pub(crate) use server_groups::GROUPS;
pub(crate) use servers::SERVERS;

/// One table and how its rows are written.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its place in [`TABLES`].
    pub(crate) index: usize,
    pub(crate) name: &'static str,
    /// The columns that identify a row.
    pub(crate) key: &'static [&'static str],
    /// The columns that are written, the key first.
    pub(crate) columns: &'static [&'static str],
}

/// All tables that changes are written to, those that others refer to first.
pub(crate) static TABLES: [&Table; 14] = [
    &HOSTS,
    &AGGREGATES,
    &FLAVORS,
    &GROUPS,
    &BUDGETS,
    &SERVERS,
    &DECISIONS,
    &DECISION_SERVERS,
    &EVACUATIONS,
    &OUTBOX,
    &LIVES,
    &PRICES,
    &IDLE_HOURS,
    &RESTORE_MARKS,
];

/// Longest text in a column that is part of an index: as in Nova's tables, and 255 × 4 bytes still
/// fit into a key of MariaDB.
pub(crate) const MAX_KEY_CHARS: usize = 255;
/// Longest `scope` of a budget: a prefix and the longest key.
pub(crate) const MAX_SCOPE_CHARS: usize = MAX_KEY_CHARS + 16;
/// Largest record or message, in bytes. 16 MB, not MiB: with the rest of its statement it has to
/// fit into one packet of a MariaDB server with the default `max_allowed_packet` of 16 MiB.
pub(crate) const MAX_RECORD_BYTES: usize = 16_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_knows_its_place_and_starts_with_its_key() {
        for (place, table) in TABLES.iter().enumerate() {
            assert_eq!(table.index, place, "{}", table.name);
            assert!(table.columns.starts_with(table.key), "{}", table.name);
        }
    }
}
