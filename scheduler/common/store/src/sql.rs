//! The texts of the statements that changes are written with, made once when the store is opened.
//!
//! Rows are written many at a time. A statement for each number of rows would fill the drivers'
//! caches of prepared statements, so that rows are cut into groups of 64, 32, 16, 8, 4, 2 and 1:
//! never more than seven texts a table.

use crate::tables::{TABLES, Table};
use sea_orm::DbBackend;
use sea_orm::sea_query::{
    Expr, ExprTrait, MysqlQueryBuilder, OnConflict, PostgresQueryBuilder, Query,
    QueryStatementWriter, SqliteQueryBuilder, Value,
};

/// Most rows in one statement, a power of two. More do not pay: at 64 rows the cost of a statement
/// is spread thin enough.
pub(crate) const MAX_ROWS: usize = 64;
/// A statement is cut before it exceeds this many bytes, unless a single row does: several records
/// of allowed size must not add up to a packet that MariaDB refuses.
pub(crate) const MAX_STATEMENT_BYTES: usize = 4 << 20;
/// How many prepared statements a connection keeps: all statements of this crate, and the reads.
pub(crate) const STATEMENT_CACHE: usize = 256;

/// The texts for one kind of database.
pub(crate) struct StatementTexts {
    /// `upserts[table][log2(rows)]`.
    upserts: Vec<Vec<String>>,
    /// `deletes[table][log2(rows)]`.
    deletes: Vec<Vec<String>>,
}

impl StatementTexts {
    pub(crate) fn new(backend: DbBackend) -> Self {
        let for_all = |make: fn(&Table, usize, DbBackend) -> String| {
            TABLES
                .iter()
                .map(|table| {
                    (0..=MAX_ROWS.ilog2())
                        .map(|power| make(table, 1 << power, backend))
                        .collect()
                })
                .collect()
        };
        Self {
            upserts: for_all(upsert),
            deletes: for_all(delete),
        }
    }

    /// Inserts `rows` rows (a power of two), or overwrites those whose key exists.
    pub(crate) fn upsert(&self, table: &Table, rows: usize) -> &str {
        &self.upserts[table.index][rows.ilog2() as usize]
    }

    /// Deletes by the first column of the key.
    pub(crate) fn delete(&self, table: &Table, rows: usize) -> &str {
        &self.deletes[table.index][rows.ilog2() as usize]
    }
}

fn text(statement: &impl QueryStatementWriter, backend: DbBackend) -> String {
    match backend {
        DbBackend::MySql => statement.build(MysqlQueryBuilder).0,
        DbBackend::Postgres => statement.build(PostgresQueryBuilder).0,
        _ => statement.build(SqliteQueryBuilder).0,
    }
}

fn upsert(table: &Table, rows: usize, backend: DbBackend) -> String {
    let mut on_conflict = OnConflict::columns(table.key.iter().copied());
    on_conflict.update_columns(table.columns[table.key.len()..].iter().copied());
    let mut statement = Query::insert();
    statement
        .into_table(table.name)
        .columns(table.columns.iter().copied())
        .on_conflict(on_conflict);
    for _ in 0..rows {
        statement.values_panic(table.columns.iter().map(|_| Expr::value(Value::Int(None))));
    }
    text(&statement, backend)
}

fn delete(table: &Table, rows: usize, backend: DbBackend) -> String {
    let mut statement = Query::delete();
    statement
        .from_table(table.name)
        .and_where(Expr::col(table.key[0]).is_in(vec![Value::Int(None); rows]));
    text(&statement, backend)
}

/// Cuts `sizes.len()` rows into groups for one statement each: the largest power of two that is
/// left, fits [`MAX_STATEMENT_BYTES`], and is not above [`MAX_ROWS`]. Returns the lengths of the
/// groups.
pub(crate) fn groups(sizes: &[usize]) -> Vec<usize> {
    let mut groups = Vec::new();
    let mut start = 0;
    while start < sizes.len() {
        let left = sizes.len() - start;
        let mut rows = MAX_ROWS.min(1 << left.ilog2());
        while rows > 1 && sizes[start..start + rows].iter().sum::<usize>() > MAX_STATEMENT_BYTES {
            rows /= 2;
        }
        groups.push(rows);
        start += rows;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{DECISION_SERVERS, HOSTS};

    #[test]
    fn rows_are_cut_into_few_powers_of_two() {
        assert_eq!(groups(&[1; 100]), [64, 32, 4]);
        assert_eq!(groups(&[1; 200]), [64, 64, 64, 8]);
        assert_eq!(groups(&[]), [0; 0]);
    }

    #[test]
    fn large_rows_go_alone() {
        let mib = 1 << 20;
        assert_eq!(groups(&[mib, mib, mib, mib, mib, mib, mib, mib]), [4, 4]);
        assert_eq!(groups(&[15 * mib, 15 * mib, 1]), [1, 1, 1]);
    }

    #[test]
    fn each_database_gets_its_own_upsert() {
        let sqlite = upsert(&HOSTS, 2, DbBackend::Sqlite);
        assert_eq!(
            sqlite,
            r#"INSERT INTO "hosts" ("name", "created_at", "record") VALUES (?, ?, ?), (?, ?, ?) ON CONFLICT ("name") DO UPDATE SET "created_at" = "excluded"."created_at", "record" = "excluded"."record""#
        );
        let postgres = upsert(&DECISION_SERVERS, 1, DbBackend::Postgres);
        assert!(
            postgres.contains("VALUES ($1, $2, $3) ON CONFLICT (\"server_id\", \"decision_id\")"),
            "{postgres}"
        );
        let mariadb = upsert(&HOSTS, 1, DbBackend::MySql);
        assert!(
            mariadb.contains("ON DUPLICATE KEY UPDATE `created_at` = VALUES(`created_at`)"),
            "{mariadb}"
        );
    }

    #[test]
    fn a_delete_names_as_many_keys_as_it_deletes() {
        let texts = StatementTexts::new(DbBackend::Sqlite);
        assert_eq!(
            texts.delete(&HOSTS, 2),
            r#"DELETE FROM "hosts" WHERE "name" IN (?, ?)"#
        );
    }
}
