//! The registry against the programs, and every finding against a file that has it.

// All of this is tests; helpers too may fail loudly.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(unreachable_pub)]

mod any_text;
mod document;
#[rustfmt::skip] // Rows of tables are read as rows.
mod findings;
mod nova_registry;
mod surroundings;
mod toml_registry;
