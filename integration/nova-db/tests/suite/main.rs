//! Nova's databases with Nova's own tables, on MariaDB as Nova's migrations make them (`schema/`),
//! and on PostgreSQL and SQLite as a translation of those tables.

// Most of what the tests do stands in functions that are not themselves marked as tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

#[macro_use]
mod cloud;

mod cells;
mod changes;
mod death;
mod history;
mod instances;
mod offered;
mod own_service;
mod rotation;
mod rows;
mod waits;
