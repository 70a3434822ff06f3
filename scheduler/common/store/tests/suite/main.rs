//! What the store promises, on every database that it supports.
//!
//! Most tests are functions of a [`TestDb`](databases::TestDb) that [`on_every_database!`] turns
//! into three tests. A database server that is missing makes them fail.

// Most of what the tests do stands in functions that are not themselves marked as tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

#[macro_use]
mod databases;
mod records;

mod commits;
mod concurrency;
mod crashes;
mod decisions;
mod lease;
mod ledger;
mod ledger_budgets;
mod ledger_comebacks;
mod ledger_crashes;
mod limits;
mod open;
mod purge;
mod reads;
mod restored;
mod sqlite;
mod write_transactions;
