//! The tables, as the statements see them. How they are made is in [`migration`](crate::migration).
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

/// One table and how its rows are written.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its place in [`TABLES`].
    pub(crate) index: usize,
    /// Its name.
    pub(crate) name: &'static str,
    /// The columns that identify a row.
    pub(crate) key: &'static [&'static str],
    /// The columns that are written, the key first.
    pub(crate) columns: &'static [&'static str],
}

pub(crate) static HOSTS: Table = Table {
    index: 0,
    name: "hosts",
    key: &["name"],
    columns: &["name", "created_at", "record"],
};
pub(crate) static AGGREGATES: Table = Table {
    index: 1,
    name: "aggregates",
    key: &["id"],
    columns: &["id", "record"],
};
pub(crate) static FLAVORS: Table = Table {
    index: 2,
    name: "flavors",
    key: &["id"],
    columns: &["id", "record"],
};
pub(crate) static GROUPS: Table = Table {
    index: 3,
    name: "server_groups",
    key: &["id"],
    columns: &["id", "record"],
};
pub(crate) static BUDGETS: Table = Table {
    index: 4,
    name: "budgets",
    key: &["scope"],
    columns: &["scope", "record"],
};
pub(crate) static SERVERS: Table = Table {
    index: 5,
    name: "servers",
    key: &["id"],
    columns: &[
        "id",
        "project_id",
        "name",
        "host",
        "status",
        "created_at",
        "gone_at",
        "record",
    ],
};
pub(crate) static DECISIONS: Table = Table {
    index: 6,
    name: "decisions",
    key: &["id"],
    columns: &["id", "project_id", "outcome", "created_at", "record"],
};
pub(crate) static DECISION_SERVERS: Table = Table {
    index: 7,
    name: "decision_servers",
    key: &["server_id", "decision_id"],
    columns: &["server_id", "decision_id", "created_at"],
};
pub(crate) static EVACUATIONS: Table = Table {
    index: 8,
    name: "evacuations",
    key: &["id"],
    columns: &[
        "id",
        "victim_id",
        "project_id",
        "preemptor_id",
        "host",
        "state",
        "created_at",
        "final_at",
        "record",
    ],
};
pub(crate) static OUTBOX: Table = Table {
    index: 9,
    name: "outbox",
    key: &["id"],
    columns: &["id", "host", "evacuation_id", "created_at", "body"],
};

pub(crate) static LIVES: Table = Table {
    index: 10,
    name: "lives",
    key: &["id"],
    columns: &[
        "id",
        "project_id",
        "flavor",
        "created_at",
        "ended_at",
        "record",
    ],
};

pub(crate) static PRICES: Table = Table {
    index: 11,
    name: "prices",
    key: &["id"],
    columns: &["id", "flavor_id", "flavor", "created_at", "record"],
};

/// All tables that changes are written to, those that others refer to first.
pub(crate) static TABLES: [&Table; 12] = [
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
